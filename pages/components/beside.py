"""Two paired runs beside each other, and all methods of their question in a table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import streamlit as st

from svrmad_core import comparison
from svrmad_core.comparison import Row, changed_minds, compare, course, parting
from svrmad_core.protocols import PROTOCOLS, variant_title
from svrmad_core.recording import Recording
from svrmad_core.words import REASON_WORDS

from . import charts, library, pairing, stage, theme, told, twins
from .look import Ink, safe, short
from .plot import plot

_CSS = f"""<style>{told.CSS}
.svr-parted {{ font-size: 1.15rem; line-height: 1.5; }}
.svr-parted li {{ margin: 2px 0; }}
.svr-wide {{ overflow-x: auto; }}
.svr-rows {{ width: 100%; }}
.svr-rows td, .svr-rows th {{ padding-right: 10px; font-size: .95rem; overflow-wrap: normal; white-space: nowrap; }}
.svr-rows th[scope=row] {{ white-space: normal; min-width: 8.5rem; }}
.svr-rows td.n, .svr-rows th.n {{ text-align: right; font-variant-numeric: tabular-nums; }}
.svr-rows tr.side td, .svr-rows tr.side th {{ font-weight: 700; }}
</style>"""
_NUMBERS = (
    *("links", "calls", "rounds", "tokens", "in + out", "of all-to-all", "cost", "seconds"),
    "critical path",
)
BY = {"round": "By round", "tokens": "By tokens spent"}


def titles(pair: pairing.Pair) -> tuple[str, str]:
    """What the two are runs of; told apart by name where both are runs of one method."""
    found = [variant_title(r.started.protocol, r.started.settings) for r in (pair.one, pair.two)]
    if found[0] == found[1] and pair.one.run_id != pair.two.run_id:
        return f"{found[0]} · {pair.one.run_id}", f"{found[1]} · {pair.two.run_id}"
    return found[0], found[1]


def head(pair: pairing.Pair) -> None:
    """The question, and what both runs have in common."""
    started = pair.one.started
    debate = pair.one.fold()
    models = ", ".join(dict.fromkeys(a.model for a in started.agents))
    simulated = any(r.started.simulated for r in (pair.one, pair.two))
    mark = ' · <span class="svr-sim">simulated: no model was asked</span>' if simulated else ""
    question = started.problem.question
    options = "".join(f"<br>{chr(65 + i)}) {safe(c)}" for i, c in enumerate(started.problem.choices))
    st.html(
        f'{_CSS}<div class="svr-head"><div class="what"><div class="small">{len(debate.agents)} agents · '
        f"{safe(models)} "
        f"· the same initial answers{mark}</div>"
        f'<div class="q{" long" if len(question) > 220 else ""}">{safe(question)}{options}</div></div></div>'
    )


@st.fragment
def both(pair: pairing.Pair) -> None:
    """The two runs with one cursor."""
    names = titles(pair)
    left, right = st.columns([3, 2], vertical_alignment="center")
    by = left.segmented_control(
        "Cursor", list(BY), default="round", format_func=BY.get, key="by", label_visibility="collapsed"
    )
    by = by or "round"
    view = right.segmented_control(
        "Picture",
        list(stage.VIEWS),
        default="scores",
        format_func=stage.VIEWS.get,
        key="compare_view",
        label_visibility="collapsed",
    )
    one, two = pair.one.events, pair.two.events
    twins.cursor(one, two, names, by, _at(by), lambda value: st.query_params.update({"at": f"{by}-{value}"}))
    inks = theme.ink()
    # one answer has one colour in both
    numbers, answers = comparison.shared_beliefs(one, two)
    for column, recording, side in zip(st.columns(2, gap="medium"), (pair.one, pair.two), "ab", strict=True):
        shared = (tuple(numbers), tuple(answers)) if side == "b" else ((), ())
        with column:
            for what in ("graph", view or "scores"):
                film = stage.film_of(
                    *(recording.run_id, len(recording.events), recording.events[-1].at, inks, what, False, None),
                    recording,
                    *shared,
                )
                plot(recording.run_id, film, what, inks, key=f"{side}_{what}")
    _courses(pair, names, by, inks)


def _at(by: str) -> int | None:
    """Where the link puts the cursor; None: at the end."""
    way, _, value = st.query_params.get("at", "").partition("-")
    return int(value) if way == by and value.isascii() and value.isdigit() and len(value) < 10 else None


def _courses(pair: pairing.Pair, names: tuple[str, str], by: twins.By, inks: Ink) -> None:
    one, two = course(pair.one.events), course(pair.two.events)
    places = twins.stops(one, two, by)
    st.html(
        f'<div class="svr-legend"><span>━━ ● {safe(names[0])}</span><span>╍╍ ○ {safe(names[1])}</span>'
        f"{''.join(f'<span>{safe(line)}</span>' for line in _longest(pair, names))}</div>"
    )
    for column, what in zip(st.columns(3), charts.COURSES, strict=True):
        with column:
            film = charts.courses(one, two, places, names, what, inks)
            plot(twins.CURSOR, json.dumps(film.as_data()), f"course-{what}", inks, key=f"course_{what}")


def _longest(pair: pairing.Pair, names: tuple[str, str]) -> list[str]:
    found = []
    for events, name in zip((pair.one.events, pair.two.events), names, strict=True):
        told_ = [p.prompt for p in course(events) if p.prompt is not None]
        found.append(f"largest prompt of {name}: {max(told_):,} tokens" if told_ else f"{name}: prompts not told")
    return found


# -- what parted them --------------------------------------------------------------------------------------------------


def parted(pair: pairing.Pair) -> None:
    """Where the two first differ, who changed its mind in one alone, and both verdicts, in sentences."""
    one, two = pair.one, pair.two
    if one.run_id == two.run_id:
        return
    names = titles(pair)
    lines = [*_verdicts(pair, names), _first_difference(one, two, names), *_minds(one, two, names)]
    st.html(f'<div class="svr-parted"><ul>{"".join(f"<li>{safe(line)}</li>" for line in lines)}</ul></div>')


def _verdicts(pair: pairing.Pair, names: tuple[str, str]) -> list[str]:
    found = []
    for recording, name in zip((pair.one, pair.two), names, strict=True):
        verdict = recording.fold().verdict
        if verdict is None:
            found.append(f"{name} was interrupted: it has no verdict.")
            continue
        reason = REASON_WORDS.get(verdict.reason, verdict.reason)
        by = f", the answer of {verdict.agent}" if verdict.agent else ""
        answer = "no answer" if verdict.answer is None else short(verdict.answer, 80)
        found.append(f"{name} ends with {answer} ({reason}{by}).")
    return found


def _first_difference(one: Recording, two: Recording, names: tuple[str, str]) -> str:
    found = parting(one.events, two.events)
    if found is None:
        return "After every round all agents believe the same in both."

    def said(answer: str | None) -> str:
        return "has no readable answer" if answer is None else f"holds {short(answer, 60)}"

    return (
        f"They first differ after round {found.round}: {found.agent} {said(found.one)} in {names[0]} and "
        f"{said(found.two)} in {names[1]}."
    )


def _minds(one: Recording, two: Recording, names: tuple[str, str]) -> list[str]:
    found = []
    for agents, here, there in zip(changed_minds(one.events, two.events), names, reversed(names), strict=True):
        if agents:
            who = ", ".join(agents[:12]) + (f" and {len(agents) - 12} more" if len(agents) > 12 else "")
            found.append(f"Changed their minds in {here} and not in {there}: {who}.")
    return found or ["The same agents changed their minds in both."]


# -- all methods -------------------------------------------------------------------------------------------------------


@st.cache_data(max_entries=64, show_spinner=False)
def _rows(stamps: tuple[tuple[str, int, str], ...], _runs: list[Sequence[Any]]) -> list[Row]:
    return compare(_runs)


def rows(pair: pairing.Pair) -> list[Row]:
    """A row for each method of the family, and for both runs shown."""
    chosen = {info.run_id for info in pairing.newest(pair.family).values()} | {pair.one.run_id, pair.two.run_id}
    runs: list[Sequence[Any]] = []
    for name in sorted(chosen):
        events = library.open_run(name).events
        if library_pairs(pair.one.events, events):
            runs.append(events)
    return _rows(tuple((e[0].run_id, len(e), e[-1].at) for e in runs), runs)


def library_pairs(one: Sequence[Any], two: Sequence[Any]) -> bool:
    """Whether two runs are paired; a run whose parent's name fits but whose answers do not is left out."""
    try:
        compare([one, two])
    except ValueError:
        return False
    return True


