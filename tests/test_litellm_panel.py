"""The panel of models against a real server that plays the provider and its faults."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from svrmad_core.debate import Ask, Debate
from svrmad_core.panels import LiteLLMPanel, PanelError
from svrmad_core.panels.base import Request
from svrmad_core.panels.litellm_panel import KEY_VARIABLE, MAX_REPLY, NO_KEY, warm_up
from svrmad_core.records import Problem, RunStarted, Settings, Turn
from tests.fakes.provider import FakeProvider

GIVEN_KEY = "sk-test-given-0123456789"
KEY_OF_ENVIRONMENT = "sk-test-environment-0123456789"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The user's own key is in the environment, as it would be, and nothing else."""
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", KEY_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY_OF_ENVIRONMENT)


def panel_at(provider: FakeProvider, model: str = "fake-ok", **options) -> LiteLLMPanel:
    options = {"api_key": GIVEN_KEY, "backoff": 0.01, **options}
    return LiteLLMPanel(f"openai/{model}", api_base=provider.base_url, **options)


def request(panel: LiteLLMPanel, agent: str = "A1", kind: str = "math", **settings) -> Request:
    settings = Settings(**{"timeout": 5, **settings})
    started = RunStarted(
        seq=0,
        run_id="t",
        protocol="svr_mad",
        settings=settings,
        problem=Problem(question="What is 6 * 7?", kind=kind),
        agents=panel.agents(settings),
        prompt_version=1,
    )
    return Request(Debate(started), Ask(agent), 0)


async def ask(panel: LiteLLMPanel, agent: str = "A1", **settings) -> Turn:
    try:
        return await panel.ask(request(panel, agent, **settings))
    finally:
        await panel.aclose()


async def failure(panel: LiteLLMPanel, **settings) -> PanelError:
    with pytest.raises(PanelError) as caught:
        await ask(panel, **settings)
    error = caught.value
    assert error.message == str(error)
    assert "\n" not in error.message
    assert GIVEN_KEY not in error.message
    assert KEY_OF_ENVIRONMENT not in error.message
    # nothing that is printed with a traceback may tell more than the message
    assert error.__cause__ is None
    assert error.__context__ is None
    return error


# -- a reply -------------------------------------------------------------------------------------------


async def test_a_reply_becomes_a_turn(provider):
    turn = await ask(panel_at(provider), seed=0)
    assert turn.reply.startswith("I worked it out.")
    assert turn.answer == "42"
    assert 0.4 <= turn.confidence < 0.96
    assert turn.signals.tokens == turn.completion_tokens == 8
    assert turn.signals.min_logprob <= turn.signals.mean_logprob <= 0
    assert turn.prompt_tokens > 50
    assert turn.model == "fake-ok"
    assert turn.finish_reason == "stop"
    assert turn.reasoning is None
    assert 0 < turn.latency < 5


async def test_what_is_sent(provider):
    await ask(panel_at(provider), agent="A2", seed=10, temperature=0.7, max_tokens=99)
    sent = provider.requests[0]
    assert sent.body.pop("messages")[-1]["content"].startswith("Question: What is 6 * 7?")
    assert sent.body == {
        "model": "fake-ok",
        "max_tokens": 99,
        "logprobs": True,
        "seed": 11,
        "temperature": 0.7,
    }
    assert sent.headers["authorization"] == f"Bearer {GIVEN_KEY}"


async def test_what_was_not_set_is_not_sent(provider):
    await ask(panel_at(provider))
    assert {"seed", "temperature"}.isdisjoint(provider.requests[0].body)


async def test_agents_get_the_models_in_turn(provider):
    panel = LiteLLMPanel(["openai/fake-ok", "openai/other"], api_base=provider.base_url)
    assert [a.model for a in panel.agents(Settings(agents=3))] == [
        "openai/fake-ok",
        "openai/other",
        "openai/fake-ok",
    ]
    assert (await ask(panel, "A2")).model == "other"


async def test_a_model_without_a_known_provider_is_asked_at_the_api_base(provider):
    for model in ("my-model", "some-org/My-Model"):
        turn = await ask(LiteLLMPanel(model, api_base=provider.base_url))
        assert turn.model == provider.requests[-1].model == model


