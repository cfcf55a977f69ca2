"""A panel of models, through LiteLLM. Importing this module does not import LiteLLM."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import random
import re
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from json import JSONDecodeError
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from ..records import Agent, Settings, Turn
from ..secrets import public_base, redact
from ..signals import signals_from_logprobs
from .base import PanelError, Request, deal_agents

KEY_VARIABLE = "SVRMAD_API_KEY"
"""The environment variable with the key for a server given as api base."""
NO_KEY = "no-key"
"""Sent where a server needs none, because the client refuses to send nothing."""
MAX_REPLY = 200_000
"""Characters kept of a reply: the last ones, since the answer stands at the end."""
LONGEST_WAIT = 60.0
"""Seconds; a longer Retry-After is cut to this."""
MOST_QUOTED = 200
"""Characters quoted of what a provider said."""

_RETRIED = {"rate_limit", "timeout", "connection", "server", "bad_reply"}
_DROPPABLE = ("logprobs", "seed", "stream_options", "temperature")
_TELL_USAGE = {"anthropic", "bedrock", "cohere", "cohere_chat", "gemini", "ollama", "ollama_chat", "vertex_ai"}
"""Providers whose streams tell the usage in their own way; all others are asked to, as OpenAI is."""
_OWN_DOMAINS = {
    "anthropic": ("anthropic.com",),
    "azure": ("openai.azure.com", "cognitiveservices.azure.com"),
    "gemini": ("generativelanguage.googleapis.com",),
    "openai": ("openai.com",),
}
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|credit|balance|fund)|credit balance|payment required|billing_hard_limit"
)
_REFUSAL = re.compile(
    r"support|unknown|unrecogni[sz]ed|unexpected|extra|permitted|allowed|only the default|not available"
)
_NO_KEY_GIVEN = re.compile(r"api[_ ]key client option|missing .*(api[_ ]key|credentials)")
_BROKEN = {"openai.APIConnectionError", "httpx.ConnectError", "httpx.ReadError", "httpx.RemoteProtocolError"}
_PREFIX = re.compile(r"^((litellm\.)?[\w ]*(Error|Exception|Timeout)( -|:) )+")

_import_lock = threading.Lock()
_ready: ModuleType | None = None
"""LiteLLM, once it is imported and kept quiet."""
_users_lock = threading.Lock()
_users: WeakKeyDictionary[asyncio.AbstractEventLoop, set[int]] = WeakKeyDictionary()
"""Panels that have asked on a loop and are not closed: they share LiteLLM's clients of that loop."""


def warm_up() -> ModuleType:
    """Import LiteLLM, which takes seconds; for callers that want it done in the background.

    Any thread may call it. LiteLLM is kept from fetching its price list, from printing and from calling back.
    """
    global _ready
    with _import_lock:
        if _ready is not None:
            return _ready
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        # what its types make pydantic say, now or at the first call, is nothing a user can act on
        warnings.filterwarnings("ignore", message="Items? .* on TypedDict class")
        litellm = importlib.import_module("litellm")
        litellm.suppress_debug_info = True
        litellm.telemetry = False
        for callbacks in ("callbacks", "input_callback", "success_callback", "failure_callback"):
            setattr(litellm, callbacks, [])
        for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        warnings.filterwarnings("ignore", message="Pydantic serializer warnings")
        _ready = litellm
    return litellm


def is_ready() -> bool:
    """Whether LiteLLM is imported, so that a call or a price costs no seconds of waiting."""
    return _ready is not None


@dataclass(frozen=True)
class _Target:
    """Where and how one model is called."""

    model: str
    """As the user wrote it."""
    called: str
    """As LiteLLM is told."""
    provider: str
    key: str | None
    """None: LiteLLM finds it in the environment."""
    logprobs: bool
    forced: bool
    """LiteLLM would leave log-probabilities out, but the server may be any that speaks OpenAI's API."""
    priced: bool


@dataclass
class _Reply:
    """What counts of a response."""

    text: str = ""
    reasoning: str | None = None
    finish_reason: str | None = None
    model: str = ""
    logprobs: list[float] = field(default_factory=list)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None


