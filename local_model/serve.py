"""Serve the local model on loopback as an OpenAI-compatible endpoint: ``python local_model/serve.py``.

Chat completions with usage and, at nearly full speed, the log-probability of every token: a logits processor
keeps each step's logits and their log-sum-exp, and the next step, which shows the token that was sampled,
looks its logit up. (Asking llama-cpp-python for logprobs sorts the whole vocabulary in Python for each token.)
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
from fetch import NAME, WEIGHTS

MODEL_ID = "qwen2.5-coder-1.5b-instruct"
MOST_BYTES = 4 * 2**20


class BadRequest(Exception):
    """What the client can put right, as OpenAI's error object tells it."""

    def __init__(self, message: str, code: str = "invalid_request") -> None:
        super().__init__(message)
        self.code = code


class TokenLogprobs(llama_cpp.LogitsProcessor if hasattr(llama_cpp, "LogitsProcessor") else object):  # type: ignore[misc]
    """Collects the log-probability, at temperature 1, of each token as it is sampled."""

    def __init__(self) -> None:
        self.found: list[float] = []
        self._logits: np.ndarray | None = None
        self._log_sum = 0.0

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.see(int(input_ids[-1]))
        self._logits = np.array(scores, dtype=np.float32)
        top = float(self._logits.max())
        self._log_sum = top + float(np.log(np.exp(self._logits - top).sum()))
        return scores

    def see(self, token: int) -> None:
        """Look up the token that was sampled from the logits kept."""
        if self._logits is not None:
            self.found.append(float(self._logits[token]) - self._log_sum)


class Generator:
    """The model, asked by one request at a time, in the order they come."""

    def __init__(self, path: Path, threads: int, context: int) -> None:
        self.llama = llama_cpp.Llama(str(path), n_ctx=context, n_threads=threads, n_batch=512, verbose=False)
        self.context = context
        self._turn = threading.Lock()
        template = self.llama.metadata["tokenizer.chat_template"]
        eos = self.llama.token_eos()
        self._format = llama_cpp.llama_chat_format.Jinja2ChatFormatter(
            template=template,
            eos_token=self.llama._model.token_get_text(eos),
            bos_token="",
            stop_token_ids=[eos],
        )

    def chat(self, body: dict[str, Any], gone: Any) -> Iterator[dict[str, Any]]:
        """Yield a dict for each token (``text``, ``logprob``), the last with ``finish`` and ``usage``.

        ``gone()`` says that the client has left; the generation then ends.
        """
        prompt = self._format(messages=body["messages"]).prompt
        tokens = self.llama.tokenize(prompt.encode(), add_bos=False, special=True)
        most = body.get("max_tokens") or body.get("max_completion_tokens") or self.context
        room = self.context - len(tokens)
        if room < 1:
            raise BadRequest(
                f"The prompt has {len(tokens)} tokens and the context {self.context}.",
                "context_length_exceeded",
            )
        with self._turn:
            if gone():
                return
            yield from self._generate(tokens, min(int(most), room), body, gone)

    def _generate(self, tokens: list[int], most: int, body: dict[str, Any], gone: Any) -> Iterator[dict[str, Any]]:
        seed = body.get("seed")
        self.llama.set_seed(int(seed) if seed is not None else int(time.time_ns() % 2**31))
        temperature = body.get("temperature")
        logprobs = TokenLogprobs()
        stream = self.llama.generate(
            tokens,
            temp=0.7 if temperature is None else float(temperature),
            top_p=float(body.get("top_p") or 1.0),
            # the whole vocabulary need not be sorted for each token; llama.cpp's own default
            top_k=40,
            min_p=0.0,
            repeat_penalty=1.0,
            logits_processor=llama_cpp.LogitsProcessorList([logprobs]),
        )
        stops = [s for s in _as_list(body.get("stop")) if s]
        told, raw, count, finish = "", b"", 0, "length"
        for token in stream:
            logprobs.see(token)
            logprobs._logits = None
            if (
                self.llama._model.token_is_eog(token)
                if hasattr(self.llama._model, "token_is_eog")
                else token == self.llama.token_eos()
            ):
                finish = "stop"
                break
            count += 1
            raw += self.llama.detokenize([token], special=False)
            text = raw.decode("utf-8", errors="ignore")
            # a character whose bytes are not all there yet waits for the next token
            piece = text[len(told) :] if not text.endswith("\ufffd") else ""
            cut = min((i for i in (text.find(s) for s in stops) if i >= 0), default=-1)
            if cut >= 0:
                yield {"text": text[len(told) : cut], "logprob": logprobs.found[-1]}
                finish = "stop"
                break
            told += piece
            yield {"text": piece, "logprob": logprobs.found[-1]}
            if count >= most or gone():
                break
        usage = {
            "prompt_tokens": len(tokens),
            "completion_tokens": count,
            "total_tokens": len(tokens) + count,
        }
        yield {"text": "", "finish": finish, "usage": usage}


