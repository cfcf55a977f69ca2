"""A real HTTP server that plays an OpenAI-compatible provider, with its faults.

The model's name says how it behaves: ``fake-ok`` answers, ``fake-401`` refuses the key, ``fake-hang`` never
answers; ``BEHAVIOURS`` has them all, and a name that is not among them answers. Alone, from the root of the
checkout: ``python -m tests.fakes.provider --port 8008``.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import select
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Reply = Callable[[Body], str]

HUGE = 300_000
"""Characters of the reply of ``fake-huge``."""
LONGEST_HANG = 60.0
"""Seconds after which a hanging call is given up, so that no thread stays for ever."""
_ANSWERS = ("42", "17", "23", "60")
_HEARD = re.compile(r"says the answer is (.+?)\. Its reasoning")


@dataclass(frozen=True)
class Recorded:
    """One request as it came in; header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: Body

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))


def seeded_reply(body: Body) -> str:
    """An answer and a confidence drawn from the body's seed, so that agents with other seeds disagree.

    Having heard others, an agent takes over the last answer it heard in about a third of the cases.
    """
    seed, messages = body.get("seed") or 0, body.get("messages") or []
    answer = _ANSWERS[seed % len(_ANSWERS)]
    chance = random.Random(f"{seed} {len(messages)}")
    heard = _HEARD.findall(_text(messages[-1])) if messages else []
    if heard and chance.random() < 0.35:
        answer = heard[-1]
    return f"I worked it out.\nAnswer: \\boxed{{{answer}}}\nConfidence: {chance.randrange(40, 96)}"