@dataclass(frozen=True)
class _Fault:
    """Why an attempt failed."""

    kind: str
    status: int | None = None
    said: str = ""
    """The provider's words, secrets removed."""
    cause: str = ""
    """``refused``, ``no_host`` or ``no_key``, where that is known."""
    retry_after: float | None = None


@dataclass
class _Call:
    """One turn's call with its attempts."""

    litellm: ModuleType
    target: _Target
    parameters: dict[str, Any]
    timeout: float
    on_wait: Callable[[str, float], None] | None = None
    on_tokens: Callable[[int], None] | None = None
    sent: int = 0
    failed: int = 0
    timeouts: int = 0
    first_sent: float = 0.0


class LiteLLMPanel:
    """Models that answer for the agents, at any provider LiteLLM knows or any OpenAI-compatible server.

    Rate limits, timeouts, broken connections, server errors and unreadable replies are tried again with
    growing pauses; what cannot get better (a refused key, an unknown model, no credit) fails at once.

    Parameters
    ----------
    models
        LiteLLM ids (``openai/gpt-4o``), dealt to the agents round-robin. With an api base an id without a
        provider LiteLLM knows is taken to be that of an OpenAI-compatible server.
    api_base
        Where the models are served; None: at their providers.
    api_key
        The key for all of the models; None, without an api base: LiteLLM takes each provider's from the
        environment. With an api base the key is ``SVRMAD_API_KEY`` from the environment. Failing that, a
        provider's own key is sent only if the base is the one set in the same environment (such as
        ``OPENAI_BASE_URL``) or https on the provider's own domain; any other server gets a dummy.
    concurrency
        At most so many calls under way at a time, on each event loop.
    attempts
        How often a call is tried; one that gets no answer in time is tried at most twice.
    backoff
        Seconds before the second attempt, doubled for each one after; a Retry-After is waited for as well.

    Attributes
    ----------
    dropped : dict of str to set of str
        Parameters that a model's provider refused and that are not sent to it any more; of logprobs, seed and
        temperature.

    Raises
    ------
    ValueError
        If there is no model, or the api base is not an http or https URL.
    """

    simulated = False

    def __init__(
        self,
        models: list[str] | str,
        *,
        api_base: str | None = None,
        api_key: str | None = None,
        concurrency: int = 8,
        attempts: int = 4,
        backoff: float = 1.0,
    ) -> None:
        self.models = [models] if isinstance(models, str) else list(models)
        if not self.models or not all(m.strip() for m in self.models):
            raise ValueError("No model is given: name one, such as openai/gpt-4o.")
        self.shown_base = public_base(api_base)
        self._base = None if self.shown_base is None else (api_base or "").strip()
        self._key = api_key or None
        self._concurrency, self._attempts, self._backoff = max(1, concurrency), max(1, attempts), backoff
        self.dropped: dict[str, set[str]] = {}
        self._targets: dict[str, _Target] = {}
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def agents(self, settings: Settings) -> list[Agent]:
        """The N agents of a run with these settings, the models dealt round-robin."""
        return deal_agents(self.models, settings)

    async def ask(self, request: Request) -> Turn:
        """One turn, its answer read out of the reply.

        Raises
        ------
        PanelError
            If the turn failed for good; its message holds no secret.
        """
        from ..answers import read_reply

        litellm = _ready or await asyncio.to_thread(warm_up)
        with _users_lock:
            _users.setdefault(asyncio.get_running_loop(), set()).add(id(self))
        target = self._target(litellm, request.agent.model)
        settings = request.debate.settings
        parameters = self._parameters(target, request)
        call = _Call(litellm, target, parameters, settings.timeout, request.on_wait, request.on_tokens)
        reply = await self._answer(call)
        latency = time.perf_counter() - call.first_sent
        problem = request.debate.problem
        answer, confidence = read_reply(reply.text, problem.kind, problem.choices)
        return Turn(
            reply=reply.text,
            answer=answer,
            confidence=confidence,
            signals=signals_from_logprobs(reply.logprobs),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=reply.completion_tokens,
            cost=reply.cost,
            latency=round(latency, 4),
            model=reply.model or target.model,
            finish_reason=reply.finish_reason,
            reasoning=reply.reasoning,
        )

    def streams(self, model: str) -> bool:
        """Whether a model's replies are read as they are written, if somebody watches.

        Many providers leave log-probabilities out of a stream. So only those are streamed that give none anyway, or
        have refused them.

        Raises
        ------
        PanelError
            If LiteLLM knows no provider for the model.
        """
        return not self._target(warm_up(), model).logprobs or "logprobs" in self.dropped.get(model, ())

    def unpriced(self) -> list[str]:
        """The models whose calls have no known price, so that a budget in money cannot count them.

        Raises
        ------
        PanelError
            If LiteLLM knows no provider for a model.
        """
        return [model for model in dict.fromkeys(self.models) if self.price(model) is None]

    def price(self, model: str) -> tuple[float, float] | None:
        """What a token of a model costs, (prompt, completion) in US dollars, or None if no price is known.

        Raises
        ------
        PanelError
            If LiteLLM knows no provider for the model.
        """
        litellm = warm_up()
        target = self._target(litellm, model)
        listed = _listed(litellm, target) if target.priced else {}
        if not listed:
            return None
        return listed.get("input_cost_per_token") or 0.0, listed.get("output_cost_per_token") or 0.0

    async def aclose(self) -> None:
        """Close the connections of the running loop, once no other panel uses them."""
        loop = asyncio.get_running_loop()
        with _users_lock:
            users = _users.get(loop)
            if users is None or id(self) not in users:
                return
            users.discard(id(self))
            if users:
                return
        await _close_clients(warm_up())

    # -- what is sent ----------------------------------------------------------------------------------

    def _target(self, litellm: ModuleType, model: str) -> _Target:
        if model not in self._targets:
            self._targets[model] = self._find_target(litellm, model)
        return self._targets[model]

    def _find_target(self, litellm: ModuleType, model: str) -> _Target:
        called, known = model, _provider_of(litellm, model)
        if known is None and self._base is None:
            raise PanelError(
                "not_found",
                f"LiteLLM knows no provider for {model}: write provider/model, such as openai/gpt-4o.",
            )
        if known is None:
            called, known = f"openai/{model}", ("openai", None)
        provider, default_base = known
        supported = "logprobs" in (litellm.get_supported_openai_params(called) or [])
        compatible = provider == "openai" or provider in litellm.openai_compatible_providers
        served = self._base or _environment_base(provider) or default_base
        return _Target(
            model=model,
            called=called,
            provider=provider,
            key=self._key_for(provider, default_base),
            logprobs=supported or (self._base is not None and compatible),
            forced=not supported,
            # a model at somebody's own server costs what that costs, whatever its name
            priced=served is None or _is_own(provider, served, default_base),
        )

    def _key_for(self, provider: str, default_base: str | None) -> str | None:
        if self._key is not None or self._base is None:
            return self._key
        given = os.environ.get(KEY_VARIABLE, "").strip()
        if given:
            return given
        of_environment = _environment_base(provider)
        if of_environment is not None and self._base.rstrip("/") == of_environment.rstrip("/"):
            return None
        return None if _is_own(provider, self._base, default_base) else NO_KEY

    def _parameters(self, target: _Target, request: Request) -> dict[str, Any]:
        agent, settings = request.agent, request.debate.settings
        optional = {
            "temperature": agent.temperature if agent.temperature is not None else settings.temperature,
            "seed": agent.seed,
            "logprobs": True if target.logprobs else None,
            "allowed_openai_params": ["logprobs"] if target.logprobs and target.forced else None,
            "api_base": self._base,
            "api_key": target.key,
        }
        return {
            "model": target.called,
            "messages": request.messages(),
            "max_tokens": settings.max_tokens,
            "timeout": settings.timeout,
            # tried again here and nowhere else, so that attempts and time stay bounded
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            **{name: value for name, value in optional.items() if value is not None},
        }

    # -- attempts --------------------------------------------------------------------------------------

    async def _answer(self, call: _Call) -> _Reply:
        while True:
            reply, fault = await self._attempt(call)
            if reply is not None:
                return reply
            if self._drop_refused(call, fault):
                continue
            call.failed += 1
            call.timeouts += fault.kind == "timeout"
            if fault.kind not in _RETRIED or call.failed >= self._attempts or call.timeouts > 1:
                raise PanelError(fault.kind, self._message(call, fault), call.sent)
            pause = self._pause(call.failed, fault.retry_after)
            if call.on_wait is not None:
                call.on_wait(fault.kind, pause)
            await asyncio.sleep(pause)

    async def _attempt(self, call: _Call) -> tuple[_Reply | None, _Fault]:
        async with self._slot():
            refused = self.dropped.get(call.target.model, set())
            streamed = call.on_tokens is not None and ("logprobs" not in call.parameters or "logprobs" in refused)
            if streamed and "stream" not in call.parameters:
                call.parameters |= _stream_parameters(call.target)
            for name in refused:
                call.parameters.pop(name, None)
            call.sent += 1
            call.first_sent = call.first_sent or time.perf_counter()
            try:
                with _unlogged():
                    # LiteLLM's own timeout is for each read; a reply that trickles in would outlast it
                    asked = _streamed(call) if streamed else call.litellm.acompletion(**call.parameters)
                    response = await asyncio.wait_for(asked, call.timeout)
                return _reply_of(call, response), _Fault("")
            except Exception as error:
                parts = _refused_parts(error)
                if parts is not None:
                    return _Reply(text=_text(parts)), _Fault("")
                return None, _fault_of(call.litellm, error, self._secrets(call))

    def _slot(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            self._slots[loop] = asyncio.Semaphore(self._concurrency)
        return self._slots[loop]

    def _drop_refused(self, call: _Call, fault: _Fault) -> bool:
        """Leave out a parameter that the provider refused, now and in later calls of the model."""
        said = fault.said.lower()
        if fault.kind != "bad_request" or not _REFUSAL.search(said):
            return False
        refused = {n for n in _DROPPABLE if n in call.parameters and re.search(rf"\b(top_)?{n}\b", said)}
        if refused:
            self.dropped.setdefault(call.target.model, set()).update(refused)
        return bool(refused)

    def _pause(self, failed: int, retry_after: float | None) -> float:
        """Seconds before the next attempt, scattered so that agents do not all come back at once."""
        growing = self._backoff * 2 ** (failed - 1) * random.uniform(0.5, 1.5)
        if retry_after is None:
            return growing
        return max(growing, retry_after + self._backoff * random.uniform(0, 0.5))

    def _secrets(self, call: _Call) -> list[str | None]:
        password = urlsplit(self._base).password if self._base else None
        return [self._key, None if call.target.key == NO_KEY else call.target.key, password]

    # -- what went wrong -------------------------------------------------------------------------------

    def _message(self, call: _Call, fault: _Fault) -> str:
        """One sentence: what is wrong and what to do."""
        sentence = _SENTENCES[fault.kind] if fault.kind in _SENTENCES else self._sentence(call, fault)
        base = self.shown_base
        said = " ".join(fault.said.split())[:MOST_QUOTED]
        status = "" if fault.status is None else str(fault.status)
        quoted = ", ".join(x for x in (status, f'"{said}"' if said else "") if x)
        filled = sentence.format(
            model=call.target.model,
            server=base or f"the provider of {call.target.model}",
            Server=base or f"The provider of {call.target.model}",
            at=f" at {base}" if base else "",
            code=f" ({status})" if status else "",
            why=f" ({quoted})" if quoted else "",
            tries=call.failed,
            timeout=f"{call.timeout:g}",
            key=self._key_name(call.target),
        )
        return " ".join(redact(filled, self._secrets(call)).split())

    def _sentence(self, call: _Call, fault: _Fault) -> str:
        """The sentence where more than the kind decides it."""
        if fault.kind == "auth":
            if fault.cause == "no_key":
                return "There is no key for {model}: set {key}."
            if call.target.key == NO_KEY:
                return "{server} wants a key for {model}{code}: set {key}."
            refused = "The provider refused the key for {model}"
            return f"{refused}{'{code}' if fault.status == 401 else '{why}'}: check {{key}}."
        if fault.kind == "connection" and self.shown_base is None:
            return "The connection to {server} failed: check the network and try again."
        if fault.cause == "refused":
            return "Nothing listens at {server}: start the server or correct the api base."
        if fault.cause == "no_host":
            return "There is no host of the name in {server}: correct the api base."
        return "The connection to {server} broke before a reply came: check the server and try again."

    def _key_name(self, target: _Target) -> str:
        """Where the key that was sent came from."""
        if self._key is not None:
            return "the key you gave"
        if target.key is not None:
            return KEY_VARIABLE
        return f"{target.provider.upper()}_API_KEY"


_SENTENCES = {
    "bad_reply": "{Server} replied with something that is no chat completion, {tries} times: "
    "check that it speaks OpenAI's API, or try again later.",
    "bad_request": "{Server} did not accept the request for {model}{why}: check the model and the settings.",
    "content_filter": "The provider's filter refused the request for {model}: reword the question "
    "or take another model.",
    "context_length": "The conversation is too long for {model}: take a model with a longer context, "
    "fewer rounds or the memory setting last.",
    "credit": "The account for {model} has no credit left{code}: add credit or use another key.",
    "internal": "The call to {model} failed inside LiteLLM{why}: try another model.",
    "not_found": "{Server} does not know {model}{why}: check the model's name and the api base.",
    "rate_limit": "{Server} limits how often {model} may be called, and did so {tries} times: wait a while, "
    "or have fewer calls at a time.",
    "server": "{Server} failed {tries} times{why}: try again later.",
    "timeout": "No answer within {timeout} s from {model}{at}: raise the timeout or take a faster model.",
}


def _provider_of(litellm: ModuleType, model: str) -> tuple[str, str | None] | None:
    """(provider, its usual api base) of a model id, or None if LiteLLM knows none."""
    try:
        _, provider, _, base = litellm.get_llm_provider(model)
    except litellm.BadRequestError:
        return None
    return provider, base


def _environment_base(provider: str) -> str | None:
    """The api base that LiteLLM finds in the environment by itself."""
    for ending in ("_BASE_URL", "_API_BASE"):
        value = os.environ.get(f"{provider.upper()}{ending}", "").strip()
        if value:
            return value
    return None


def _is_own(provider: str, base: str, default_base: str | None) -> bool:
    """Whether a base is https at the provider itself."""
    parts = urlsplit(base)
    host = parts.hostname or ""
    if parts.scheme != "https" or not host:
        return False
    if default_base and _environment_base(provider) is None and host == urlsplit(default_base).hostname:
        return True
    return any(host == own or host.endswith(f".{own}") for own in _OWN_DOMAINS.get(provider, ()))


def _unlogged() -> AbstractContextManager[None]:
    """Keeps LiteLLM from starting logging tasks and threads for a call, where it offers that."""
    try:
        from litellm._internal_context import internal_sub_call
    except ImportError:
        return nullcontext()
    return internal_sub_call()


async def _close_clients(litellm: ModuleType) -> None:
    """Close LiteLLM's clients of the running loop only: other loops' clients may be in use."""
    try:
        from litellm.caching.evicted_client_closer import running_loop_token
    except ImportError:
        return
    cache = litellm.in_memory_llm_clients_cache
    ending = f"-{running_loop_token()}"
    for key in [k for k in cache.cache_dict if str(k).endswith(ending)]:
        client = cache.cache_dict.get(key)
        cache.delete_cache(key)
        close = getattr(client, "aclose", None) or getattr(client, "close", None)
        try:
            closing = close() if close is not None else None
            if inspect.isawaitable(closing):
                await closing
        except Exception:
            # it is being thrown away: one that cannot be closed is left to the collector
            continue


# -- reading a response --------------------------------------------------------------------------------


def _stream_parameters(target: _Target) -> dict[str, Any]:
    parameters: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
    if target.provider not in _TELL_USAGE:
        # LiteLLM leaves out what it does not know of, and would then guess the usage
        parameters["allowed_openai_params"] = ["stream_options"]
    return parameters


async def _streamed(call: _Call) -> Any:
    """A response read piece by piece, with each counted, and put together as if it had come whole."""
    assert call.on_tokens is not None
    stream = await call.litellm.acompletion(**call.parameters)
    pieces: list[Any] = []
    count = 0
    try:
        async for piece in stream:
            pieces.append(piece)
            delta = piece.choices[0].delta if piece.choices else None
            if delta is not None and (delta.content or getattr(delta, "reasoning_content", None)):
                count += 1
                call.on_tokens(count)
    finally:
        # who stops in the middle leaves no connection behind
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    whole = call.litellm.stream_chunk_builder(pieces, messages=call.parameters["messages"])
    usage = next((p.usage for p in reversed(pieces) if getattr(p, "usage", None)), None)
    if whole is None or (not count and usage is None):
        raise JSONDecodeError("nothing came", "", 0)
    # the builder would count what it was not told
    whole.usage = usage
    return whole


def _reply_of(call: _Call, response: Any) -> _Reply:
    """What counts of a response; an exception if it holds no reply."""
    choice = response.choices[0]
    message = choice.message
    text = _text(message.content)
    reasoning = getattr(message, "reasoning_content", None)
    prompt_tokens, completion_tokens = _usage(getattr(response, "usage", None))
    finish_reason = choice.finish_reason
    reply = _Reply(
        text=text,
        reasoning=_text(reasoning) if isinstance(reasoning, str) and reasoning else None,
        finish_reason=finish_reason if isinstance(finish_reason, str) else None,
        model=response.model if isinstance(response.model, str) else "",
        logprobs=_logprobs(choice),
        prompt_tokens=prompt_tokens,
        completion_tokens=completion_tokens,
    )
    if call.target.priced and prompt_tokens is not None and completion_tokens is not None:
        reply.cost = _cost(call, response)
    return reply


def _text(content: Any) -> str:
    """The text of a content that may be null, a string, or a list of parts."""
    if isinstance(content, list):
        parts = [p if isinstance(p, str) else _field(p, "text") for p in content]
        content = "".join(p for p in parts if isinstance(p, str))
    if not isinstance(content, str):
        return ""
    # half a surrogate pair is legal JSON, and no file could be written with it
    return content[-MAX_REPLY:].encode("utf-8", "replace").decode("utf-8")


def _field(thing: Any, name: str) -> Any:
    return thing.get(name) if isinstance(thing, dict) else getattr(thing, name, None)


def _logprobs(choice: Any) -> list[float]:
    tokens = _field(getattr(choice, "logprobs", None), "content")
    values = [_field(t, "logprob") for t in tokens] if isinstance(tokens, list) else []
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)]


