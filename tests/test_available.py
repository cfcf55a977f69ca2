"""What can be asked from here: keys in the environment, servers that listen, and one tiny call."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from svrmad_core import Settings, available, connection
from svrmad_core.guess import guess_kind, split_options
from svrmad_core.panels.litellm_panel import warm_up
from tests.fakes.provider import FakeProvider

KEY = "sk-test-0123456789abcdefghijkl"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Two dice are thrown. What is the probability that the sum is 8?", "math"),
        ("How many handshakes?", "math"),
        ("What is 7^100 mod 5?", "math"),
        ("What is the capital of Australia?", "text"),
        ("Who wrote Faust?", "text"),
        ("Which is a mammal?\nA) the trout\nB) the bat", "choice"),
        ("Which is a mammal?\nB) the trout\nA) the bat", "text"),
        ("", "text"),
    ],
)
def test_the_kind_of_a_question_is_guessed(text, kind):
    assert guess_kind(text) == kind


def test_options_are_read_from_the_question():
    assert split_options("Which?\n(A) one\n(B) two\n(C) three") == ("Which?", ["one", "two", "three"])
    assert split_options("A. Smith asks: how many?") == ("A. Smith asks: how many?", [])


def test_models_are_offered_for_the_keys_there_are(monkeypatch):
    for variable in available.PROVIDERS:
        monkeypatch.delenv(variable, raising=False)
    assert available.keyed_models() == []
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    assert available.keyed_models() == list(available.PROVIDERS["GROQ_API_KEY"])


def test_litellm_knows_all_models_that_are_offered():
    litellm = warm_up()
    for models in available.PROVIDERS.values():
        for model in models:
            litellm.get_llm_provider(model)


def test_servers_on_this_computer_are_found(provider):
    port = int(provider.base_url.split(":")[2].split("/")[0])
    found = available.local_servers([port, 9])
    assert [server.base for server in found] == [provider.base_url]
    assert "fake-ok" in found[0].models
    assert available.local_servers([]) == []


def test_a_server_at_an_address_tells_its_models(provider):
    assert available.server_at(provider.base_url.removesuffix("/v1"), KEY).base == provider.base_url
    assert provider.requests[-1].headers["authorization"] == f"Bearer {KEY}"
    with pytest.raises(available.NoServer, match="Nothing that speaks HTTP answers"):
        available.server_at("http://127.0.0.1:9/v1")
    with pytest.raises(ValueError, match="not an http or https URL"):
        available.server_at("file:///etc/passwd")


def test_something_else_that_speaks_http_is_no_server_of_models(tmp_path):
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        with pytest.raises(available.NoServer, match="not with a list of models"):
            available.server_at(f"http://127.0.0.1:{other.server_port}/v1")
        other.shutdown()


async def test_one_tiny_call_says_what_works(provider):
    models = [f"openai/fake-{m}" for m in ("ok", "401", "nologprobs", "reasoning", "null", "echo-key", "404")]
    found = await connection.check(models, Settings(api_base=provider.base_url, prior="perplexity"), KEY)
    told = {f.model.removeprefix("openai/fake-"): (f.works, f.sentence) for f in found}
    assert told["ok"][0]
    assert "log-probabilities come along" in told["ok"][1]
    assert told["nologprobs"][0]
    assert "stated confidence" in told["nologprobs"][1]
    assert not told["401"][0]
    assert "check the key you gave" in told["401"][1]
    assert "thinking" in told["reasoning"][1]
    assert "empty" in told["null"][1]
    assert "does not know" in told["404"][1]
    assert KEY not in " ".join(sentence for _, sentence in told.values())
    assert len([r for r in provider.requests if r.method == "POST"]) == len(models)
    (simulated,) = await connection.check(["simulated/hard"], Settings())
    assert simulated.works


async def test_a_server_that_hangs_is_given_up():
    with FakeProvider() as provider:
        (found,) = await connection.check(["openai/fake-hang"], Settings(api_base=provider.base_url), timeout=1)
    assert "No answer within 1 s" in found.sentence
