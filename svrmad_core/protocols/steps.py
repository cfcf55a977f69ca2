"""What a protocol may ask for next. A step is data: who is asked, having heard whom, and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..debate import Ask, Debate
from ..records import Reason, Verdict


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
class Finish:
    """Stop with this verdict."""

    verdict: Verdict
    spent: str | None = None
    """With reason ``vote``: what ran out (rounds, links, tokens, money, challengers)."""


Step = Answer | Choose | Challenge | Revise | Finish


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
        case Finish(end):
            return f"stop with {end.answer!r} ({end.reason})"
    return "do something else"


def missing_answers(debate: Debate) -> Answer | None:
    """The initial answers still to be asked for, or None once all have come or failed."""
    waiting = tuple(s.name for s in debate.agents.values() if not s.answered)
    return Answer(waiting) if waiting else None


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

    return Finish(verdict(debate, "vote", max(votes, key=strength)), spent)


def verdict(debate: Debate, reason: Reason, belief: int | None, agent: str | None = None) -> Verdict:
    """A verdict for a belief, in the words of an agent that holds it now."""
    if belief is None:
        return Verdict(answer=None, belief=None, reason=reason)
    speaker = agent or debate.holders(belief)[0]
    answer = debate.agents[speaker].answer
    return Verdict(answer=answer, belief=belief, reason=reason, agent=agent, votes=dict(sorted(debate.votes().items())))
