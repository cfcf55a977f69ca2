"""Serve the local model on loopback as an OpenAI-compatible endpoint: ``python local_model/serve.py``.

Chat completions with usage and, at full speed, the log-probability of every token: it is read from the logits
the token was sampled from. (llama-cpp-python's own ``logprobs`` sort the whole vocabulary for each token.)

The model answers one request at a time, in the order they came; a request whose client has left is dropped.
The same request with the same seed gets the same reply, whatever was asked before: processed prompts are
reused only in whole batches, so a token is always computed in the same batch as the first time.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import ctypes
import json
import os
import select
import socket
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from fetch import FOLDER, QWEN
from llama_cpp.llama_chat_format import Jinja2ChatFormatter

MODEL_ID = "qwen2.5-coder-1.5b-instruct"
MOST_BYTES = 4 * 2**20
"""Largest request body."""
BATCH = 64
"""Prompt tokens processed at once; a kept prompt is reused up to a multiple of this."""
TOP_K = 40
"""llama.cpp's default: of the whole vocabulary, the tail of a small quantised model is noise."""


class BadRequest(Exception):
    """What the client can put right, as OpenAI's error object tells it."""

    def __init__(self, message: str, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.code = code


class ClientGone(Exception):
    """Nobody waits for the reply any more."""


@dataclass(frozen=True)
class Chat:
    """A request, checked."""

    messages: list[dict[str, str]]
    temperature: float
    top_p: float
    top_k: int
    seed: int
    max_tokens: int | None
    stop: tuple[str, ...]
    logprobs: bool
    stream: bool
    stream_usage: bool

    @classmethod
    def read(cls, body: Any) -> Chat:
        """The request in a JSON body.

        Raises
        ------
        BadRequest
            If something is missing or out of range.
        """
        if not isinstance(body, dict):
            raise BadRequest("The body must be a JSON object.")
        if body.get("n") not in (None, 1):
            raise BadRequest("'n' must be 1: send a request for each reply.")
        most = "max_completion_tokens" if body.get("max_completion_tokens") is not None else "max_tokens"
        seed = _number(body, "seed", None, -(2**63), 2**64, whole=True)
        stop = body.get("stop") or []
        stop = [stop] if isinstance(stop, str) else stop
        if not isinstance(stop, list) or not all(isinstance(text, str) and text for text in stop):
            raise BadRequest("'stop' must be a text or a list of texts.")
        return cls(
            messages=_messages(body.get("messages")),
            temperature=_number(body, "temperature", 0.7, 0, 2),
            top_p=_number(body, "top_p", 1.0, 0, 1),
            top_k=_number(body, "top_k", TOP_K, 0, 10**6, whole=True),
            # the largest value means "any seed" to llama.cpp
            seed=(time.time_ns() if seed is None else seed) % (2**32 - 1),
            max_tokens=_number(body, most, None, 1, 10**6, whole=True),
            stop=tuple(stop),
            logprobs=bool(body.get("logprobs")),
            stream=bool(body.get("stream")),
            stream_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        )


def _number(body: dict[str, Any], name: str, default: Any, low: float, high: float, whole: bool = False) -> Any:
    value = body.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
        raise BadRequest(f"'{name}' must be {'a whole number' if whole else 'a number'}.")
    if not low <= value <= high:
        raise BadRequest(f"'{name}' must be from {low} to {high}.")
    return value


def _messages(messages: Any) -> list[dict[str, str]]:
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a list with at least one message.")
    result = []
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ("system", "user", "assistant"):
            raise BadRequest("Each message needs a 'role': system, user or assistant.")
        content = message.get("content")
        if isinstance(content, list) and all(isinstance(p, dict) and p.get("type") == "text" for p in content):
            content = "".join(str(part.get("text", "")) for part in content)
        if not isinstance(content, str):
            raise BadRequest("Each message needs a 'content' of text.")
        result.append({"role": message["role"], "content": content})
    return result


@dataclass(frozen=True)
class Token:
    """One token of a reply: the text it completes, its own bytes, its log-probability if asked for."""

    text: str
    raw: bytes
    logprob: float | None


@dataclass(frozen=True)
class End:
    """The end of a reply."""

    finish: str
    prompt_tokens: int
    completion_tokens: int

    @property
    def usage(self) -> dict[str, int]:
        """OpenAI's usage object."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
        }


class Turns:
    """Lets one thread in at a time, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[object] = deque()
        self._change = threading.Condition()

    @contextlib.contextmanager
    def turn(self, gone: Callable[[], bool]) -> Iterator[None]:
        """Wait for one's turn and hold it; raises ClientGone if ``gone()`` while waiting."""
        ticket = object()
        with self._change:
            self._waiting.append(ticket)
        try:
            with self._change:
                while self._waiting[0] is not ticket:
                    self._change.wait(timeout=0.5)
                    if gone():
                        raise ClientGone
            yield
        finally:
            with self._change:
                self._waiting.remove(ticket)
                self._change.notify_all()


class Model:
    """The model, asked by one request at a time.

    Parameters
    ----------
    path
        A GGUF file with a chat template.
    threads
        Threads to compute with.
    context
        Most tokens of prompt and reply together.
    slots
        Number of prompts whose processed state is kept: agents that take turns each find theirs again.

    Raises
    ------
    ValueError
        If the file cannot be loaded or has no chat template.
    """

    def __init__(self, path: Path, threads: int, context: int, slots: int) -> None:
        self.name = MODEL_ID if path.name == QWEN.file else path.stem.lower()
        self._llama = llama_cpp.Llama(
            str(path), n_ctx=context, n_batch=BATCH, n_threads=threads, n_threads_batch=threads, verbose=False
        )
        if "tokenizer.chat_template" not in self._llama.metadata:
            raise ValueError(f"{path.name} has no chat template.")
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        self._format = Jinja2ChatFormatter(
            self._llama.metadata["tokenizer.chat_template"],
            eos_token=self._token_text(self._llama.token_eos()),
            bos_token=self._token_text(self._llama.token_bos()),
        )
        self._slots = slots
        self._kept: list[tuple[list[int], ctypes.Array[ctypes.c_uint8]]] = []
        self._turns = Turns()
        self._closing = False

    def close(self) -> None:
        """End what is running and free the model."""
        self._closing = True
        with self._turns.turn(lambda: False):
            self._llama.close()

    def chat(self, request: Chat, gone: Callable[[], bool]) -> Iterator[Token | End]:
        """Yield the tokens of the reply, then its end.

        Raises
        ------
        BadRequest
            If the prompt leaves no room for a reply, or the template refuses the messages.
        ClientGone
            If ``gone()`` says so while the request waits or is answered.
        """
        try:
            prompt = self._format(messages=request.messages).prompt
        except Exception as error:  # whatever the template raises
            raise BadRequest(f"The model's chat template refuses these messages: {error}") from error
        tokens = self._llama.tokenize(prompt.encode(), add_bos=False, special=True)
        room = self._llama.n_ctx() - len(tokens)
        if room < 1:
            raise BadRequest(
                f"The messages have {len(tokens)} tokens, and the model's context is {self._llama.n_ctx()}.",
                "context_length_exceeded",
            )
        with self._turns.turn(gone):
            yield from self._reply(
                tokens, min(request.max_tokens or room, room), request, lambda: self._closing or gone()
            )

    def _reply(self, prompt: list[int], most: int, request: Chat, gone: Callable[[], bool]) -> Iterator[Token | End]:
        """The tokens up to a stop text; those that may begin one are held back until that is settled."""
        held: list[Token] = []
        count, finish = 0, "length"
        for token in self._sample(prompt, request, gone):
            if token is None:
                finish = "stop"
                break
            count += 1
            held.append(token)
            text = "".join(t.text for t in held)
            cut = min((at for stop in request.stop if (at := text.find(stop)) >= 0), default=None)
            if cut is not None:
                held, finish = _cut(held, cut), "stop"
                break
            yield from _release(held, _beginning(text, request.stop))
            if count == most:
                break
        yield from held
        yield End(finish, len(prompt), count)

    def _sample(self, prompt: list[int], request: Chat, gone: Callable[[], bool]) -> Iterator[Token | None]:
        """Tokens without end; None in place of a token that ends the reply."""
        for start in range(self._recall(prompt), (len(prompt) - 1) // BATCH * BATCH, BATCH):
            if gone():
                raise ClientGone
            self._llama.eval(prompt[start : start + BATCH])
        self._llama.set_seed(request.seed)
        # processes what is left of the prompt, at most a batch
        sampled = self._llama.generate(
            prompt,
            temp=request.temperature,
            top_p=request.top_p,
            top_k=request.top_k,
            min_p=0.0,
            repeat_penalty=1.0,
        )
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for number, token in enumerate(sampled):
            if gone():
                raise ClientGone
            if number == 0:
                self._keep(prompt)
            if llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                yield None
            raw = self._llama.detokenize([token])
            yield Token(decoder.decode(raw), raw, self._logprob(token) if request.logprobs else None)

    def _logprob(self, token: int) -> float:
        """The log-probability, at temperature 1 and over the whole vocabulary, of the token just sampled."""
        pointer = llama_cpp.llama_get_logits_ith(self._llama.ctx, -1)
        logits = np.ctypeslib.as_array(pointer, shape=(self._llama.n_vocab(),)).astype(np.float64)
        top = logits.max()
        return float(logits[token] - top - np.log(np.exp(logits - top).sum()))

    def _recall(self, prompt: list[int]) -> int:
        """Bring back the kept state with the longest beginning of the prompt; returns its number of tokens."""
        # cleared also for the order of the cells, on which rounding depends
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._llama.ctx), False)
        self._llama.reset()
        shared = [_shared(tokens, prompt) for tokens, _ in self._kept]
        most = max(shared, default=0)
        if most == 0:
            return 0
        self._kept.insert(0, self._kept.pop(shared.index(most)))
        tokens, state = self._kept[0]
        if not llama_cpp.llama_state_seq_set_data(self._llama.ctx, state, len(state), 0):
            return 0
        self._llama.input_ids[:most] = tokens[:most]
        self._llama.n_tokens = most
        return most

    def _keep(self, prompt: list[int]) -> None:
        """Keep the state of the prompt just processed in place of the beginnings it contains."""
        size = llama_cpp.llama_state_seq_get_size(self._llama.ctx, 0)
        state = (ctypes.c_uint8 * size)()
        if llama_cpp.llama_state_seq_get_data(self._llama.ctx, state, size, 0) == size:
            others = [kept for kept in self._kept if kept[0] != prompt[: len(kept[0])]]
            self._kept = [(prompt, state), *others][: self._slots]

    def _token_text(self, token: int) -> str:
        return self._llama.detokenize([token], special=True).decode(errors="replace") if token >= 0 else ""


