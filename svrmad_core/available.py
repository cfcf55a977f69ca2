"""Which models can be asked from here: by the keys of the environment, and by the servers that listen.

Nothing here imports LiteLLM, and no key is read beyond whether there is one.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from .panels.simulated_panel import PRESETS
from .secrets import public_base

SIMULATED = ("simulated/hard", *(name for name in PRESETS if name != "simulated/hard"))

PROVIDERS: dict[str, tuple[str, ...]] = {
    "OPENAI_API_KEY": ("openai/gpt-4o-mini", "openai/gpt-4.1-mini", "openai/gpt-4.1"),
    "ANTHROPIC_API_KEY": ("anthropic/claude-haiku-4-5", "anthropic/claude-sonnet-4-5"),
    "GEMINI_API_KEY": ("gemini/gemini-2.5-flash", "gemini/gemini-2.5-pro"),
    "DEEPSEEK_API_KEY": ("deepseek/deepseek-chat",),
    "GROQ_API_KEY": ("groq/llama-3.3-70b-versatile", "groq/openai/gpt-oss-120b"),
    "MISTRAL_API_KEY": ("mistral/mistral-small-latest", "mistral/mistral-large-latest"),
    "XAI_API_KEY": ("xai/grok-3-mini",),
    "TOGETHERAI_API_KEY": ("together_ai/openai/gpt-oss-120b",),
    "OPENROUTER_API_KEY": ("openrouter/openai/gpt-oss-120b", "openrouter/deepseek/deepseek-chat"),
}
"""Environment variable of a provider's key -> models to begin with; any other LiteLLM id can be typed."""

USUAL_SERVERS: dict[int, str] = {11434: "Ollama", 1234: "LM Studio", 8000: "vLLM", 8080: "local model"}
"""Port on loopback -> what usually listens there."""

_MOST_BYTES = 2**20
_MOST_MODELS = 100


@dataclass(frozen=True)
class Server:
    """An OpenAI-compatible server that answers.

    Attributes
    ----------
    name
        What it probably is, or its host.
    base
        The api base, without credentials.
    models
        The names it tells, in its order.
    """

    name: str
    base: str
    models: tuple[str, ...]


class NoServer(RuntimeError):
    """Why an address cannot be used; one sentence."""


def keyed_models() -> list[str]:
    """Models of the providers whose key is in the environment."""
    return [model for variable, models in PROVIDERS.items() if os.environ.get(variable, "").strip() for model in models]


def local_servers(ports: Sequence[int] | None = None, timeout: float = 0.6) -> list[Server]:
    """OpenAI-compatible servers on this computer, all ports looked at at once.

    Parameters
    ----------
    ports
        None: those that ``SVRMAD_LOCAL_PORTS`` lists (``none``: not any), else those of ``USUAL_SERVERS``.
    timeout
        Seconds for each.
    """
    ports = _ports() if ports is None else list(ports)

    def look(port: int) -> Server | None:
        try:
            return server_at(f"http://127.0.0.1:{port}/v1", name=USUAL_SERVERS.get(port), timeout=timeout)
        except NoServer:
            return None

    if not ports:
        return []
    with ThreadPoolExecutor(len(ports), thread_name_prefix="look-for-servers") as pool:
        return [server for server in pool.map(look, ports) if server is not None]


def _ports() -> list[int]:
    text = os.environ.get("SVRMAD_LOCAL_PORTS", "").strip()
    return [int(p) for p in text.replace(",", " ").split() if p.isdecimal()] if text else list(USUAL_SERVERS)


def server_at(base: str, key: str | None = None, name: str | None = None, timeout: float = 5.0) -> Server:
    """Ask an OpenAI-compatible server for its models.

    Parameters
    ----------
    base
        Its api base, such as ``http://127.0.0.1:8080/v1``; without a path ``/v1`` is taken.
    key
        Sent as a bearer token; None: none is.
    name
        What to call it; None: its host and port.

    Raises
    ------
    NoServer
        If it does not answer, or not with a list of models; one sentence.
    ValueError
        If the base is no http or https URL; one sentence.
    """
    shown = public_base(base)
    if shown is None:
        raise ValueError("No address is given: write one like http://127.0.0.1:8080/v1.")
    if not urlsplit(shown).path:
        shown += "/v1"
    parts = urlsplit(shown)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    # one request and no redirect: what answers is what was named
    connection = kind(parts.hostname or "", parts.port, timeout=timeout)
    try:
        connection.request("GET", f"{parts.path}/models", headers={"Authorization": f"Bearer {key}"} if key else {})
        response = connection.getresponse()
        status, body = response.status, response.read(_MOST_BYTES)
    except TimeoutError:
        raise NoServer(f"{shown} does not answer within {timeout:g} s.") from None
    except (OSError, http.client.HTTPException):
        raise NoServer(
            f"Nothing that speaks HTTP answers at {shown}: start the server or correct the address."
        ) from None
    finally:
        connection.close()
    if status in (401, 403):
        raise NoServer(f"{shown} wants a key ({status}): type one.")
    models = _names(body)
    if status != 200 or not models:
        raise NoServer(f"{shown} answers, but not with a list of models ({status}): check that it speaks OpenAI's API.")
    return Server(name or parts.netloc, shown, models)


def _names(body: bytes) -> tuple[str, ...]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    listed = told.get("data") if isinstance(told, dict) else None
    names = [m.get("id") for m in listed if isinstance(m, dict)] if isinstance(listed, list) else []
    return tuple(n for n in names if isinstance(n, str) and n.strip())[:_MOST_MODELS]


__all__ = [
    "PROVIDERS",
    "SIMULATED",
    "USUAL_SERVERS",
    "NoServer",
    "Server",
    "keyed_models",
    "local_servers",
    "server_at",
]