def table(pair: pairing.Pair) -> list[Row]:
    """All methods in a table and a chart; the right answer is told once it is revealed. Returns the rows."""
    found = rows(pair)
    shown = {pair.one.run_id, pair.two.run_id}
    has_reference = pair.one.started.problem.reference is not None
    left, right = st.columns([3, 2], vertical_alignment="center")
    left.subheader("All methods on this question")
    revealed = has_reference and right.toggle("Reveal the reference answer", key="reveal")
    if revealed:
        reference = safe(pair.one.started.problem.reference)
        st.html(f'<div class="svr-legend"><span>reference answer: <b>{reference}</b></span></div>')
    inks = theme.ink()
    plot("methods", json.dumps(charts.methods(found, bool(revealed), inks).as_data()), "methods", inks)
    top = "".join(f"<th>{t}</th>" for t in ("method", "verdict", "by")) + "".join(
        f'<th class="n">{t}</th>' for t in _NUMBERS
    )
    body = "".join(_table_row(r, r.run_id in shown, bool(revealed)) for r in found)
    table_ = f'<table class="svr-table svr-rows"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    st.html(f'<div class="svr-wide">{table_}</div>')
    notes = [f"{PROTOCOLS[p].title}: {PROTOCOLS[p].note}" for p in PROTOCOLS if PROTOCOLS[p].note and _has(found, p)]
    st.caption(
        "Initial answers are counted in every row. One question says little: a method can be right here by luck. "
        + " ".join(notes)
    )
    return found


def _has(found: list[Row], protocol: str) -> bool:
    return any(r.method.partition(":")[0] == protocol for r in found)


def _table_row(r: Row, shown: bool, revealed: bool) -> str:
    mark = {True: "✓ ", False: "✕ ", None: ""}[r.right] if revealed else ""
    texts = [
        mark + ("–" if r.answer is None else short(r.answer, 30)),
        REASON_WORDS.get(r.reason or "", r.reason or "interrupted"),
    ]
    numbers = [
        f"{r.links}",
        f"{r.calls}",
        f"{r.rounds}",
        f"{r.tokens:,}",
        f"{r.prompt_tokens:,} + {r.completion_tokens:,}",
        "–" if r.tokens_ratio is None else f"{r.tokens_ratio:.0%}",
        "unknown" if r.cost is None else f"{r.cost:.4f}",
        f"{r.seconds:.1f}",
        f"{r.critical_path:.1f}",
    ]
    cells = "".join(f'<td class="t">{safe(t)}</td>' for t in texts) + "".join(
        f'<td class="n">{safe(t)}</td>' for t in numbers
    )
    return f'<tr{" class=side" if shown else ""}><th scope="row">{safe(r.title)}</th>{cells}</tr>'


__all__ = ["both", "head", "parted", "rows", "table", "titles"]
