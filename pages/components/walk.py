"""A walk through a run: what the pictures need of every step, gathered in one pass over its events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from svrmad_core.debate import Debate, Link
from svrmad_core.records import RunStarted, Verdict
from svrmad_core.words import number

from .look import short


class State(NamedTuple):
    """One agent after a step."""

    asked: bool
    """Its initial turn has come or failed."""
    belief: int | None
    answer: str | None
    prior: float
    score: float | None
    """What it is ranked by; None before its answer."""
    svr: float | None
    retained: int
    changed: int
    failure: str | None

    @property
    def debates(self) -> int:
        return self.retained + self.changed


class Walk(NamedTuple):
    """A run, step by step; lists have one entry a step, the first after step 1."""

    started: RunStarted
    agents: dict[str, list[State]]
    links: list[Link]
    """All; one is there from step ``seq + 1`` on."""
    beliefs: list[str]
    turns: list[int]
    """Turns after the initial answers so far."""
    receiver: list[str | None]
    """The receiver of the round, at the end the accepted agent."""
    waiting: list[tuple[str, ...]]
    """Challengers of the round that have not been heard."""
    verdict: Verdict | None
    graph_alt: list[str]
    score_alt: list[str]

    @property
    def steps(self) -> int:
        return len(self.turns)

    def changes(self) -> list[int]:
        """The steps after which the number of turns has grown, one for each turn."""
        return [k for k in range(2, self.steps + 1) if self.turns[k - 1] > self.turns[k - 2]]


def walk(events: Sequence[Any]) -> Walk:
    """Walk through all events of a run."""
    debate = Debate(events[0])
    found = Walk(events[0], {name: [] for name in debate.agents}, [], [], [], [], [], None, [], [])
    turns = 0
    for event in events:
        if event.seq:
            debate.apply(event)
        turns += event.event in ("debated", "revised")
        for name, states in found.agents.items():
            states.append(_state(debate, name))
        found.turns.append(turns)
        current = debate.round if debate.verdict is None else None
        accepted = debate.verdict.agent if debate.verdict is not None else None
        found.receiver.append(current.receiver if current is not None else accepted)
        found.waiting.append(tuple(current.waiting) if current is not None else ())
        found.graph_alt.append(graph_alt(debate))
        found.score_alt.append(score_alt(debate))
    return found._replace(links=debate.links, beliefs=debate.beliefs, verdict=debate.verdict)


def renumbered(w: Walk, numbers: Sequence[int], answers: Sequence[str]) -> Walk:
    """The same walk with other numbers for its beliefs, and so other colours.

    Parameters
    ----------
    numbers
        The new number of each belief.
    answers
        The answer of each new number.
    """

    def new(belief: int | None) -> int | None:
        return None if belief is None else numbers[belief]

    agents = {name: [s._replace(belief=new(s.belief)) for s in states] for name, states in w.agents.items()}
    links = [
        x._replace(before=new(x.before), after=new(x.after), challenger_belief=new(x.challenger_belief))
        for x in w.links
    ]
    return w._replace(agents=agents, links=links, beliefs=list(answers))


def _state(debate: Debate, name: str) -> State:
    s = debate.agents[name]
    return State(
        s.answered,
        s.belief,
        s.answer,
        s.prior,
        debate.score(name) if s.turns else None,
        s.svr,
        s.retained,
        s.changed,
        s.failure.message if s.failure is not None else None,
    )


def graph_alt(debate: Debate) -> str:
    """The graph in a sentence, for those who cannot see it."""
    held = "; ".join(
        f"{', '.join(debate.holders(b))} hold {short(answer, 30)}"
        for b, answer in enumerate(debate.beliefs)
        if debate.holders(b)
    )
    last = debate.links[-1] if debate.links else None
    newest = ""
    if last is not None:
        outcome = {True: "kept its answer", False: "changed its answer", None: "gave no readable answer"}
        newest = f" Last, {last.receiver} heard {last.challenger} and {outcome[last.retained]}."
    return f"Communication graph with {len(debate.links)} links. {held or 'No answers yet'}.{newest}"


def score_alt(debate: Debate) -> str:
    """The score chart in a sentence."""
    rows = [f"{name} {number(score)} (prior {number(prior)})" for name, score, prior in debate.ranking()[:12]]
    return f"Scores, highest first: {', '.join(rows) or 'none yet'}."
