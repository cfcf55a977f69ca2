"""What a deployment allows: all at this computer, little from elsewhere, and what its settings say."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import policy
from svrmad_core import Settings
from tests.test_sample_runs import FILES as RUNS

ROOT = Path(__file__).parent.parent
OWN = Settings()
AT = Settings(api_base="http://10.0.0.1:8000/v1")


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    """Whatever the machine's environment sets."""
    for name in [n for n in os.environ if n.startswith("SVRMAD_") and n != "SVRMAD_LOCAL_PORTS"]:
        monkeypatch.delenv(name)


def refuses(rules, model, settings=OWN, own_key=False):
    return rules.refuses([model], settings, own_key)


def test_at_this_computer_all_is_open():
    rules = policy.read(local=True)
    assert refuses(rules, "openai/gpt-4o") is None
    assert refuses(rules, "ollama/llama3", AT) is None
    assert (rules.run_cost, rules.visitor_cost, rules.library) == (None, None, "open")


def test_from_elsewhere_the_default_spends_nothing_and_asks_no_inner_host():
    rules = policy.read(local=False)
    assert refuses(rules, "simulated/hard") is None
    assert "for visitors" in refuses(rules, "openai/gpt-4o")
    assert "does not ask models at" in refuses(rules, "openai/x", AT)
    assert "does not ask models at" in refuses(rules, "openai/x", AT, own_key=True)
    assert refuses(rules, "openai/gpt-4o", own_key=True) is None
    # LiteLLM would ask these at this computer, or at the address in the name
    for model in ("ollama/llama3", "lm_studio/x", "hosted_vllm/x", "huggingface/http://10.0.0.1/x", "gpt-4o"):
        assert refuses(rules, model, own_key=True) is not None
    assert refuses(rules, "openai/http://10.0.0.1/x", own_key=True) is not None
    assert (rules.run_cost, rules.visitor_cost, rules.run_tokens, rules.library) == (0.5, 2.0, 300_000, "private")


def test_what_is_listed_is_allowed(monkeypatch):
    monkeypatch.setenv("SVRMAD_MODELS", "openai/gpt-4o*, groq/x")
    rules = policy.read(local=False)
    assert refuses(rules, "openai/gpt-4o-mini") is None
    assert refuses(rules, "openai/gpt-4.1") is not None
    monkeypatch.setenv("SVRMAD_ADDRESSES", "http://10.0.0.1:8000/v1/")
    assert refuses(policy.read(False), "openai/gpt-4o", AT) is None
    assert refuses(policy.read(False), "openai/qwen", AT) is not None
    monkeypatch.delenv("SVRMAD_MODELS")
    assert refuses(policy.read(False), "openai/qwen", AT) is None
    assert refuses(policy.read(False), "openai/qwen") is not None
    monkeypatch.setenv("SVRMAD_OWN_KEYS", "no")
    assert refuses(policy.read(False), "openai/qwen", own_key=True) is not None


def test_caps_are_the_smaller_of_the_two_and_money_only_where_it_can_be_counted(monkeypatch):
    monkeypatch.setenv("SVRMAD_MAX_COST_RUN", "0.25")
    rules = policy.read(local=False)
    assert rules.capped(Settings(max_cost=9), True).max_cost == 0.25
    assert rules.capped(Settings(max_cost=0.1), True).max_cost == 0.1
    assert rules.capped(Settings(), False).max_cost is None
    assert rules.capped(Settings(), False).max_tokens_total == 300_000
    monkeypatch.setenv("SVRMAD_MAX_TOKENS_RUN", "none")
    assert policy.read(False).capped(Settings(), True).max_tokens_total is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SVRMAD_OPEN", "perhaps"),
        ("SVRMAD_LIBRARY", "public"),
        ("SVRMAD_MAX_COST_RUN", "cheap"),
        ("SVRMAD_MAX_COST_VISITOR", "-1"),
        ("SVRMAD_MOST_RUNS", "0"),
        ("SVRMAD_MAX_TOKENS_RUN", "1.5"),
        ("SVRMAD_ADDRESSES", "ftp://x"),
    ],
)
def test_a_setting_that_cannot_be_read_is_an_error_and_never_open(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(policy.WrongSetting, match=name):
        policy.read(local=False)


def test_open_overrules_where_the_visitor_comes_from(monkeypatch):
    monkeypatch.setenv("SVRMAD_OPEN", "yes")
    assert policy.read(local=False).models is None
    monkeypatch.setenv("SVRMAD_OPEN", "no")
    assert policy.read(local=True).library == "private"


@pytest.mark.parametrize(
    ("headers", "ip", "local"),
    [
        ({"Host": "localhost:8501", "Origin": "http://localhost:8501"}, None, True),
        ({"Host": "127.0.0.1:8501"}, None, True),
        ({"Host": "[::1]:8501", "Origin": "http://[::1]:8501"}, None, True),
        ({"Host": "localhost:8501"}, "192.168.1.7", False),
        ({"Host": "debate.example.org"}, None, False),
        # a proxy on this computer that hides the name it was called by
        ({"Host": "127.0.0.1:8501", "Origin": "https://debate.example.org"}, None, False),
        ({"Host": "127.0.0.1:8501", "X-Forwarded-For": "203.0.113.9"}, None, False),
        # a page elsewhere whose name resolves to this computer
        ({"Host": "evil.example:8501", "Origin": "http://evil.example:8501"}, None, False),
    ],
)
def test_who_sits_at_this_computer(monkeypatch, headers, ip, local):
    class Context:
        pass

    context = Context()
    context.headers, context.ip_address = headers, ip
    monkeypatch.setattr(policy.st, "context", context)
    assert policy.is_local() is local


def test_a_visitor_is_the_same_after_a_reload_and_another_than_others():
    one, again = "2|e8bcfa56|80c4d046318d01e8facf67d55890d043|1796277365", "2|00000000|{}|1796277365"
    token = policy._token(one)
    assert policy._token(again.format(token.hex())) == token
    assert policy._token("2|e8bcfa56|81c4d046318d01e8facf67d55890d043|1796277365") != token
    assert [policy._token(x) for x in (None, "", "2|zz|zz|1", "2||ab|1", "nonsense")] == [None] * 5


def page(name, tmp_path, monkeypatch, **environment):
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path))
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.switch_page(f"pages/{name}.py")
    app.run()
    assert not app.exception
    return app


def test_in_a_private_library_a_visitor_sees_the_samples_and_nothing_else(tmp_path, monkeypatch):
    (tmp_path / "mine.jsonl").write_bytes(RUNS[0].read_bytes().replace(RUNS[0].stem.encode(), b"mine"))
    assert "mine" in list(page("runs", tmp_path, monkeypatch).dataframe[0].value["run"])
    app = page("runs", tmp_path, monkeypatch, SVRMAD_OPEN="no")
    assert set(app.dataframe[0].value["run"]) == {path.stem for path in RUNS}
    app = page("runs", tmp_path, monkeypatch, SVRMAD_OPEN="no", SVRMAD_LIBRARY="read-only")
    assert "mine" in list(app.dataframe[0].value["run"])
    app.session_state["runs_chosen"] = "own/mine"
    app.run()
    assert "Delete" not in [b.label for b in app.button]


def test_a_wrong_setting_stops_the_page_with_a_sentence(tmp_path, monkeypatch):
    app = page("live", tmp_path, monkeypatch, SVRMAD_LIBRARY="everything")
    assert "SVRMAD_LIBRARY" in app.error[0].value
    assert not app.text_area
