"""What visitors may do here: everything on this computer, little from elsewhere unless it is allowed.

Set by the environment, or by ``.streamlit/secrets.toml``, whose top level Streamlit puts into the environment.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal
from urllib.parse import urlsplit

import streamlit as st

from svrmad_core.panels.simulated_panel import PREFIX
from svrmad_core.records import Settings
from svrmad_core.secrets import public_base

from .runner import Limits

Library = Literal["open", "read-only", "private"]

_LOOPBACK = {"localhost", "127.0.0.1", "[::1]", "::1"}
_FORWARDED = ("X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Forwarded", "Via")
_OWN_KEY_PROVIDERS = (
    *("anthropic", "cohere_chat", "deepseek", "fireworks_ai", "gemini", "groq", "mistral", "openai", "openrouter"),
    *("together_ai", "xai"),
)
"""Where a visitor's own key may go: providers that LiteLLM knows the address of, and that are not on this computer."""
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]*(/[A-Za-z0-9][A-Za-z0-9._:@-]*)+")


class WrongSetting(ValueError):
    """A setting of the deployment that cannot be read; one sentence."""


@dataclass(frozen=True)
class Policy:
    """What the visitor of this session may do.

    Attributes
    ----------
    local
        The visitor sits at this computer (or ``SVRMAD_OPEN=yes``), so all is open.
    addresses
        Api bases that may be asked; None: any..
    models
        Patterns (``openai/gpt-4o*``) of models that are asked with the server's keys; None: any.
    own_keys
        Visitors may type a key of their own, for a provider's own address.
    run_cost, visitor_cost
        US dollars for one run, and for all runs of one visitor since the server started; None: no limit.
    run_tokens
        Tokens of one run; None: no limit.
    most_runs, most_each
        Runs under way at a time, of all and of one visitor.
    library
        ``open``; ``read-only``: nothing is deleted or resumed; ``private``: a visitor's list holds only own runs.
    """

    local: bool = True
    addresses: tuple[str, ...] | None = None
    models: tuple[str, ...] | None = None
    own_keys: bool = True
    run_cost: float | None = None
    visitor_cost: float | None = None
    run_tokens: int | None = None
    most_runs: int = 4
    most_each: int = 2
    library: Library = "open"

    @property
    def limits(self) -> Limits:
        """For the runner."""
        return Limits(self.most_runs, self.most_each, self.visitor_cost)

    def refuses(self, models: Sequence[str], settings: Settings, own_key: bool) -> str | None:
        """Why these models may not be asked here, in one sentence, or None if they may.

        Parameters
        ----------
        own_key
            The visitor has typed a key.
        """
        base = settings.api_base
        if base is not None and self.addresses is not None and base not in self.addresses:
            return f"This server does not ask models at {base}: choose one that is offered."
        for model in models:
            if model.startswith(PREFIX) or self.models is None:
                continue
            if any(fnmatchcase(model, pattern) for pattern in self.models):
                continue
            if base is not None and self.addresses is not None and not self.models:
                # an address that is listed is meant to be asked
                continue
            if base is not None or not (own_key and self.own_keys):
                hint = "choose one that is offered" + (", or type a key of your own" if self.own_keys else "")
                return f"This server does not ask {model} for visitors: {hint}."
            if model.split("/")[0] not in _OWN_KEY_PROVIDERS or not _MODEL.fullmatch(model):
                allowed = ", ".join(_OWN_KEY_PROVIDERS)
                return f"With a key of your own this server asks only the models of {allowed}, not {model}."
        return None

    def capped(self, settings: Settings, priced: bool) -> Settings:
        """The settings with the caps of this deployment; money can be held only where every model has a price."""
        update = {
            "max_cost": _least(settings.max_cost, self.run_cost) if priced else None,
            "max_tokens_total": _least(settings.max_tokens_total, self.run_tokens),
        }
        return settings.model_copy(update=update)


def current() -> Policy:
    """The policy for the visitor of this session; a setting that cannot be read stops the page with a sentence."""
    try:
        return read(is_local())
    except WrongSetting as error:
        st.error(str(error), icon=":material/error:")
        st.stop()


