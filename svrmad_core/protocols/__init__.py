"""The protocols: pure functions from the debate so far to the next step, one line each in the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..debate import Ask, Debate
from ..records import Settings
from . import all_to_all, free_mad, group_debate, s2_mad, self_consistency, sid_et, sparse, svr_mad
from .steps import Answer, Challenge, Choose, Finish, Revise, Step, Summarize, describe, vote


class Protocol(NamedTuple):
    """A protocol: its title, the pure function that decides, and whose it is."""

    title: str
    next_step: Callable[[Debate], Step]
    why: Callable[[Debate, Ask, int], str]
    """A sentence on why an agent hears whom it hears in a round; with nobody heard, on its initial answer."""
    source: str
    links: str
    """Links a round, as METHOD.md has them."""
    note: str = ""
    """What is left out, and why."""


PROTOCOLS: dict[str, Protocol] = {
    "svr_mad": Protocol("SVR-MAD", svr_mad.next_step, svr_mad.why, "Jiang et al., arXiv 2605.23099", "at most S"),
    "all_to_all": Protocol(
        "All-to-all", all_to_all.next_step, all_to_all.why, "Du et al. 2024, arXiv 2305.14325", "N(N − 1)"
    ),
    "self_consistency": Protocol(
        "Self-consistency", self_consistency.next_step, self_consistency.why, "Wang et al., arXiv 2203.11171", "0"
    ),
    "sparse": Protocol("Sparse", sparse.next_step, sparse.why, "Li et al. 2024, arXiv 2406.11776", "kN"),
    "group_debate": Protocol(
        "GroupDebate", group_debate.next_step, group_debate.why, "Liu et al. 2024, arXiv 2409.14051", "2N"
    ),
    "s2_mad": Protocol(
        "S2-MAD",
        s2_mad.next_step,
        s2_mad.why,
        "Zeng et al. 2025, arXiv 2502.04790",
        "beliefs − 1 for each participant",
        "The original's grouping is off, so that it compares.",
    ),
    "sid_et": Protocol(
        "SID early exit",
        sid_et.next_step,
        sid_et.why,
        "Chen et al. 2025, arXiv 2510.06843",
        "N − 1 for each who stays",
        "Only the early exit: SID's attention compression needs a model's attention, which no chat API gives.",
    ),
    "free_mad": Protocol(
        "Free-MAD", free_mad.next_step, free_mad.why, "Cui et al. 2025, arXiv 2509.11035", "N(N − 1), one round"
    ),
}


class Variant(NamedTuple):
    """A protocol with the settings that make it another method, to be compared as one of its own."""

    protocol: str
    title: str
    settings: Mapping[str, Any]


VARIANTS: dict[str, Variant] = {
    "svr_mad": Variant("svr_mad", "SVR-MAD", {"score": "svr"}),
    "svr_mad:prior": Variant("svr_mad", "SVR-MAD, score frozen at the prior", {"score": "prior"}),
    "svr_mad:beta": Variant("svr_mad", "SVR-MAD, Beta score", {"score": "beta"}),
    "all_to_all": Variant("all_to_all", "All-to-all", {}),
    "self_consistency": Variant("self_consistency", "Self-consistency", {}),
    "sparse": Variant("sparse", "Sparse", {}),
    "group_debate": Variant("group_debate", "GroupDebate", {"summaries": False}),
    "group_debate:summaries": Variant("group_debate", "GroupDebate with summaries", {"summaries": True}),
    "s2_mad": Variant("s2_mad", "S2-MAD", {}),
    "sid_et": Variant("sid_et", "SID early exit", {"exit_variant": "per_agent"}),
    "sid_et:gate_first": Variant("sid_et", "SID early exit, first agent alone", {"exit_variant": "gate_first"}),
    "free_mad": Variant("free_mad", "Free-MAD", {}),
}
"""All that can be compared, in the order they are listed: by protocol, or ``protocol:option``."""


def variant_of(name: str, settings: Settings) -> str:
    """The key of the variant that a run of a protocol with these settings is; an unknown protocol's name as it is."""
    for key, variant in VARIANTS.items():
        if variant.protocol == name and all(getattr(settings, k) == v for k, v in variant.settings.items()):
            return key
    return name


def variant_title(name: str, settings: Settings) -> str:
    """A run's method for people; an unknown protocol's name as it is."""
    key = variant_of(name, settings)
    return VARIANTS[key].title if key in VARIANTS else name


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
    "VARIANTS",
    "Answer",
    "Challenge",
    "Choose",
    "Finish",
    "Protocol",
    "Revise",
    "Step",
    "Summarize",
    "Variant",
    "describe",
    "protocol",
    "variant_of",
    "variant_title",
    "vote",
]
