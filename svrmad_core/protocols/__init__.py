"""The protocols: pure functions from the debate so far to the next step, one line each in the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..debate import Debate
from . import all_to_all, self_consistency, svr_mad
from .steps import Answer, Challenge, Choose, Finish, Revise, Step, describe, vote


class Protocol(NamedTuple):
    """A protocol: its title, and the pure function that decides."""

    title: str
    next_step: Callable[[Debate], Step]


PROTOCOLS: dict[str, Protocol] = {
    "svr_mad": Protocol("SVR-MAD", svr_mad.next_step),
    "all_to_all": Protocol("All-to-all", all_to_all.next_step),
    "self_consistency": Protocol("Self-consistency", self_consistency.next_step),
}


def protocol(name: str) -> Protocol:
    """Look a protocol up by its name.

    Raises
    ------
    ValueError
        If there is none of that name; the sentence lists those there are.
    """
    try:
        return PROTOCOLS[name]
    except KeyError:
        raise ValueError(f"no protocol {name!r}; there are {', '.join(PROTOCOLS)}") from None


__all__ = [
    "PROTOCOLS",
    "Answer",
    "Challenge",
    "Choose",
    "Finish",
    "Protocol",
    "Revise",
    "Step",
    "describe",
    "protocol",
    "vote",
]