def _as_list(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


def _checked(body: Any) -> dict[str, Any]:
    """The request body, or a sentence on what is wrong with it."""
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise BadRequest("'messages' must be a list with at least one message.")
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("content"), str):
            raise BadRequest("Each message needs a 'role' and a 'content' of text.")
        if message.get("role") not in ("system", "user", "assistant"):
            raise BadRequest("A message's role is system, user or assistant.")
    return body


class Handler(BaseHTTPRequestHandler):
    """The endpoints: /health, /v1/models, /v1/chat/completions."""

    protocol_version = "HTTP/1.1"
    generator: Generator

    def do_GET(self) -> None:
        if self.path == "/health":
            self._json(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self._json(200, {"object": "list", "data": [{"id": MODEL_ID, "object": "model", "owned_by": "local"}]})
        else:
            self._error(404, f"There is no {self.path}.", "not_found")

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            self._error(404, f"There is no {self.path}.", "not_found")
            return
        try:
            length = int(self.headers.get("Content-Length") or 0)
            if length > MOST_BYTES:
                raise BadRequest("The request is too large.")
            body = _checked(json.loads(self.rfile.read(length)))
            pieces = self.generator.chat(body, self._gone)
            if body.get("stream"):
                self._stream(body, pieces)
            else:
                self._whole(body, pieces)
        except (BadRequest, ValueError, TypeError) as error:
            self._error(400, str(error), getattr(error, "code", "invalid_request"))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _whole(self, body: dict[str, Any], pieces: Iterator[dict[str, Any]]) -> None:
        tokens = list(pieces)
        if not tokens:
            self.close_connection = True
            return
        end = tokens.pop()
        choice: dict[str, Any] = {
            "index": 0,
            "message": {"role": "assistant", "content": "".join(t["text"] for t in tokens)},
            "finish_reason": end["finish"],
            "logprobs": {"content": [_logprob(t) for t in tokens]} if body.get("logprobs") else None,
        }
        self._json(200, _envelope("chat.completion") | {"choices": [choice], "usage": end["usage"]})

    def _stream(self, body: dict[str, Any], pieces: Iterator[dict[str, Any]]) -> None:
        first = next(pieces, None)
        if first is None:
            self.close_connection = True
            return
        envelope = _envelope("chat.completion.chunk")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        wants_usage = (body.get("stream_options") or {}).get("include_usage")
        piece: dict[str, Any] | None = first
        while piece is not None:
            choice: dict[str, Any] = {
                "index": 0,
                "delta": {"role": "assistant", "content": piece["text"]} if "finish" not in piece else {},
                "finish_reason": piece.get("finish"),
            }
            if body.get("logprobs") and "logprob" in piece:
                choice["logprobs"] = {"content": [_logprob(piece)]}
            self._event(envelope | {"choices": [choice]})
            if "finish" in piece and wants_usage:
                self._event(envelope | {"choices": [], "usage": piece["usage"]})
            piece = next(pieces, None)
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def _gone(self) -> bool:
        """True if the client has closed its connection."""
        readable, _, _ = select.select([self.connection], [], [], 0)
        try:
            return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def _json(self, status: int, data: dict[str, Any]) -> None:
        payload = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def _error(self, status: int, message: str, code: str) -> None:
        self._json(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}})

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: requests hold people's questions."""


def _logprob(token: dict[str, Any]) -> dict[str, Any]:
    return {"token": token["text"], "logprob": token["logprob"], "bytes": None, "top_logprobs": []}


def _envelope(kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex[:12]}",
        "object": kind,
        "created": int(time.time()),
        "model": MODEL_ID,
    }


def main() -> int:
    """Load and serve until interrupted; returns the exit code."""
    parser = argparse.ArgumentParser(description="Serve the local model as an OpenAI-compatible endpoint.")
    parser.add_argument("--model", type=Path, default=WEIGHTS / NAME, metavar="FILE", help="a GGUF file")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="(default: all cores)")
    parser.add_argument("--context", type=int, default=16384, help="tokens of prompt and reply (default: 16384)")
    args = parser.parse_args()
    if not args.model.is_file():
        print(f"There is no {args.model}: run python local_model/fetch.py first.", file=sys.stderr)
        return 1
    Handler.generator = Generator(args.model, args.threads, args.context)
    server = ThreadingHTTPServer((args.host, args.port), Handler)
    server.daemon_threads = True
    print(f"{MODEL_ID} is ready at http://{args.host}:{server.server_port}/v1", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