def _usage(usage: Any) -> tuple[int | None, int | None]:
    """(prompt, completion) tokens; LiteLLM writes 0 where the provider told nothing."""
    prompt, completion = _field(usage, "prompt_tokens"), _field(usage, "completion_tokens")
    known = [v if isinstance(v, int) and v >= 0 else None for v in (prompt, completion)]
    if not any(known):
        return None, None
    # a prompt is never empty
    return known[0] or None, known[1]


def _cost(call: _Call, response: Any) -> float | None:
    """US dollars by LiteLLM's price list, or None if the model is not in it."""
    litellm, target = call.litellm, call.target
    if not _listed(litellm, target):
        return None
    try:
        cost = litellm.completion_cost(
            completion_response=response, model=target.called, custom_llm_provider=target.provider
        )
    except Exception:
        # LiteLLM raises plain exceptions of many kinds for what it cannot price
        return None
    return float(cost) if cost >= 0 else None


def _listed(litellm: ModuleType, target: _Target) -> dict[str, Any]:
    """What LiteLLM's price list holds on the model; empty if it holds no price of a token."""
    name = target.called.removeprefix(f"{target.provider}/")
    listed = [litellm.model_cost.get(n) for n in (target.called, name, f"{target.provider}/{name}")]
    entry = next((e for e in listed if e), {})
    priced = entry.get("input_cost_per_token") is not None or entry.get("output_cost_per_token") is not None
    return entry if priced else {}


