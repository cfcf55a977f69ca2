"""One cursor for two runs: by round, or by tokens spent; the pictures follow it in the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import streamlit as st

from svrmad_core.comparison import Point, at_round, at_tokens, course
from svrmad_core.debate import Debate, fold
from svrmad_core.words import REASON_WORDS

from .look import short

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "svrmad_twins",
    html='<div class="twins"></div>',
    css=(_HERE / "twins.css").read_text(encoding="utf-8"),
    js=(_HERE / "twins.js").read_text(encoding="utf-8"),
)
By = Literal["round", "tokens"]
CURSOR = "compare"
"""What pictures follow that show both runs: the number of the stop, from 1."""


class Stop(NamedTuple):
    """A place of the cursor: how far it lets each run come."""

    value: int
    """The round, or the budget in tokens."""
    one: int
    two: int
    """The step that each run has reached."""


def stops(one: Sequence[Point], two: Sequence[Point], by: By) -> list[Stop]:
    """The places of the cursor: each round, or each sum of tokens that either run has spent after a step."""
    if by == "round":
        values = range(max(one[-1].round, two[-1].round) + 1)
        return [Stop(v, at_round(one, v), at_round(two, v)) for v in values]
    values = sorted({p.tokens for p in (*one, *two)})
    return [Stop(v, at_tokens(one, v), at_tokens(two, v)) for v in values]


def standing(events: Sequence[Any]) -> list[dict[str, str]]:
    """What a run has after each step, in words: ``had``, the answers held or the verdict, and ``used``."""
    debate = fold(events, 1)
    found = [_standing(debate)]
    for event in events[1:]:
        debate.apply(event)
        found.append(_standing(debate))
    return found


def _standing(debate: Debate) -> dict[str, str]:
    if debate.verdict is not None:
        reason = REASON_WORDS.get(debate.verdict.reason, debate.verdict.reason)
        had = f"{reason}: {short(debate.verdict.answer, 40)}"
    else:
        votes = debate.votes().most_common()
        had = " · ".join(f"{short(debate.beliefs[b], 24)} × {n}" for b, n in votes[:5]) or "nothing yet"
        had += " · …" if len(votes) > 5 else ""
    tokens = debate.prompt_tokens + debate.completion_tokens
    links = len(debate.links)
    return {"had": had, "used": f"{tokens:,} tokens · {links} {'link' if links == 1 else 'links'}"}


def cursor(
    one: Sequence[Any],
    two: Sequence[Any],
    titles: tuple[str, str],
    by: By,
    at: int | None,
    on_move: Callable[[int], None],
) -> None:
    """Draw the cursor and, for each run, what it has there.

    Parameters
    ----------
    one, two
        The events of both runs.
    titles
        What they are runs of.
    at
        The round or the tokens where the cursor stands at first; None: at the end.
    on_move
        Called with the round or the tokens once the cursor rests.
    """
    key = "twins"
    places = stops(course(one), course(two), by)
    at = places[-1].value if at is None else at

    def moved() -> None:
        move = st.session_state[key].get("move")
        if isinstance(move, dict) and isinstance(move.get("value"), int):
            on_move(move["value"])

    _component(
        key=key,
        data={
            "runs": [one[0].run_id, two[0].run_id],
            "cursor": CURSOR,
            "titles": list(titles),
            "by": by,
            "stops": [list(s) for s in places],
            "at": max((i for i, s in enumerate(places) if s.value <= at), default=0),
            "standing": [standing(one), standing(two)],
        },
        on_move_change=moved,
    )