def read(local: bool) -> Policy:
    """The policy that the environment sets.

    Parameters
    ----------
    local
        The visitor sits at this computer; ``SVRMAD_OPEN`` (yes, no) overrules it.

    Raises
    ------
    WrongSetting
        If a setting cannot be read.
    """
    local = _yes("SVRMAD_OPEN", local)
    library = _text("SVRMAD_LIBRARY") or ("open" if local else "private")
    if library not in ("open", "read-only", "private"):
        raise WrongSetting(f"SVRMAD_LIBRARY is {library!r}: set it to open, read-only or private.")
    try:
        addresses = tuple(a for a in (public_base(x) for x in _list("SVRMAD_ADDRESSES") or ()) if a)
    except ValueError as error:
        raise WrongSetting(f"SVRMAD_ADDRESSES: {error}") from None
    return Policy(
        local=local,
        addresses=addresses if addresses or not local else None,
        models=_list("SVRMAD_MODELS") or (None if local else ()),
        own_keys=_yes("SVRMAD_OWN_KEYS", True),
        run_cost=_number("SVRMAD_MAX_COST_RUN", None if local else 0.5),
        visitor_cost=_number("SVRMAD_MAX_COST_VISITOR", None if local else 2.0),
        run_tokens=_whole("SVRMAD_MAX_TOKENS_RUN", None if local else 300_000),
        most_runs=_whole("SVRMAD_MOST_RUNS", 4) or 1,
        most_each=_whole("SVRMAD_MOST_RUNS_EACH", 2) or 1,
        library=library,  # type: ignore[arg-type]
    )


def is_local() -> bool:
    """Whether the visitor's browser runs on this computer, and no proxy stands between.

    The peer's address alone does not tell: behind a proxy on the same computer every visitor comes from loopback.
    So the names that the browser used, in Host and in Origin, must be those of loopback too.
    """
    if isinstance(st.context.ip_address, str) or any(_header(name) for name in _FORWARDED):
        return False
    host, origin = _header("Host"), _header("Origin")
    names = [urlsplit(f"//{host}").hostname] if host else []
    names += [urlsplit(origin).hostname] if origin else []
    return all(name in _LOOPBACK for name in names)


def _header(name: str) -> str | None:
    """A header of the request that opened this session; without a browser (in tests) there is none."""
    value = st.context.headers.get(name)
    return value if isinstance(value, str) else None


def visitor() -> str:
    """A name for the visitor of this session, the same after a reload, that tells nothing of whom it names.

    It comes from the cookie that Streamlit gives each browser against forged requests; without one it is the session's.
    """
    token = _token(st.context.cookies.get("_streamlit_xsrf"))
    if token is not None:
        return hashlib.sha256(token).hexdigest()[:20]
    return st.session_state.setdefault("visitor", secrets.token_hex(10))


def _token(cookie: object) -> bytes | None:
    """What stays the same in the cookie ``2|mask|masked token|time``, whose mask changes at every answer."""
    parts = cookie.split("|") if isinstance(cookie, str) else []
    try:
        mask, masked = bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except (IndexError, ValueError):
        return None
    return bytes(m ^ mask[i % len(mask)] for i, m in enumerate(masked)) if mask and masked else None


def _text(name: str) -> str:
    return os.environ.get(name, "").strip()


def _list(name: str) -> tuple[str, ...] | None:
    return tuple(filter(None, (x.strip() for x in _text(name).split(",")))) or None


def _yes(name: str, otherwise: bool) -> bool:
    text = _text(name).lower()
    if text in ("", "yes", "no", "true", "false", "1", "0"):
        return otherwise if not text else text in ("yes", "true", "1")
    raise WrongSetting(f"{name} is {text!r}: set it to yes or no.")


def _number(name: str, otherwise: float | None) -> float | None:
    text = _text(name)
    if text.lower() == "none":
        return None
    try:
        value = float(text) if text else otherwise
    except ValueError:
        value = -1.0
    if value is not None and not 0 <= value < float("inf"):
        raise WrongSetting(f"{name} is {text!r}: set it to a number that is not negative, or to none.")
    return value


def _whole(name: str, otherwise: int | None) -> int | None:
    value = _number(name, otherwise)
    if value is None:
        return None
    if value < 1 or value != int(value):
        raise WrongSetting(f"{name} is {_text(name)!r}: set it to a whole number of at least 1.")
    return int(value)


def _least(one: float | None, other: float | None) -> float | None:
    given = [x for x in (one, other) if x is not None]
    return min(given) if given else None


__all__ = ["Policy", "WrongSetting", "current", "is_local", "read", "visitor"]