def _refused_parts(error: Exception) -> list[Any] | None:
    """The parts of a content that LiteLLM refuses to read because it is a list."""
    for link in _chain(error):
        for problem in _details(link):
            if problem.get("loc") == ("content",) and isinstance(problem.get("input"), list):
                return problem["input"]
    return None


def _details(error: BaseException) -> list[dict[str, Any]]:
    from pydantic import ValidationError

    return list(error.errors()) if isinstance(error, ValidationError) else []


# -- reading an error ----------------------------------------------------------------------------------


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception and those it came from."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _fault_of(litellm: ModuleType, error: Exception, secrets: list[str | None]) -> _Fault:
    headers = _headers(error)
    if not headers:
        # no response came, or none that could be read: only the exceptions underneath tell which
        local = _local_fault(error)
        if local is not None:
            return local
    status = _field(error, "status_code")
    status = status if isinstance(status, int) else None
    body = getattr(error, "body", None)
    body = body if isinstance(body, dict) else {}
    said = str(body.get("message") or _PREFIX.sub("", str(error)))
    said = "" if "Traceback" in said else redact(said, secrets)
    told = " ".join(str(x) for x in (error, body.get("code"), body.get("type"))).lower()
    if not headers and _NO_KEY_GIVEN.search(told):
        return _Fault("auth", cause="no_key")
    kind, param = _kind(litellm, error, status, told), body.get("param")
    if kind == "bad_request" and isinstance(param, str) and param not in said:
        said = f"{param}: {said}"
    return _Fault(kind, status, said, retry_after=_retry_after(headers))


