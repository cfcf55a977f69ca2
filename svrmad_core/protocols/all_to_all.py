"""All-to-all debate: each round, every agent hears every other agent's last reply and replies anew.

::

    A1 ◀──▶ A2
     ▲ ╲  ╱ ▲           N (N - 1) links a round, T = 2 rounds
     ▼ ╱  ╲ ▼
    A3 ◀──▶ A4

Du et al., *Improving Factuality and Reasoning in Language Models through Multiagent Debate*, 2024,
arXiv 2305.14325.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from .rounds import ROUNDS, everybody, in_rounds
from .steps import Step, missing_answers

__all__ = ["ROUNDS", "next_step", "why"]


def next_step(debate: Debate) -> Step:
    """Ask all; then rounds until consensus, T rounds, or a spent budget, and the vote."""
    return missing_answers(debate) or in_rounds(debate, everybody)


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent hears whom it hears."""
    return f"Everybody hears everybody: {ask.agent} hears all {len(ask.heard)} others." if ask.heard else ""