async def test_null_content_is_no_answer(provider):
    turn = await ask(panel_at(provider, "fake-null"))
    assert (turn.reply, turn.answer, turn.confidence, turn.finish_reason) == ("", None, None, "stop")
    assert len(provider.requests) == 1


async def test_an_empty_reply_that_ran_out_of_tokens_is_no_answer(provider):
    turn = await ask(panel_at(provider, "fake-empty-length"))
    assert (turn.reply, turn.answer, turn.finish_reason) == ("", None, "length")


async def test_a_reply_cut_by_a_filter_says_so(provider):
    turn = await ask(panel_at(provider, "fake-filter"))
    assert (turn.reply, turn.answer, turn.finish_reason) == ("", None, "content_filter")


async def test_thoughts_are_kept_apart_and_zero_usage_is_unknown(provider):
    turn = await ask(panel_at(provider, "fake-reasoning"))
    assert turn.reasoning == "Let me think about it."
    assert (turn.reply, turn.answer, turn.finish_reason) == ("", None, "length")
    assert (turn.prompt_tokens, turn.completion_tokens, turn.tokens, turn.cost) == (None, None, None, None)


async def test_content_in_parts_is_joined(provider):
    turn = await ask(panel_at(provider, "fake-parts"))
    assert turn.reply == "Answer: \\boxed{5}\nConfidence: 70"
    assert (turn.answer, turn.confidence) == ("5", 0.7)
    assert len(provider.requests) == 1


async def test_a_huge_reply_keeps_its_end():
    with FakeProvider(reply=lambda body: "x" * MAX_REPLY + "\nAnswer: \\boxed{9}") as provider:
        turn = await ask(panel_at(provider))
    assert len(turn.reply) == MAX_REPLY
    assert turn.answer == "9"


async def test_half_a_surrogate_pair_can_still_be_written():
    with FakeProvider(reply=["\ud800 \x00 Answer: \\boxed{9}"]) as provider:
        turn = await ask(panel_at(provider))
    assert turn.answer == "9"
    assert turn.model_dump_json().encode()


@pytest.mark.parametrize("model", ["fake-zero-usage", "fake-no-usage"])
async def test_usage_that_is_not_told_is_unknown(provider, model):
    turn = await ask(panel_at(provider, model))
    assert (turn.prompt_tokens, turn.completion_tokens, turn.cost) == (None, None, None)


@pytest.mark.parametrize("model", ["fake-nologprobs", "fake-odd-logprobs"])
async def test_without_usable_logprobs_there_are_no_signals(provider, model):
    turn = await ask(panel_at(provider, model))
    assert turn.signals is None
    assert turn.answer is not None


# -- prices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["fake-ok", "gpt-4o", "gpt-4o-mini"])
async def test_a_model_at_a_server_of_ones_own_has_no_known_price(provider, model):
    turn = await ask(panel_at(provider, model))
    assert turn.tokens > 0
    assert turn.cost is None


async def test_a_server_from_the_environment_has_no_known_price_either(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    turn = await ask(LiteLLMPanel("openai/gpt-4o"))
    assert turn.cost is None
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY_OF_ENVIRONMENT}"


async def test_a_provider_s_own_model_costs_what_litellm_says(provider, monkeypatch):
    monkeypatch.setattr("svrmad_core.panels.litellm_panel._is_own", lambda *parts: True)
    turn = await ask(panel_at(provider, "gpt-4o"))
    price = warm_up().model_cost["gpt-4o"]
    told = turn.prompt_tokens * price["input_cost_per_token"]
    assert turn.cost == pytest.approx(told + turn.completion_tokens * price["output_cost_per_token"])
    assert (await ask(panel_at(provider, "fake-ok"))).cost is None


@pytest.mark.parametrize(
    ("model", "base", "priced"),
    [
        ("openai/gpt-4o", None, True),
        ("openai/gpt-4o", "https://api.openai.com/v1", True),
        ("openai/gpt-4o", "http://api.openai.com/v1", False),
        ("openai/gpt-4o", "https://api.openai.com.evil.example/v1", False),
        ("openai/gpt-4o", "https://evilopenai.com/v1", False),
        ("deepseek/deepseek-chat", None, True),
        ("ollama/llama3", None, False),
    ],
)
def test_where_a_price_holds(model, base, priced):
    assert LiteLLMPanel(model, api_base=base)._find_target(warm_up(), model).priced is priced


