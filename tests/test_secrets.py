"""Secrets go, everything else stays."""

from __future__ import annotations

import pytest

from svrmad_core.secrets import MASK, public_base, redact


def test_given_secrets_go_wherever_they_stand():
    assert redact("a hunter2, b(hunter2)", ["hunter2", None, ""]) == f"a {MASK}, b({MASK})"


def test_a_longer_secret_goes_whole_though_a_shorter_one_is_a_part_of_it():
    assert redact("abcdefgh-abc", ["abc", "abcdefgh"]) == f"{MASK}-{MASK}"


def test_a_secret_written_as_in_a_url_goes_too():
    assert "p%2Fw" not in redact("user=me&x=p%2Fw%21", ["p/w!"])


@pytest.mark.parametrize("name", ["SOME_API_KEY", "HF_TOKEN", "AWS_SECRET", "DB_PASSWORD", "some_key"])
def test_values_of_the_environment_go(monkeypatch, name):
    monkeypatch.setenv(name, "value-of-eight")
    assert redact("it is value-of-eight.") == f"it is {MASK}."


def test_short_values_and_other_names_of_the_environment_stay(monkeypatch):
    monkeypatch.setenv("SHORT_API_KEY", "none")
    monkeypatch.setenv("HARMLESS", "value-of-eight")
    assert redact("none, value-of-eight") == "none, value-of-eight"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("key sk-abcDEF_123-456 refused", f"key {MASK} refused"),
        ("key sk-abc***xyz refused", f"key {MASK} refused"),
        ("Authorization: Bearer abcdef.ghi", f"Authorization: Bearer {MASK}"),
        ("authorization: bearer abcdef.ghi", f"authorization: bearer {MASK}"),
        ("GET /v1?api_key=abc&x=1", f"GET /v1?api_key={MASK}&x=1"),
        ("GET /v1?x=1&key=abc", f"GET /v1?x=1&key={MASK}"),
        ("GET /v1?access_token=abc#end", f"GET /v1?access_token={MASK}#end"),
        ('{"api_key": "abc", "b": 1}', f'{{"api_key": "{MASK}", "b": 1}}'),
        ("x-api-key: abc", f"x-api-key: {MASK}"),
        ("see http://me:p@ss@host:80/v1", f"see http://{MASK}@host:80/v1"),
    ],
)
def test_what_looks_like_a_secret_goes(text, left):
    assert redact(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "a risk-averse, task-oriented disk-usage model",
        "The provider refused the key for openai/gpt-4o (401): check OPENAI_API_KEY.",
        "Nothing listens at http://127.0.0.1:9/v1: start the server or correct the api base.",
        "mail me@example.org, see https://example.org/v1",
        "x = 3, key = 4",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == text


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, None),
        ("  ", None),
        ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
        (" https://Host.example/v1/ ", "https://host.example/v1"),
        ("https://me:pw@host/v1?key=abc#there", "https://host/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_api_base_is_shown_without_credentials(url, shown):
    assert public_base(url) == shown


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8080", "ftp://host/v1", "http://", "http://host:port/v1", "http://a b/", "http://[::1/v1"],
)
def test_what_is_no_http_url_is_refused_in_a_sentence(url):
    with pytest.raises(ValueError, match=r"^The api base .* is not an http or https URL: give one like .*\.$"):
        public_base(url)


def test_a_refused_api_base_tells_no_password():
    with pytest.raises(ValueError, match="ftp") as caught:
        public_base("ftp://me:hunter2@host/v1")
    assert "hunter2" not in str(caught.value)
