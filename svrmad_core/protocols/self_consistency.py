"""Self-consistency: no debate, the vote over the initial answers.

::

    A1   A2   A3        nobody hears anybody: 0 links
    A4   A5   A6

Wang et al., *Self-Consistency Improves Chain of Thought Reasoning in Language Models*, arXiv 2203.11171.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from .steps import Step, consensus, missing_answers, vote


def next_step(debate: Debate) -> Step:
    """Ask all, then consensus or the vote."""
    return missing_answers(debate) or consensus(debate) or vote(debate)


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Nobody hears anybody."""
    return ""