# -- keys ----------------------------------------------------------------------------------------------


async def test_the_environment_s_key_is_not_sent_to_another_server(provider):
    await ask(panel_at(provider, api_key=None))
    assert provider.requests[0].headers["authorization"] == f"Bearer {NO_KEY}"


async def test_no_key_at_all_is_no_hindrance_at_a_local_server(provider, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    assert (await ask(panel_at(provider, api_key=None))).answer


async def test_the_key_for_a_server_comes_from_its_own_variable(provider, monkeypatch):
    monkeypatch.setenv(KEY_VARIABLE, "sk-test-own-0123456789")
    await ask(panel_at(provider, api_key=None))
    assert provider.requests[0].headers["authorization"] == "Bearer sk-test-own-0123456789"


async def test_the_environment_s_key_goes_to_the_environment_s_server(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_API_BASE", provider.base_url + "/")
    await ask(panel_at(provider, api_key=None))
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY_OF_ENVIRONMENT}"


@pytest.mark.parametrize("model", ["fake-echo-key", "fake-echo-key-400", "fake-echo-key-403", "fake-echo-key-500"])
@pytest.mark.parametrize("whose", ["given", "environment"])
async def test_no_message_repeats_a_key(provider, monkeypatch, model, whose):
    if whose == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    error = await failure(panel_at(provider, model, api_key=GIVEN_KEY if whose == "given" else None))
    assert provider.requests[0].headers["authorization"].startswith("Bearer sk-test-")
    assert "sk-test" not in error.message


async def test_credentials_in_the_api_base_are_not_told(provider):
    base = provider.base_url.replace("http://", "http://me:hunter2@") + "?key=hunter3"
    error = await failure(LiteLLMPanel("openai/fake-404", api_base=base, api_key=GIVEN_KEY, backoff=0.01))
    assert "hunter" not in error.message


# -- faults --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "kind", "calls", "says"),
    [
        ("fake-400", "bad_request", 1, 'openai/fake-400 (400, "the messages are wrong in many ways")'),
        ("fake-401", "auth", 1, "refused the key for openai/fake-401 (401): check"),
        ("fake-402", "credit", 1, "has no credit left (402)"),
        ("fake-403", "auth", 1, '(403, "This key may not use that model")'),
        ("fake-404", "not_found", 1, "does not know openai/fake-404 (404"),
        ("fake-429", "rate_limit", 4, "did so 4 times"),
        ("fake-429-quota", "credit", 1, "has no credit left (429)"),
        ("fake-500", "server", 4, 'failed 4 times (500, "The server is overloaded")'),
        ("fake-502", "server", 4, "failed 4 times (502"),
        ("fake-503", "server", 4, "failed 4 times (503"),
        ("fake-504", "server", 4, "failed 4 times (504"),
        ("fake-drop", "connection", 4, "broke before a reply came"),
        ("fake-malformed", "bad_reply", 4, "no chat completion, 4 times"),
        ("fake-no-choices", "bad_reply", 4, "no chat completion"),
        ("fake-empty-choices", "bad_reply", 4, "no chat completion"),
        ("fake-not-an-object", "bad_reply", 4, "no chat completion"),
        ("fake-error-200", "bad_reply", 4, "no chat completion"),
        ("fake-context", "context_length", 1, "too long for openai/fake-context"),
        ("fake-filter-400", "content_filter", 1, "filter refused the request"),
    ],
)
async def test_each_fault_has_its_kind_its_number_of_calls_and_a_sentence(provider, model, kind, calls, says):
    error = await failure(panel_at(provider, model))
    assert error.kind == kind
    assert len(provider.requests) == error.attempts == calls
    assert says in error.message
    assert error.message.endswith(".")


@pytest.mark.parametrize("model", ["fake-429-once", "fake-500-once", "fake-malformed-once"])
async def test_what_may_pass_is_tried_again(provider, model):
    assert (await ask(panel_at(provider, model), seed=0)).answer == "42"
    assert len(provider.requests) == 2