def _headers(error: Exception) -> dict[str, str]:
    """The headers of the response that an error came with; empty if there was none."""
    found = getattr(getattr(error, "response", None), "headers", None)
    found = found or getattr(error, "litellm_response_headers", None)
    try:
        return {str(k).lower(): str(v) for k, v in dict(found or {}).items()}
    except (TypeError, ValueError):
        return {}


def _local_fault(error: Exception) -> _Fault | None:
    """The fault if the exceptions underneath say that no readable response came."""
    links = list(_chain(error))
    names = {f"{type(link).__module__.partition('.')[0]}.{type(link).__name__}" for link in links}
    if any(isinstance(link, TimeoutError) for link in links) or any("Timeout" in name for name in names):
        return _Fault("timeout")
    if any(isinstance(link, socket.gaierror) for link in links):
        return _Fault("connection", cause="no_host")
    if any(isinstance(link, ConnectionRefusedError) for link in links):
        return _Fault("connection", cause="refused")
    if names & _BROKEN or any(isinstance(link, ConnectionError) for link in links):
        return _Fault("connection")
    unreadable = JSONDecodeError, LookupError, AttributeError, TypeError
    if any(isinstance(link, unreadable) or _details(link) for link in links):
        return _Fault("bad_reply")
    if re.search(r"no 'choices'|invalid response", str(error), re.IGNORECASE):
        return _Fault("bad_reply")
    return None


def _kind(litellm: ModuleType, error: Exception, status: int | None, told: str) -> str:
    """The kind of an error that a provider, or LiteLLM for it, reported."""
    if status == 402 or _NO_CREDIT.search(told):
        return "credit"
    if isinstance(error, litellm.ContextWindowExceededError) or "context_length_exceeded" in told:
        return "context_length"
    if isinstance(error, litellm.ContentPolicyViolationError) or re.search(
        r"content_policy_violation|content_filter|safety system", told
    ):
        return "content_filter"
    by_status = {401: "auth", 403: "auth", 404: "not_found", 408: "timeout", 429: "rate_limit"}
    if status in by_status:
        return by_status[status]
    if status is None:
        return "bad_reply" if isinstance(error, litellm.APIError) else "internal"
    return "server" if status >= 500 else "bad_request"


def _retry_after(headers: dict[str, str]) -> float | None:
    """Seconds that a provider asks to wait, at most ``LONGEST_WAIT``."""
    value = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", value):
        return min(float(value), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max((until - datetime.now(UTC)).total_seconds(), 0.0), LONGEST_WAIT)
