"""Free-MAD: one all-to-all round with an anti-conformity prompt; the winner is the best trajectory, not the vote.

::

    A1  12 ───▶ 15       12: +20, then -25 / 2 when abandoned       N (N - 1) links, one round
    A2  15 ───▶ 15       15: +20, then +30 / 2 adopted, +20 / 2 kept
    A3  15 ───▶ 15       the answer with the highest sum wins

Cui et al., *Free-MAD: Consensus-Free Multi-Agent Debate*, 2025, arXiv 2509.11035. Consensus is checked before the
round, as in every protocol here; after it the trajectories decide.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from ..records import Verdict
from .rounds import everybody, in_rounds
from .steps import Finish, Step, missing_answers, vote

ROUNDS = 1
INITIAL, ABANDONED, ADOPTED, KEPT = 20.0, -25.0, 30.0, 20.0
"""Points of an answer for each agent that gives it first, abandons it, adopts it or keeps it; each is multiplied by
1 / (round + 1), the initial answers being round 0."""


def next_step(debate: Debate) -> Step:
    """Ask all; then consensus, or the round and the best trajectory."""
    return missing_answers(debate) or in_rounds(debate, everybody, rounds=ROUNDS, end=decide)


def trajectory_scores(debate: Debate) -> dict[int, float]:
    """belief -> points over all agents and rounds so far; a reply with no readable answer changes nothing."""
    scores: dict[int, float] = {}

    def count(belief: int, points: float, number: int) -> None:
        scores[belief] = scores.get(belief, 0.0) + points / (number + 1)

    for state in debate.agents.values():
        held: int | None = None
        for said in state.said:
            if said.belief is None:
                continue
            if said.round == 0:
                count(said.belief, INITIAL, 0)
            elif said.belief == held:
                count(held, KEPT, said.round)
            else:
                if held is not None:
                    count(held, ABANDONED, said.round)
                count(said.belief, ADOPTED, said.round)
            held = said.belief
    return scores


def decide(debate: Debate, spent: str | None = None) -> Finish:
    """The answer with the best trajectory; a tie is broken by the votes it has now, then by which was given first.

    It may be one that nobody holds any more.
    """
    scores = trajectory_scores(debate)
    if not scores:
        return vote(debate, spent)
    votes = debate.votes()
    winner = max(scores, key=lambda belief: (scores[belief], votes[belief], -belief))
    holders = debate.holders(winner)
    answer = debate.agents[holders[0]].answer if holders else debate.beliefs[winner]
    return Finish(Verdict(answer=answer, belief=winner, reason="trajectory", votes=dict(sorted(votes.items()))), spent)


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent hears whom it hears."""
    if not ask.heard:
        return ""
    return f"{ask.agent} hears all {len(ask.heard)} others and is told not to conform: only a shown error counts."