async def test_retry_after_is_waited_for_and_counts_as_latency(provider):
    provider.retry_after = "0.4"
    turn = await ask(panel_at(provider, "fake-429-once"))
    assert 0.4 <= turn.latency < 2


async def test_nobody_listens():
    panel = LiteLLMPanel("openai/x", api_base="http://127.0.0.1:9/v1", attempts=2, backoff=0.01)
    error = await failure(panel)
    assert (error.kind, error.attempts) == ("connection", 2)
    assert error.message == "Nothing listens at http://127.0.0.1:9/v1: start the server or correct the api base."


async def test_a_host_that_is_not_there():
    panel = LiteLLMPanel("openai/x", api_base="http://no-such-host.invalid/v1", attempts=1)
    error = await failure(panel)
    assert error.kind == "connection"
    assert error.message.startswith("There is no host of the name in http://no-such-host.invalid/v1")


@pytest.mark.parametrize("model", ["fake-hang", "fake-slow-headers"])
async def test_a_hang_ends_after_two_timeouts(provider, model):
    began = time.perf_counter()
    error = await failure(panel_at(provider, model), timeout=0.4)
    assert time.perf_counter() - began < 2
    assert (error.kind, error.attempts, len(provider.requests)) == ("timeout", 2, 2)
    assert error.message.startswith(f"No answer within 0.4 s from openai/{model} at http://127.0.0.1")


async def test_the_dummy_key_refused_asks_for_a_key(provider):
    error = await failure(panel_at(provider, "fake-401", api_key=None))
    assert error.message.endswith(f"wants a key for openai/fake-401 (401): set {KEY_VARIABLE}.")


async def test_no_key_for_a_provider(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    error = await failure(LiteLLMPanel("openai/gpt-4o", backoff=0.01))
    assert (error.kind, error.message) == ("auth", "There is no key for openai/gpt-4o: set OPENAI_API_KEY.")


async def test_the_environment_s_key_refused_names_its_variable(provider, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url)
    error = await failure(LiteLLMPanel("openai/fake-401"))
    expected = "The provider refused the key for openai/fake-401 (401): check OPENAI_API_KEY."
    assert error.message == expected


async def test_no_provider_of_that_name():
    error = await failure(LiteLLMPanel("nonsense"))
    assert error.kind == "not_found"
    assert error.message.startswith("LiteLLM knows no provider for nonsense")


def test_wrong_arguments_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="No model is given"):
        LiteLLMPanel([])
    with pytest.raises(ValueError, match="is not an http or https URL"):
        LiteLLMPanel("openai/x", api_base="127.0.0.1:8080")


# -- parameters a provider refuses ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["logprobs", "seed", "temperature"])
async def test_a_refused_parameter_is_left_out_from_then_on(provider, name):
    panel = panel_at(provider, f"fake-reject-{name}")
    for _ in range(2):
        assert (await ask(panel, seed=0, temperature=0.7)).answer == "42"
    assert [name in r.body for r in provider.requests] == [True, False, False]
    others = {"logprobs", "seed", "temperature"} - {name}
    assert all(other in r.body for r in provider.requests for other in others)
    assert panel.dropped == {f"openai/fake-reject-{name}": {name}}


async def test_a_bad_request_about_something_else_drops_nothing(provider):
    panel = panel_at(provider, "fake-400")
    await failure(panel, seed=0)
    assert panel.dropped == {}


async def test_logprobs_are_asked_for_at_a_server_whatever_the_model_is_called(provider):
    turn = await ask(panel_at(provider, "o3-mini"))
    assert provider.requests[0].body["logprobs"] is True
    assert turn.signals is not None


# -- many at once --------------------------------------------------------------------------------------


async def ask_all(panel: LiteLLMPanel, number: int) -> list[Turn]:
    try:
        one = request(panel, agents=number, seed=0)
        calls = (panel.ask(Request(one.debate, Ask(f"A{i + 1}"), 0)) for i in range(number))
        return await asyncio.gather(*calls)
    finally:
        await panel.aclose()


