"""What the protocols share in which agents reply anew in rounds, all of a round at the same time."""

from __future__ import annotations

from collections.abc import Callable

from ..debate import Ask, Debate
from .steps import Finish, Revise, Step, consensus, vote

ROUNDS = 2
"""T, as in the paper's experiments, unless ``max_rounds`` says otherwise."""

Asks = Callable[[Debate, int], list[Ask]]
"""Who hears whom in a round, as it stood when the round began; it must say the same in the middle of the round."""


def in_rounds(
    debate: Debate,
    asks: Asks,
    rounds: int = ROUNDS,
    end: Callable[[Debate, str], Finish] = vote,
    before: Callable[[Debate, int], Step | None] | None = None,
    nobody: str = "challengers",
) -> Step:
    """The next step once the initial answers are there: rounds until consensus, T rounds or a spent budget.

    Parameters
    ----------
    asks
        Who hears whom.
    rounds
        T, where the settings do not say.
    end
        Decides when the rounds are over or a budget is spent, and is told which.
    before
        What must be done before a round may begin, if anything.
    nobody
        What to say is spent when a round would ask nobody.
    """
    if debate.rounds:
        done = debate.done_in_round(debate.rounds)
        waiting = tuple(ask for ask in asks(debate, debate.rounds) if ask.agent not in done)
        if waiting:
            return Revise(debate.rounds, waiting)
    limit = debate.settings.max_rounds
    over = debate.rounds >= (rounds if limit is None else limit)
    # where the vote decides, a run that agrees after its last round ends in consensus
    if (not over or end is vote) and (agreed := consensus(debate)):
        return agreed
    if over:
        return end(debate, "rounds")
    number = debate.rounds + 1
    next_round = asks(debate, number)
    if not next_round:
        return end(debate, nobody)
    if spent := debate.lacking(next_round):
        return end(debate, spent)
    return (before and before(debate, number)) or Revise(number, tuple(next_round))


def speakers(debate: Debate, number: int) -> list[str]:
    """Agents of which there is a reply to be heard in a round, those that have failed since included."""
    return [name for name in debate.agents if debate.last_said(name, number) is not None]


def everybody(debate: Debate, number: int) -> list[Ask]:
    """Every agent that can still be asked hears every other agent's last reply."""
    said = speakers(debate, number)
    asks = [Ask(name, tuple(s for s in said if s != name)) for name in debate.in_round(number)]
    return [ask for ask in asks if ask.heard]
