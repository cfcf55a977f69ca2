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
from .steps import Revise, Step, consensus, missing_answers, vote

ROUNDS = 2
"""T, as in the paper's experiments, unless ``max_rounds`` says otherwise."""


def next_step(debate: Debate) -> Step:
    """Ask all; then rounds until consensus, T rounds, or a spent budget, and the vote."""
    return missing_answers(debate) or _rest_of_round(debate) or _next_round(debate)


def _asks(debate: Debate, number: int) -> list[Ask]:
    """Who hears whom in a round, as it stood when the round began."""
    members = debate.in_round(number)
    speakers = [name for name in debate.agents if debate.last_said(name, number) is not None]
    asks = [Ask(name, tuple(s for s in speakers if s != name)) for name in members]
    return [ask for ask in asks if ask.heard]


def _rest_of_round(debate: Debate) -> Revise | None:
    if debate.rounds == 0:
        return None
    done = debate.done_in_round(debate.rounds)
    waiting = tuple(ask for ask in _asks(debate, debate.rounds) if ask.agent not in done)
    return Revise(debate.rounds, waiting) if waiting else None


def _next_round(debate: Debate) -> Step:
    if agreed := consensus(debate):
        return agreed
    limit = debate.settings.max_rounds
    if debate.rounds >= (ROUNDS if limit is None else limit):
        return vote(debate, "rounds")
    asks = _asks(debate, debate.rounds + 1)
    if not asks:
        return vote(debate, "challengers")
    if spent := debate.lacking(asks):
        return vote(debate, spent)
    return Revise(debate.rounds + 1, tuple(asks))
