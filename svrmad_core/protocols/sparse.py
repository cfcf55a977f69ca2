"""Sparse debate: as all-to-all, but on a fixed regular graph; each agent hears its k nearest on a ring.

::

    A1 ◀─▶ A2 ◀─▶ A3
     ▲             ▲         k N links a round (k = 2), T = 2 rounds
     ▼             ▼
    A6 ◀─▶ A5 ◀─▶ A4

Li et al., *Improving Multi-Agent Debate with Sparse Communication Topology*, 2024, arXiv 2406.11776.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from .rounds import in_rounds, speakers
from .steps import Step, missing_answers


def next_step(debate: Debate) -> Step:
    """Ask all; then rounds on the ring until consensus, T rounds, or a spent budget, and the vote."""
    return missing_answers(debate) or in_rounds(debate, _asks)


def nearest(names: list[str], place: int, k: int) -> list[str]:
    """The k nearest on the ring, the one before first, then the one after, then those at distance 2, ..."""
    n = len(names)
    ways = [way for distance in range(1, n // 2 + 1) for way in (-distance, distance)]
    found = dict.fromkeys(names[(place + way) % n] for way in ways)
    return list(found)[:k]


def _asks(debate: Debate, number: int) -> list[Ask]:
    names, said = list(debate.agents), set(speakers(debate, number))
    asks = []
    for name in debate.in_round(number):
        near = nearest(names, names.index(name), debate.settings.neighbours)
        # the graph is fixed: a neighbour that said nothing is not replaced
        if heard := tuple(n for n in near if n in said):
            asks.append(Ask(name, heard))
    return asks


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent hears whom it hears."""
    if not ask.heard:
        return ""
    k = debate.settings.neighbours
    return f"The graph is a ring that never changes: {ask.agent} hears only its {k} nearest, {', '.join(ask.heard)}."
