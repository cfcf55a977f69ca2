"""O(N^2 t), in numbers: how links and contexts grow with the agents N and the rounds T, by protocol.

The unit of a context is a reply: with ``memory = full`` an agent that hears h others in each of t rounds has its own t
replies and t h of theirs in its prompt. All formulas are for debates that never agree; a debate that agrees, accepts or
runs out of somebody to hear stays below. ``measured`` counts the same in a recorded run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .debate import Ask, Debate

AGENTS = range(2, 51)
"""N for which the formulas are tested against the engine."""
FORMULAS: dict[str, tuple[str, str]] = {
    "svr_mad": ("≤ S·T", "≤ 2·S·T"),
    "all_to_all": ("N(N − 1)·T", "N·T"),
    "self_consistency": ("0", "0"),
    "sparse": ("k·N·T", "(k + 1)·T"),
    "group_debate": ("N(g − 1)·T", "g·T"),
    "s2_mad": ("N(B − 1)·T", "B·T"),
    "sid_et": ("(N − E)(N − 1)·T", "N·T"),
    "free_mad": ("N(N − 1)", "N"),
}
"""protocol -> (links, replies in the longest prompt). GroupDebate: g(g − 1) a group where N is no multiple of g."""


class Growth(NamedTuple):
    """How large a debate gets."""

    links: int
    longest: int
    """Replies in the longest prompt, the agent's own included."""
    read: int
    """Replies in all prompts together: what prompt tokens are, up to the length of a reply."""


def growth(
    protocol: str,
    agents: int,
    rounds: int,
    *,
    challengers: int = 3,
    neighbours: int = 2,
    group_size: int = 3,
    beliefs: int | None = None,
    exits: int = 0,
) -> Growth:
    """How large a debate gets that never agrees.

    Parameters
    ----------
    protocol
        A name of the registry.
    agents, rounds
        N and T; ``free_mad`` has one round whatever T.
    challengers, neighbours, group_size
        S, k and g.
    beliefs
        B, how many different answers are held in each round, for ``s2_mad``; None: as many as agents.
    exits
        E, how many leave early, for ``sid_et``.

    Raises
    ------
    ValueError
        If the protocol is unknown.
    """
    n, t = agents, rounds
    match protocol:
        case "svr_mad":
            # one agent receives in all rounds and keeps its answer: nothing here depends on N but that there be enough
            debates = min(challengers, n - 1) * t
            return Growth(debates, 2 * debates, debates * (debates + 1))
        case "self_consistency":
            return Growth(0, 0, 0)
        case "all_to_all":
            return _in_rounds([n - 1] * n, t)
        case "sparse":
            return _in_rounds([min(neighbours, n - 1)] * n, t)
        case "group_debate":
            count = -(-n // group_size)
            sizes = [n // count + (i < n % count) for i in range(count)]
            return _in_rounds([size - 1 for size in sizes for _ in range(size)], t)
        case "s2_mad":
            return _in_rounds([min(n if beliefs is None else beliefs, n) - 1] * n, t)
        case "sid_et":
            return _in_rounds([n - 1] * (n - min(exits, n)), t)
        case "free_mad":
            return _in_rounds([n - 1] * n, min(t, 1))
    raise ValueError(f"no formula for {protocol!r}")


def _in_rounds(hears: Sequence[int], rounds: int) -> Growth:
    """Each agent hears so many others in every round; one that hears nobody sits out.

    In round t its prompt holds t (1 + h) replies, so over T rounds it reads (1 + h) T (T + 1) / 2.
    """
    active = [h for h in hears if h > 0]
    if not active or not rounds:
        return Growth(0, 0, 0)
    read = sum((1 + h) * rounds * (rounds + 1) // 2 for h in active)
    return Growth(sum(active) * rounds, (1 + max(active)) * rounds, read)


def measured(events: Sequence[Any]) -> Growth:
    """The same counted in a recorded run, from the conversations that its agents were sent."""
    debate = Debate(events[0])
    longest = read = 0
    for event in events[1:]:
        if event.event in ("debated", "revised"):
            replies = _in_context(debate, event)
            longest, read = max(longest, replies), read + replies
        debate.apply(event)
    return Growth(len(debate.links), longest, read)


def _in_context(debate: Debate, event: Any) -> int:
    """Replies in the prompt of a turn."""
    if event.event == "debated":
        ask = Ask(event.receiver, (event.challenger,))
    else:
        ask = Ask(event.agent, tuple(event.heard), tuple(event.summaries))
    conversation = debate.agents[ask.agent].conversation
    if debate.settings.memory == "last":
        own = min(1, len(conversation))
    else:
        own = sum(1 + len(exchange.heard) for exchange in conversation)
    return own + len(debate.heard_by(ask, event.round))