def _shared(tokens: list[int], prompt: list[int]) -> int:
    """Length of the common beginning, in whole batches, with at least one token of the prompt left."""
    most = min(len(tokens), len(prompt) - 1)
    same = next((i for i in range(most) if tokens[i] != prompt[i]), most)
    return same // BATCH * BATCH


def _beginning(text: str, stops: tuple[str, ...]) -> int:
    """Length of the longest end of the text that may become a stop text."""
    return max((n for stop in stops for n in range(1, len(stop)) if text.endswith(stop[:n])), default=0)


def _release(held: list[Token], keep: int) -> Iterator[Token]:
    """Take from the front the tokens whose text is not among the last ``keep`` characters."""
    length = sum(len(token.text) for token in held)
    while held and length - len(held[0].text) >= keep:
        length -= len(held[0].text)
        yield held.pop(0)


def _cut(tokens: list[Token], length: int) -> list[Token]:
    """The tokens that begin before ``length`` characters; the last one's text is shortened to it."""
    result = []
    for token in tokens:
        if length <= 0:
            break
        result.append(Token(token.text[:length], token.raw, token.logprob))
        length -= len(token.text)
    return result


class Handler(BaseHTTPRequestHandler):
    """The endpoints: /health, /v1/models, /v1/chat/completions."""

    protocol_version = "HTTP/1.1"
    model: Model

    def do_GET(self) -> None:
        if self.path == "/health":
            self._json(200, {"status": "ok"})
        elif self.path == "/v1/models":
            model = {"id": self.model.name, "object": "model", "created": 0, "owned_by": "local"}
            self._json(200, {"object": "list", "data": [model]})
        else:
            self._error(404, f"There is no {self.path}.", "not_found")

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            self._error(404, f"There is no {self.path}.", "not_found")
            return
        try:
            request = Chat.read(self._body())
            # closed at once when the client leaves, so that the next in line is let in
            with contextlib.closing(self.model.chat(request, self._gone)) as pieces:
                if request.stream:
                    self._stream(request, pieces)
                else:
                    self._whole(request, pieces)
        except BadRequest as error:
            self._error(400, str(error), error.code)
        except (ClientGone, ConnectionError):
            self.close_connection = True

    def _body(self) -> Any:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > MOST_BYTES:
            raise BadRequest(f"The request needs a Content-Length of at most {MOST_BYTES:,} bytes.")
        try:
            return json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            raise BadRequest("The body is not JSON.") from None

    def _whole(self, request: Chat, pieces: Iterator[Token | End]) -> None:
        *tokens, end = pieces
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": "".join(token.text for token in tokens)},
            "finish_reason": end.finish,
            "logprobs": {"content": [_logprob(token) for token in tokens]} if request.logprobs else None,
        }
        self._json(200, {**self._envelope("chat.completion"), "choices": [choice], "usage": end.usage})

    def _stream(self, request: Chat, pieces: Iterator[Token | End]) -> None:
        first = next(pieces)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        envelope = self._envelope("chat.completion.chunk")
        choice: dict[str, Any] = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        self._event({**envelope, "choices": [choice]})
        for piece in (p for source in ([first], pieces) for p in source):
            if isinstance(piece, Token):
                choice = {"index": 0, "delta": {"content": piece.text}, "finish_reason": None}
                if request.logprobs:
                    choice["logprobs"] = {"content": [_logprob(piece)]}
                self._event({**envelope, "choices": [choice]})
                continue
            self._event({**envelope, "choices": [{"index": 0, "delta": {}, "finish_reason": piece.finish}]})
            if request.stream_usage:
                self._event({**envelope, "choices": [], "usage": piece.usage})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")

    def _gone(self) -> bool:
        """True if the client has closed its connection."""
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except (OSError, ValueError):
            return True

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
            "object": kind,
            "created": int(time.time()),
            "model": self.model.name,
        }

    def _json(self, status: int, data: dict[str, Any]) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        if status >= 400:
            # the body may not have been read, so the connection cannot be used again
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(payload)

    def _error(self, status: int, message: str, code: str) -> None:
        self._json(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests hold people's questions."""


class Server(ThreadingHTTPServer):
    """A thread for each connection, with room for a whole panel to call at once."""

    daemon_threads = True
    request_queue_size = 128


def _logprob(token: Token) -> dict[str, Any]:
    text = token.raw.decode(errors="replace")
    return {"token": text, "logprob": token.logprob, "bytes": list(token.raw), "top_logprobs": []}


def main() -> int:
    """Load and serve until interrupted; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve the local model as an OpenAI-compatible endpoint.")
    parser.add_argument("--model", type=Path, default=FOLDER / QWEN.file, metavar="FILE", help="a GGUF file")
    parser.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1, this computer only)")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: all cores)")
    parser.add_argument("--context", type=int, default=8192, help="tokens of prompt and reply (default: 8192)")
    parser.add_argument("--slots", type=int, default=8, help="prompts whose state is kept (default: 8)")
    args = parser.parse_args()
    if not args.model.is_file():
        print(f"There is no {args.model}: run python local_model/fetch.py first.", file=sys.stderr)
        return 1
    try:
        server = Server((args.host, args.port), Handler)
    except (OSError, OverflowError) as error:
        print(f"{args.host}:{args.port} cannot be used ({error}): choose another --port.", file=sys.stderr)
        return 1
    try:
        Handler.model = Model(args.model, args.threads, args.context, args.slots)
    except ValueError as error:
        print(f"{args.model} cannot be served: {error}", file=sys.stderr)
        return 1
    print(f"{Handler.model.name} is ready at http://{args.host}:{server.server_port}/v1", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        server.serve_forever()
    server.server_close()
    Handler.model.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