async def test_agents_are_asked_at_the_same_time_and_disagree(provider):
    provider.latency = 0.2
    turns = await ask_all(panel_at(provider), 6)
    assert provider.most_in_flight == 6
    assert len({t.answer for t in turns}) > 1


async def test_no_more_calls_at_a_time_than_allowed(provider):
    provider.latency = 0.05
    turns = await ask_all(panel_at(provider, concurrency=3), 12)
    assert len(turns) == 12
    assert provider.most_in_flight == 3
    # waiting for a turn is the panel's doing, not the provider's latency
    assert max(t.latency for t in turns) < 12 / 3 * 0.05 + 0.5


def test_one_panel_serves_several_event_loops(provider):
    provider.latency = 0.05
    panel = panel_at(provider, concurrency=2)
    for _ in range(2):
        assert len(asyncio.run(ask_all(panel, 4))) == 4
    with ThreadPoolExecutor(3) as threads:
        runs = [threads.submit(asyncio.run, ask_all(panel, 4)) for _ in range(3)]
        assert [len(r.result()) for r in runs] == [4, 4, 4]
    assert len(provider.requests) == 20


async def test_a_cancelled_call_lets_its_slot_and_its_connection_go(provider):
    panel = panel_at(provider, "fake-hang", concurrency=1)
    asking = asyncio.create_task(panel.ask(request(panel, timeout=30)))
    await until(lambda: provider.in_flight == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await until(lambda: provider.in_flight == 0)
    assert not panel._slot().locked()
    await panel.aclose()


async def until(holds, seconds: float = 3.0) -> None:
    deadline = time.perf_counter() + seconds
    while not holds():
        assert time.perf_counter() < deadline
        await asyncio.sleep(0.01)


# -- what is left behind -------------------------------------------------------------------------------


async def test_closing_leaves_no_socket_no_task_and_no_thread(provider):
    await ask_all(panel_at(provider), 2)
    tasks, threads = asyncio.all_tasks(), {t.name for t in threading.enumerate()}
    panel = panel_at(provider)
    for agent in ("A1", "A2", "A3"):
        await panel.ask(request(panel, agent))
    with pytest.raises(PanelError):
        await panel.ask(request(panel_at(provider, "fake-401")))
    assert provider.open_connections > 0
    await panel.aclose()
    await until(lambda: provider.open_connections == 0)
    assert asyncio.all_tasks() == tasks
    new = {t.name for t in threading.enumerate()} - threads
    # the loop's own pool, in which LiteLLM prepares calls, ends with the loop; the server is ours
    assert [n for n in new if not n.startswith("asyncio_") and "process_request_thread" not in n] == []


async def test_a_panel_may_be_used_after_closing(provider):
    panel = panel_at(provider)
    for _ in range(2):
        assert (await ask(panel)).answer
    await panel.aclose()


async def test_closing_one_panel_leaves_another_its_connections(provider):
    first, second = panel_at(provider), panel_at(provider)
    await first.ask(request(first))
    provider.latency = 0.3
    asking = asyncio.create_task(second.ask(request(second)))
    await until(lambda: provider.in_flight == 1)
    await first.aclose()
    assert (await asking).answer
    await second.aclose()
    await until(lambda: provider.open_connections == 0)


def test_importing_the_panel_does_not_import_litellm():
    code = "import sys; import svrmad_core.panels; print('litellm' in sys.modules, 'openai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_litellm_prints_nothing(provider):
    code = (
        "import asyncio, sys; sys.path.insert(0, '.'); from tests.test_litellm_panel import *\n"
        f"panel = LiteLLMPanel(['openai/fake-ok'], api_base={provider.base_url!r}, backoff=0.01)\n"
        "asyncio.run(ask_all(panel, 3))\n"
        "for model in ('fake-401', 'fake-500', 'fake-parts', 'nonsense'):\n"
        f"    panel = LiteLLMPanel(f'openai/{{model}}', api_base={provider.base_url!r}, backoff=0.01)\n"
        "    try: asyncio.run(ask_all(panel, 1))\n"
        "    except PanelError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


# -- the provider that plays along ---------------------------------------------------------------------


def test_the_fake_provider_streams_and_lists_its_models(provider):
    with urllib.request.urlopen(f"{provider.base_url}/models") as response:
        assert {"id": "fake-ok", "object": "model"} in json.load(response)["data"]
    body = {"model": "fake-ok", "messages": [], "seed": 0, "stream": True, "logprobs": True}
    asked = urllib.request.Request(f"{provider.base_url}/chat/completions", json.dumps(body).encode())
    with urllib.request.urlopen(asked) as response:
        lines = [x.decode().removeprefix("data: ").strip() for x in response if x.strip()]
    assert lines[-1] == "[DONE]"
    choices = [json.loads(x)["choices"][0] for x in lines[:-1]]
    assert "".join(c["delta"].get("content", "") for c in choices).startswith("I worked it out.")
    assert not any("logprobs" in c for c in choices)
    assert choices[-1]["finish_reason"] == "stop"


# -- replies as they are written ----------------------------------------------------------------------------------


async def watched(panel: LiteLLMPanel, **settings) -> tuple[Turn, list[int]]:
    """A turn that somebody watches, and the counts that were told."""
    counts: list[int] = []
    made = replace(request(panel, **settings), on_tokens=counts.append)
    try:
        return await panel.ask(made), counts
    finally:
        await panel.aclose()


async def test_a_reply_is_streamed_where_the_provider_gives_no_log_probabilities(provider):
    panel = LiteLLMPanel("mistral/fake-ok", api_base=provider.base_url, api_key=GIVEN_KEY, backoff=0.01)
    assert panel.streams("mistral/fake-ok")
    turn, counts = await watched(panel)
    whole = await ask(LiteLLMPanel("mistral/fake-ok", api_base=provider.base_url, api_key=GIVEN_KEY))
    assert provider.requests[0].body["stream"] is True
    assert not provider.requests[1].body.get("stream"), "nobody watches"
    assert counts == list(range(1, len(counts) + 1))
    assert len(counts) > 3
    assert (turn.reply.split(), turn.answer, turn.confidence) == (whole.reply.split(), whole.answer, whole.confidence)
    assert (turn.prompt_tokens, turn.completion_tokens) == (whole.prompt_tokens, whole.completion_tokens)
    assert turn.finish_reason == "stop"


async def test_a_reply_with_log_probabilities_is_not_streamed(provider):
    panel = panel_at(provider)
    assert not panel.streams("openai/fake-ok")
    turn, counts = await watched(panel)
    assert (counts, turn.signals is not None) == ([], True)


async def test_once_log_probabilities_are_refused_replies_are_streamed(provider):
    panel = panel_at(provider, "fake-reject-logprobs")
    turn, counts = await watched(panel)
    assert panel.streams("openai/fake-reject-logprobs")
    assert turn.answer is not None
    assert counts


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("fake-401", "auth"),
        ("fake-404", "not_found"),
        ("fake-429", "rate_limit"),
        ("fake-500", "server"),
        ("fake-402", "credit"),
        ("fake-context", "context_length"),
        ("fake-drop", "connection"),
        ("fake-hang", "timeout"),
        ("fake-malformed", "bad_reply"),
        ("fake-echo-key", "auth"),
    ],
)
async def test_faults_of_a_stream_are_those_of_a_whole_reply(provider, model, kind):
    panel = LiteLLMPanel(f"mistral/{model}", api_base=provider.base_url, api_key=GIVEN_KEY, backoff=0.01)
    with pytest.raises(PanelError) as caught:
        await watched(panel, timeout=1)
    assert caught.value.kind == kind
    assert GIVEN_KEY not in caught.value.message


async def test_who_stops_in_the_middle_of_a_stream_leaves_no_connection(provider):
    panel = LiteLLMPanel("mistral/fake-hang", api_base=provider.base_url, api_key=GIVEN_KEY)
    asking = asyncio.create_task(panel.ask(replace(request(panel, timeout=60), on_tokens=lambda count: None)))
    while not provider.requests:
        await asyncio.sleep(0.05)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    await panel.aclose()
    for _ in range(100):
        if provider.open_connections == 0:
            break
        await asyncio.sleep(0.05)
    assert provider.open_connections == 0
