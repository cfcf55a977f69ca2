"""Keep keys out of messages, recordings and links."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

MASK = "[removed]"
"""What stands in the place of a secret."""

_SECRET_NAME = re.compile(r"_(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
_SHORTEST_SECRET = 8
"""Shorter values of environment variables are words like "none" rather than secrets."""

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<=://)[^/\s\"'<>]*@"), f"{MASK}@"),
    (re.compile(r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=*-]{6,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)(api[_-]?key[\"']?\s*[=:]\s*[\"']?)[^\s\"'&,;)}\]]+"), rf"\1{MASK}"),
    (re.compile(r"(?i)([?&][\w-]*(?:key|token|secret|password|signature)=)[^\s\"'&#<>]+"), rf"\1{MASK}"),
    (re.compile(r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_*.-]{6,}"), MASK),
)


def redact(text: str, secrets: Iterable[str | None] = ()) -> str:
    """Remove what may be a secret from a text.

    Parameters
    ----------
    text
        Anything, for example what a provider said.
    secrets
        Values that must not show; empty ones and None are passed over.

    Returns
    -------
    str
        The text without these values and those of environment variables whose names end in _KEY, _TOKEN,
        _SECRET or _PASSWORD, and without what looks like a key, a bearer token, a key in a URL, or the user
        name and password of a URL.

    Examples
    --------
    >>> redact("GET https://me:pw@host/v1?key=abc with Bearer sk-abcdefgh")
    'GET https://[removed]@host/v1?key=[removed] with Bearer [removed]'
    """
    known = {s for s in secrets if s} | set(_environment_secrets())
    known |= {quote(s, safe="") for s in known}
    # a long value first: a short one may be a part of it
    for secret in sorted(known, key=len, reverse=True):
        text = text.replace(secret, MASK)
    for shape, instead in _SHAPES:
        text = shape.sub(instead, text)
    return text


def public_base(url: str | None) -> str | None:
    """Where models are served, as it may be shown and recorded.

    Parameters
    ----------
    url
        An api base as a user gave it.

    Returns
    -------
    str or None
        Scheme, host, port and path; no credentials, query, fragment or slash at the end. None for None and
        for a blank text.

    Raises
    ------
    ValueError
        If it is not an http or https URL; the message is a sentence for the user.

    Examples
    --------
    >>> public_base("http://me:secret@127.0.0.1:8080/v1/?key=abc")
    'http://127.0.0.1:8080/v1'
    """
    if url is None or not url.strip():
        return None
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not host or re.search(r"\s", url.strip()):
        shown = redact(url.strip())[:100]
        raise ValueError(f"The api base {shown!r} is not an http or https URL: give one like http://127.0.0.1:8080/v1.")
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path.rstrip('/')}"


def _environment_secrets() -> list[str]:
    return [
        value.strip()
        for name, value in os.environ.items()
        if _SECRET_NAME.search(name) and len(value.strip()) >= _SHORTEST_SECRET
    ]