class FakeProvider:
    """An OpenAI-compatible server on a thread of this process; a context manager.

    Parameters
    ----------
    reply
        Gives the content of a reply from the request's body, or a list of contents that are given out in turn
        (the last one stays); None: ``seeded_reply``.
    latency
        Seconds each chat call takes; may be set while the server runs.
    retry_after
        The header of the 429 of ``fake-429`` and ``fake-429-once``.
    logprobs_in_stream
        False plays the providers that lose log-probabilities when streaming.
    token_delay
        Seconds before each token of a stream.
    port
        0 takes a free one.

    Attributes
    ----------
    requests : list of Recorded
        Every request that came in, in order.
    in_flight, most_in_flight : int
        Chat calls being answered now, and the most there ever were at one time.
    """

    def __init__(
        self,
        reply: Reply | Sequence[str] | None = None,
        *,
        latency: float = 0.0,
        retry_after: str = "0",
        logprobs_in_stream: bool = False,
        token_delay: float = 0.0,
        port: int = 0,
    ) -> None:
        self.latency, self.retry_after, self.logprobs_in_stream = latency, retry_after, logprobs_in_stream
        self.token_delay = token_delay
        self.requests: list[Recorded] = []
        self.in_flight = self.most_in_flight = 0
        self.closing = threading.Event()
        self._reply = reply if reply is None or callable(reply) else _script(list(reply))
        self._lock = threading.Lock()
        self._calls: Counter[str] = Counter()
        self._connections = 0
        self._server = _Server(("127.0.0.1", port), _Handler)
        self._server.provider = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="fake-provider", daemon=True
        )

    @property
    def base_url(self) -> str:
        """What a client is given as its api_base."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def open_connections(self) -> int:
        """Sockets that clients hold open now."""
        return self._connections

    def calls(self, model: str) -> int:
        """How many chat calls named this model."""
        return sum(r.method == "POST" and r.model == model for r in self.requests)

    def start(self) -> FakeProvider:
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving and let hanging calls go."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> FakeProvider:
        return self.start()

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- for the handler -------------------------------------------------------------------------------

    def note(self, recorded: Recorded) -> int:
        """Keep a request; which call of its model it is, from 1."""
        with self._lock:
            self.requests.append(recorded)
            self._calls[recorded.model] += 1
            return self._calls[recorded.model]

    def connected(self, change: int) -> None:
        with self._lock:
            self._connections += change

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            yield
        finally:
            with self._lock:
                self.in_flight -= 1

    def content(self, body: Body) -> str:
        with self._lock:
            return (self._reply or seeded_reply)(body)


def _script(replies: list[str]) -> Reply:
    """Gives the replies out in turn; the last one stays."""

    def next_reply(body: Body) -> str:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    return next_reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    provider: FakeProvider


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.provider.connected(+1)

    def finish(self) -> None:
        self.server.provider.connected(-1)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass

    def log_message(self, format: str, *args: Any) -> None:
        """Keep test output clean."""

    def do_GET(self) -> None:
        self._note({})
        if self.path.split("?")[0].endswith("/models"):
            self.send(200, {"object": "list", "data": [{"id": m, "object": "model"} for m in BEHAVIOURS]})
        else:
            self.send(404, _error("no such page", "not_found"))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw)
        except ValueError:
            self.send(400, _error("the body is not JSON", "bad_json"))
            return
        call = self._note(body)
        if not self.path.split("?")[0].endswith("/chat/completions"):
            self.send(404, _error("no such page", "not_found"))
            return
        provider = self.server.provider
        with provider.answering():
            if provider.latency:
                time.sleep(provider.latency)
            BEHAVIOURS.get(str(body.get("model")), _ok)(self, body, call)

    def _note(self, body: Body) -> int:
        headers = {k.lower(): v for k, v in self.headers.items()}
        return self.server.provider.note(Recorded(self.command, self.path, headers, body))

    # -- for the behaviours ----------------------------------------------------------------------------

    def send(self, status: int, payload: Any, headers: dict[str, str] | None = None) -> None:
        """Send a whole response in one write; ``payload`` is sent as JSON unless it is bytes."""
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self._headers_buffer.append(b"\r\n" + data)
        self.flush_headers()

    def gone(self, seconds: float) -> bool:
        """Wait; True if the client hung up or the server closes meanwhile."""
        readable, _, _ = select.select([self.connection], [], [], seconds)
        return bool(readable) or self.server.provider.closing.is_set()

    def complete(self, body: Body, **parts: Any) -> None:
        """Answer with a completion; ``parts`` replace fields of it (see ``_completion``)."""
        content = parts.pop("content", None) if "content" in parts else self.server.provider.content(body)
        if body.get("stream"):
            self._stream(body, content or "")
        else:
            self.send(200, _completion(body, content, **parts))

    def _stream(self, body: Body, content: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        tokens = _tokens(content)
        whole = _completion(body, content)
        for token, logprob in zip(tokens, _logprobs(body, content), strict=True):
            choice: Body = {
                "index": 0,
                "delta": {"role": "assistant", "content": token},
                "finish_reason": None,
            }
            if body.get("logprobs") and self.server.provider.logprobs_in_stream:
                choice["logprobs"] = {"content": [logprob]}
            time.sleep(self.server.provider.token_delay)
            self._event(whole | {"object": "chat.completion.chunk", "choices": [choice], "usage": None})
        end = {"index": 0, "delta": {}, "finish_reason": "stop"}
        self._event(whole | {"object": "chat.completion.chunk", "choices": [end], "usage": None})
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event(whole | {"object": "chat.completion.chunk", "choices": []})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: Body) -> None:
        self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())


def _text(message: Body) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else json.dumps(content)


def _tokens(content: str) -> list[str]:
    return re.findall(r"\s*\S+", content)


def _logprobs(body: Body, content: str) -> list[Body]:
    chance = random.Random(f"{body.get('seed')} logprobs")
    return [
        {"token": t, "logprob": -round(chance.expovariate(4.0), 4), "bytes": None, "top_logprobs": []}
        for t in _tokens(content)
    ]


def _completion(
    body: Body,
    content: Any,
    *,
    finish: str = "stop",
    reasoning: str | None = None,
    logprobs: Any = "seeded",
    usage: Any = "counted",
) -> Body:
    text = content if isinstance(content, str) else ""
    message = {"role": "assistant", "content": content}
    if reasoning is not None:
        message["reasoning_content"] = reasoning
    choice: Body = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
    if logprobs != "seeded":
        choice["logprobs"] = logprobs
    elif body.get("logprobs"):
        choice["logprobs"] = {"content": _logprobs(body, text)}
    prompt = 1 + sum(len(_text(m)) for m in body.get("messages") or []) // 4
    written = len(_tokens(text))
    if usage == "counted":
        usage = _usage(prompt, written)
    result = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body.get("model")}
    return result | {"choices": [choice]} | ({} if usage is None else {"usage": usage})


def _usage(prompt: int, written: int) -> Body:
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


def _error(message: str, code: str, kind: str = "invalid_request_error", param: str | None = None) -> Body:
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


# -- behaviours ----------------------------------------------------------------------------------------

Behaviour = Callable[[_Handler, Body, int], None]


def _ok(h: _Handler, body: Body, call: int) -> None:
    h.complete(body)


def _answers(**parts: Any) -> Behaviour:
    """Always answers, in some peculiar way."""
    return lambda h, body, call: h.complete(body, **parts)


def _fails(status: int, payload: Any, times: int | None = None) -> Behaviour:
    """Fails with a status, always or the first few times."""

    def behave(h: _Handler, body: Body, call: int) -> None:
        if times is not None and call > times:
            h.complete(body)
        else:
            headers = {"Retry-After": h.server.provider.retry_after} if status == 429 else None
            h.send(status, payload, headers)

    return behave


def _rejects(param: str, message: str) -> Behaviour:
    """Refuses a parameter as long as it is sent."""

    def behave(h: _Handler, body: Body, call: int) -> None:
        if param in body:
            h.send(400, _error(message, "unsupported_parameter", param=param))
        else:
            h.complete(body)

    return behave


def _hang(h: _Handler, body: Body, call: int) -> None:
    h.gone(LONGEST_HANG)
    h.close_connection = True


def _slow_headers(h: _Handler, body: Body, call: int) -> None:
    """A header every 50 ms and no end: no single read of the client ever waits long."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
    for i in range(int(LONGEST_HANG / 0.05)):
        if h.gone(0.05):
            break
        h.wfile.write(f"X-Slow-{i}: 1\r\n".encode())
    h.close_connection = True


