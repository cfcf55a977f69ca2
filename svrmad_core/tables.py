"""A recording as pandas frames: turns, scores by step, agents, links.

The step ``k`` of a row is what ``fold(events, k)`` and ``show --step`` take: the row's event is the k-th. What is not
known is missing (never 0), and whole numbers stay whole beside missing ones. pandas is imported only when a frame is
made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .debate import AgentState, Debate, fold

if TYPE_CHECKING:
    from pandas import DataFrame

TEXT, WHOLE, REAL, YES_NO = "str", "Int64", "float64", "boolean"

_TURNS = {
    "k": WHOLE,
    "round": WHOLE,
    "agent": TEXT,
    "heard": TEXT,
    "answer": TEXT,
    "belief": WHOLE,
    "before": WHOLE,
    "after": WHOLE,
    "retained": YES_NO,
    "confidence": REAL,
    "perplexity": REAL,
    "min_logprob": REAL,
    "prompt_tokens": WHOLE,
    "completion_tokens": WHOLE,
    "cost": REAL,
    "latency": REAL,
    "model": TEXT,
    "finish_reason": TEXT,
    "reply": TEXT,
}
_SCORES = {
    "k": WHOLE,
    "agent": TEXT,
    "belief": WHOLE,
    "answer": TEXT,
    "prior": REAL,
    "D": WHOLE,
    "r": WHOLE,
    "c": WHOLE,
    "void": WHOLE,
    "svr": REAL,
    "score": REAL,
}
_AGENTS = {
    "agent": TEXT,
    "model": TEXT,
    "first_answer": TEXT,
    "answer": TEXT,
    "belief": WHOLE,
    "prior": REAL,
    "prior_signal": TEXT,
    "D": WHOLE,
    "r": WHOLE,
    "c": WHOLE,
    "void": WHOLE,
    "svr": REAL,
    "score": REAL,
    "failed": TEXT,
}
_LINKS = {
    "k": WHOLE,
    "number": WHOLE,
    "round": WHOLE,
    "challenger": TEXT,
    "receiver": TEXT,
    "challenger_answer": TEXT,
    "before": TEXT,
    "after": TEXT,
    "retained": YES_NO,
}


def turns(events: Sequence[Any]) -> DataFrame:
    """What every call of a model said: one row a turn, in the order they came. Failed calls have no turn.

    Parameters
    ----------
    events
        The events of a run, the first a ``run_started``.

    Returns
    -------
    pandas.DataFrame
        ``k``, the step; ``round``, 0 for initial answers; ``agent``; ``heard``, names with commas, missing if nobody;
        ``answer`` as read out of the reply and ``belief``, its number (Int64), both missing where none could be read;
        ``before`` and ``after``, the numbers of the beliefs before and after a debate, and ``retained`` (boolean,
        missing for void), all three missing for initial answers; ``confidence`` in [0, 1]; ``perplexity``, at least 1;
        ``min_logprob``, a natural logarithm; ``prompt_tokens``, ``completion_tokens`` (Int64); ``cost`` in US dollars;
        ``latency`` in seconds; ``model``; ``finish_reason``; ``reply``.
    """
    return _frame((_turn(event) for event in events if hasattr(event, "turn")), _TURNS)


def scores(events: Sequence[Any]) -> DataFrame:
    """How beliefs and scores moved: one row a step and agent, also for steps that left an agent as it was.

    Parameters
    ----------
    events
        The events of a run, the first a ``run_started``.

    Returns
    -------
    pandas.DataFrame
        ``k``, the step; ``agent``; ``belief`` (Int64) and ``answer``, what it holds after the step; ``prior``, on the
        scale of the settings; ``D``, ``r``, ``c``, debates, retained and changed, and ``void`` (Int64); ``svr`` in
        [-1, 1], missing before the first debate; ``score``, what it is ranked by. Prior and score are missing until
        the initial answer has come.

    Raises
    ------
    ValueError
        If the events cannot follow each other.
    """

    def rows() -> Iterable[tuple[Any, ...]]:
        debate = fold(events, 1)
        for k, event in enumerate(events, 1):
            if k > 1:
                debate.apply(event)
            for s in debate.agents.values():
                yield (k, s.name, s.belief, s.answer, _prior(s), *_record(debate, s))

    return _frame(rows(), _SCORES)


def agents(events: Sequence[Any], k: int | None = None) -> DataFrame:
    """The agents after k events, one row each.

    Parameters
    ----------
    events
        The events of a run, the first a ``run_started``.
    k
        How many events to take, at least 1; None takes all.

    Returns
    -------
    pandas.DataFrame
        ``agent``; ``model``; ``first_answer``, alone; ``answer`` and ``belief`` (Int64), held now; ``prior``, on the
        scale of the settings, and ``prior_signal``, what it was taken from; ``D``, ``r``, ``c``, ``void`` (Int64);
        ``svr`` in [-1, 1], missing before the first debate; ``score``, what it is ranked by; ``failed``, why it is not
        asked again, missing for most.

    Raises
    ------
    ValueError
        If the events cannot follow each other.
    """
    debate = fold(events, k)
    return _frame(
        (
            (
                s.name,
                s.agent.model,
                s.turns[0][1].answer if s.turns else None,
                s.answer,
                s.belief,
                _prior(s),
                s.prior_signal,
                *_record(debate, s),
                s.failure.message if s.failure else None,
            )
            for s in debate.agents.values()
        ),
        _AGENTS,
    )


def links(events: Sequence[Any]) -> DataFrame:
    """Who was heard by whom, and what came of it: one row a link, in order.

    Parameters
    ----------
    events
        The events of a run, the first a ``run_started``.

    Returns
    -------
    pandas.DataFrame
        ``k``, the step; ``number``, the link's place among all, from 1; ``round``; ``challenger``; ``receiver``;
        ``challenger_answer``, ``before``, ``after``: the challenger's answer and the receiver's before and after, each
        as it was first given by anyone (equal answers are one belief), missing for none; ``retained`` (boolean),
        missing for void. Where one turn hears several, each link has that turn's outcome.

    Raises
    ------
    ValueError
        If the events cannot follow each other.
    """
    debate = fold(events)

    def said(belief: int | None) -> str | None:
        return None if belief is None else debate.beliefs[belief]

    return _frame(
        (
            (
                link.seq + 1,
                number,
                link.round,
                link.challenger,
                link.receiver,
                said(link.challenger_belief),
                said(link.before),
                said(link.after),
                link.retained,
            )
            for number, link in enumerate(debate.links, 1)
        ),
        _LINKS,
    )


def _turn(event: Any) -> tuple[Any, ...]:
    turn = event.turn
    match event.event:
        case "answered":
            moves = (0, event.agent, None, turn.answer, event.belief, None, None, None)
        case "debated":
            moves = (
                event.round,
                event.receiver,
                event.challenger,
                turn.answer,
                event.after,
                event.before,
                event.after,
                event.retained,
            )
        case "summarized":
            moves = (event.round, event.agent, ", ".join(event.heard), None, None, None, None, None)
        case _:
            retained = None if event.after is None else event.after == event.before
            heard = ", ".join([*event.heard, *(f"{name} for its group" for name in event.summaries)]) or None
            moves = (event.round, event.agent, heard, turn.answer, event.after, event.before, event.after, retained)
    return (
        event.seq + 1,
        *moves,
        turn.confidence,
        turn.signals.perplexity if turn.signals else None,
        turn.signals.min_logprob if turn.signals else None,
        turn.prompt_tokens,
        turn.completion_tokens,
        turn.cost,
        turn.latency,
        turn.model or None,
        turn.finish_reason,
        turn.reply,
    )


def _prior(state: AgentState) -> float | None:
    return state.prior if state.turns else None


def _record(debate: Debate, state: AgentState) -> tuple[Any, ...]:
    """D, r, c, void, svr and score."""
    score = debate.score(state.name) if state.turns else None
    return state.debates, state.retained, state.changed, state.void, state.svr, score


def _frame(rows: Iterable[tuple[Any, ...]], columns: dict[str, str]) -> DataFrame:
    """The same columns and types however few rows there are."""
    import pandas as pd

    cells = [tuple(_whole(cell) if isinstance(cell, str) else cell for cell in row) for row in rows]
    return pd.DataFrame(cells, columns=list(columns), dtype=object).astype(columns)


def _whole(text: str) -> str:
    """Half a surrogate pair is legal JSON, but no frame can hold it: a question mark takes its place."""
    return text if text.isascii() else text.encode(errors="replace").decode()
