"""The one timeline: rounds as blocks, a tick for each event, the verdict, and the cursor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from svrmad_core.debate import Debate

from .look import colour, glyph, short, text_on

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "svrmad_timeline",
    html='<div class="timeline"></div>',
    css=(_HERE / "timeline.css").read_text(encoding="utf-8"),
    js=(_HERE / "timeline.js").read_text(encoding="utf-8"),
)


def blocks(events: Sequence[Any], debate: Debate) -> list[dict[str, Any]]:
    """The timeline as data: blocks, each with its ticks.

    Parameters
    ----------
    events
        All events of the run.
    debate
        The state after all of them.

    Returns
    -------
    list of dict
        ``label``, and ``ticks`` of ``k`` (the step after the event), ``mark`` (answer, retained, changed,
        void, failed, choice, other), ``colour`` (of the belief held then) and ``glyph``, ``title``.
    """
    result: list[dict[str, Any]] = [{"label": "answers", "ticks": []}]
    current = 0
    for event in events[1:]:
        tick = {"k": event.seq + 1, "mark": "other", "colour": "", "glyph": "", "title": event.event}
        number = getattr(event, "round", 0)
        if event.event == "run_finished":
            break
        if number > current:
            current = number
            label = f"{event.receiver} challenged" if event.event == "receiver_chosen" else f"round {number}"
            result.append({"label": label, "ticks": []})
        match event.event:
            case "answered":
                tick |= {
                    "mark": "answer",
                    "colour": colour(event.belief),
                    "glyph": glyph(event.belief),
                    "title": f"{event.agent} answers {short(event.turn.answer, 30)}",
                }
            case "receiver_chosen":
                tick |= {"mark": "choice", "title": f"round {event.round}: {event.receiver} is chosen"}
            case "debated":
                mark = {True: "retained", False: "changed", None: "void"}[event.retained]
                tick |= {
                    "mark": mark,
                    "colour": colour(event.after),
                    "title": f"{event.receiver} hears {event.challenger}: {mark}",
                }
            case "revised":
                mark = "void" if event.after is None else "retained" if event.after == event.before else "changed"
                tick |= {
                    "mark": mark,
                    "colour": colour(event.after),
                    "title": f"{event.agent} replies anew: {mark}",
                }
            case "summarized":
                tick |= {"mark": "choice", "title": f"{event.agent} sums up its group"}
            case "turn_failed":
                tick |= {"mark": "failed", "title": f"{event.agent} fails: {event.kind}"}
        result[-1]["ticks"].append(tick)
    return result


def verdict_block(debate: Debate, last: int, live: bool = False) -> dict[str, Any]:
    """The end of the timeline: what came of the run, which while it is live still grows."""
    verdict = debate.verdict
    if verdict is None:
        return {"k": last, "text": "running …" if live else "interrupted", "colour": "", "ink": ""}
    fill = colour(verdict.belief)
    by = f" ({verdict.agent})" if verdict.agent else ""
    reason = verdict.reason.replace("_", " ")
    text = f"{reason}: {short(verdict.answer, 26)}{by}" if verdict.answer is not None else reason
    return {"k": last, "text": text, "colour": fill, "ink": text_on(fill)}


def jump() -> None:
    """Say that the server has moved the step in the link by itself: the cursor, which else leads, follows."""
    st.session_state["timeline_jump"] = st.session_state.get("timeline_jump", 0) + 1


def timeline(
    events: Sequence[Any],
    debate: Debate,
    k: int,
    hide_later: bool,
    on_step: Callable[[int], None],
    live: bool = False,
) -> None:
    """Draw the timeline with its cursor after step ``k`` and call ``on_step`` when the user moves it.

    While the run is ``live``, a cursor at its end stays at its end as it grows.
    """
    key = "timeline"

    def moved() -> None:
        move = st.session_state[key].get("move")
        step, number = (move.get("step"), move.get("id")) if isinstance(move, dict) else (None, None)
        if isinstance(step, int) and isinstance(number, int):
            st.session_state["timeline_move"] = number
            # the end that the browser saw may have moved on since
            on_step(len(events) if move.get("end") else max(1, min(len(events), step)))

    _component(
        key=key,
        data={
            "run": debate.started.run_id,
            "blocks": blocks(events, debate),
            "verdict": verdict_block(debate, len(events), live),
            "k": k,
            "n": len(events),
            "hide": hide_later,
            "live": live,
            "echo": st.session_state.get("timeline_move", 0),
            "jump": st.session_state.get("timeline_jump", 0),
            "name": st.query_params.get("run", ""),
        },
        on_move_change=moved,
    )