def _drop(h: _Handler, body: Body, call: int) -> None:
    h.close_connection = True


def _echo_key(status: int) -> Behaviour:
    """Repeats the key it was sent, as some providers do."""

    def behave(h: _Handler, body: Body, call: int) -> None:
        given = h.headers.get("authorization", "")
        key = given.removeprefix("Bearer ")
        h.send(status, _error(f"Incorrect API key provided: {key} ({given})", "invalid_api_key"))

    return behave


_BUSY = _error("Rate limit reached, slow down", "rate_limit_exceeded", "requests")
_QUOTA = _error("You exceeded your current quota, check your billing", "insufficient_quota", "insufficient_quota")
_DOWN = _error("The server is overloaded", "server_error", "server_error")
_LONG = _error("This model's maximum context length is 8192 tokens", "context_length_exceeded", param="messages")
_FILTERED = _error("Rejected as a result of our safety system", "content_policy_violation")

BEHAVIOURS: dict[str, Behaviour] = {
    "fake-ok": _ok,
    "fake-400": _fails(400, _error("the messages are wrong\nin many ways", "invalid_value", param="messages")),
    "fake-401": _fails(401, _error("Incorrect API key provided", "invalid_api_key")),
    "fake-402": _fails(402, _error("Insufficient credits, add more", "insufficient_credits", "payment_required")),
    "fake-403": _fails(403, _error("This key may not use that model", "forbidden", "permission_error")),
    "fake-404": _fails(404, _error("The model fake-404 does not exist", "model_not_found")),
    "fake-429": _fails(429, _BUSY),
    "fake-429-once": _fails(429, _BUSY, times=1),
    "fake-429-quota": _fails(429, _QUOTA),
    "fake-500": _fails(500, _DOWN),
    "fake-500-once": _fails(500, _DOWN, times=1),
    "fake-502": _fails(502, b"<html>Bad gateway</html>"),
    "fake-503": _fails(503, _DOWN),
    "fake-504": _fails(504, _DOWN),
    "fake-hang": _hang,
    "fake-slow-headers": _slow_headers,
    "fake-drop": _drop,
    "fake-malformed": _fails(200, b'{"id": "chatcmpl-1", "choices": [{"mess'),
    "fake-malformed-once": _fails(200, b'{"id": "chatcmpl-1", "choices": [{"mess', times=1),
    "fake-no-choices": _fails(200, {"id": "chatcmpl-1", "object": "chat.completion", "model": "m"}),
    "fake-empty-choices": _fails(200, {"id": "1", "object": "chat.completion", "model": "m", "choices": []}),
    "fake-error-200": _fails(200, _error("Provider returned error", "upstream", "server_error")),
    "fake-not-an-object": _fails(200, b'"hello"'),
    "fake-null": _answers(content=None),
    "fake-empty-length": _answers(content="", finish="length"),
    "fake-filter": _answers(content=None, finish="content_filter"),
    "fake-filter-400": _fails(400, _FILTERED),
    "fake-reasoning": _answers(content=None, finish="length", reasoning="Let me think about it.", usage=_usage(0, 0)),
    "fake-parts": _answers(
        content=[{"type": "text", "text": "Answer: \\boxed{5}\n"}, {"type": "text", "text": "Confidence: 70"}]
    ),
    "fake-nologprobs": _answers(logprobs=None),
    "fake-odd-logprobs": _answers(logprobs={"content": [{"token": "a"}, {"token": "b", "logprob": None}]}),
    "fake-reject-logprobs": _rejects("logprobs", "logprobs is not supported by this model"),
    "fake-reject-seed": _rejects("seed", "Unsupported parameter: 'seed'"),
    "fake-reject-temperature": _rejects("temperature", "'temperature' does not support 0.7 with this model"),
    "fake-zero-usage": _answers(usage=_usage(0, 0)),
    "fake-no-usage": _answers(usage=None),
    "fake-context": _fails(400, _LONG),
    "fake-echo-key": _echo_key(401),
    "fake-echo-key-400": _echo_key(400),
    "fake-echo-key-403": _echo_key(403),
    "fake-echo-key-500": _echo_key(500),
    "fake-huge": _answers(content="x" * HUGE),
}
"""Model name -> how it behaves; ``call`` counts the calls that named the model, from 1."""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description="Play an OpenAI-compatible provider on 127.0.0.1.")
    parser.add_argument("--port", type=int, default=8008)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds each call takes")
    args = parser.parse_args()
    with FakeProvider(latency=args.latency, port=args.port) as provider:
        print(f"{provider.base_url}  models: {', '.join(BEHAVIOURS)}", flush=True)
        try:
            provider.closing.wait()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
