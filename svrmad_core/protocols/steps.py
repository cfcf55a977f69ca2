"""What a protocol may ask for next. A step is data: who is asked, having heard whom, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from ..debate import Ask, Debate
from ..records import Reason, Verdict

NotAsked = Literal["same answer", "no answer", "already challenged", "ranks below", "no link left"]
"""Why an agent is not among the challengers of a round."""


@dataclass(frozen=True)
class Answer:
    """Ask these agents for their initial answers, all at the same time."""

    agents: tuple[str, ...]


@dataclass(frozen=True)
class Choose:
    """Open a round: this receiver is to be challenged by these agents."""

    round: int
    receiver: str
    challengers: tuple[str, ...]
    ranking: tuple[tuple[str, float, float], ...]
    left_out: tuple[str, ...] = ()
    """Agents that disagree too, but rank below the challengers taken (or did not fit the links left)."""
    passed_over: dict[str, str] = field(default_factory=dict, compare=False)
    """Agents ranked above the receiver -> why they were not taken."""
    not_asked: dict[str, NotAsked] = field(default_factory=dict, compare=False)
    """Agents that are neither receiver nor challenger -> why they do not challenge."""


@dataclass(frozen=True)
class Challenge:
    """Let the receiver hear each of these challengers, in calls of their own, at the same time."""

    round: int
    receiver: str
    challengers: tuple[str, ...]


@dataclass(frozen=True)
class Revise:
    """Ask agents to reply anew, having heard others, all at the same time."""

    round: int
    asks: tuple[Ask, ...]


@dataclass(frozen=True)
class Summarize:
    """Before a round, let these agents sum up what they and others of their group (``heard``) said last."""

    round: int
    asks: tuple[Ask, ...]


TieBreak = Literal["initial", "score", "index"]
"""The counts of the initial answers, the highest score among the holders, the lowest index."""


class Tie(NamedTuple):
    """How a tie of the vote was broken: what was looked at, among the beliefs still level at that point."""

    beliefs: tuple[int, ...]
    """The beliefs with the most votes, at least two."""
    decided_by: TieBreak
    initial: dict[int, int]
    """belief -> how many agents answered so at first."""
    scores: dict[int, tuple[str, float]]
    """belief -> its highest-scoring holder and that score; empty if the initial answers decided."""
    first: dict[int, str]
    """belief -> its holder of the lowest index; empty unless the index decided."""


@dataclass(frozen=True)
class Finish:
    """Stop with this verdict."""

    verdict: Verdict
    spent: str | None = None
    """With reason ``vote`` or ``trajectory``: what ran out (rounds, links, tokens, money, challengers, exits)."""
    tie: Tie | None = field(default=None, compare=False)
    """With reason ``vote``: how a tie was broken, or None if there was none."""


Step = Answer | Choose | Challenge | Revise | Summarize | Finish


def describe(step: Step) -> str:
    """A step as a phrase that follows "the protocol would"."""
    match step:
        case Answer(agents):
            return f"ask {', '.join(agents)} for an initial answer"
        case Choose(number, receiver, challengers):
            return f"open round {number} with {receiver} challenged by {', '.join(challengers)}"
        case Challenge(_, receiver, challengers):
            return f"let {receiver} hear {', '.join(challengers)}"
        case Revise(number, asks):
            return f"go on with round {number} for {', '.join(a.agent for a in asks)}"
        case Summarize(number, asks):
            return f"let {', '.join(a.agent for a in asks)} sum up their groups for round {number}"
        case Finish(end):
            return f"stop with {end.answer!r} ({end.reason})"
    return "do something else"


def missing_answers(debate: Debate) -> Answer | None:
    """The initial answers still to be asked for, or None once all have come or failed."""
    waiting = [name for name, state in debate.agents.items() if not state.answered]
    return Answer(tuple(waiting)) if waiting else None


def consensus(debate: Debate) -> Finish | None:
    """METHOD.md, step 3: stop if at least ``quorum`` agents hold one belief."""
    votes = debate.votes()
    if votes:
        belief, count = max(votes.items(), key=lambda item: item[1])
        if count >= debate.settings.needed_for_consensus:
            return Finish(verdict(debate, "consensus", belief))
    return None


def vote(debate: Debate, spent: str | None = None) -> Finish:
    """METHOD.md, step 7: the majority of the current answers.

    A tie is broken by the counts of the initial answers, then by the highest score among the holders, then
    by the lowest index.
    """
    votes = debate.votes()
    if not votes:
        return Finish(verdict(debate, "no_answer", None), spent)
    initial = [s.initial_belief for s in debate.agents.values()]

    def strength(belief: int) -> tuple[int, int, float, int]:
        holders = debate.holders(belief)
        return (
            votes[belief],
            initial.count(belief),
            max(debate.score(name) for name in holders),
            -min(debate.agents[name].index for name in holders),
        )

    strengths = {belief: strength(belief) for belief in votes}
    winner = max(votes, key=strengths.__getitem__)
    return Finish(verdict(debate, "vote", winner), spent, _tie(debate, strengths, winner))


def _tie(debate: Debate, strengths: dict[int, tuple[int, int, float, int]], winner: int) -> Tie | None:
    """How the winner of a vote beat the others that had as many votes, from what the vote compared."""
    level = [[b for b, s in sorted(strengths.items()) if s[:n] == strengths[winner][:n]] for n in (1, 2, 3)]
    if len(level[0]) == 1:
        return None
    tied, by_score, by_index = level
    scores: dict[int, tuple[str, float]] = {}
    first: dict[int, str] = {}
    if len(by_score) > 1:
        scores = {b: (max(debate.holders(b), key=debate.score), strengths[b][2]) for b in by_score}
        if len(by_index) > 1:
            first = {b: debate.holders(b)[0] for b in by_index}
    decided_by: TieBreak = "index" if first else "score" if scores else "initial"
    return Tie(tuple(tied), decided_by, {b: strengths[b][1] for b in tied}, scores, first)


def verdict(debate: Debate, reason: Reason, belief: int | None, agent: str | None = None) -> Verdict:
    """A verdict for a belief, in the words of an agent that holds it now."""
    if belief is None:
        return Verdict(answer=None, belief=None, reason=reason)
    speaker = agent or debate.holders(belief)[0]
    answer = debate.agents[speaker].answer
    return Verdict(answer=answer, belief=belief, reason=reason, agent=agent, votes=dict(sorted(debate.votes().items())))
