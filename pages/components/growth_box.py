"""O(N^2 t), seen: how each protocol grows with agents and rounds, as a formula and as runs measured it."""

from __future__ import annotations

import json

import streamlit as st

from svrmad_core.comparison import Row
from svrmad_core.growth import FORMULAS, growth, measured
from svrmad_core.protocols import PROTOCOLS
from svrmad_core.recording import RunInfo

from . import charts, library, pairing, theme
from .lazily import unfolds
from .look import safe, short
from .plot import plot

_SIGNS = {"circle": "●", "square": "■", "diamond": "◆", "triangle-up": "▲", "pentagon": "⬟", "hexagon": "⬢"}
_SIGNS |= {"star": "★", "cross": "✚"}


def section(rows: list[Row]) -> None:
    """The section, folded away until it is wanted."""
    if box := unfolds("Why it saves: how debates grow with N and T", "open_growth", icon=":material/show_chart:"):
        with box:
            _growth(rows)


@st.fragment
def _growth(rows: list[Row]) -> None:
    left, middle, right = st.columns(3)
    n = left.slider("Agents N", 2, 50, 6, key="growth_n")
    rounds = middle.slider("Rounds T", 1, 6, 2, key="growth_t")
    beliefs = right.slider("Different answers B (S2-MAD)", 2, 50, 4, key="growth_b")
    options = {"beliefs": beliefs}
    titles = {name: PROTOCOLS[name].title for name in FORMULAS if name != "self_consistency"}
    inks = theme.ink()
    for column, what in zip(st.columns(2), ("links", "longest"), strict=True):
        with column:
            film = charts.grown(titles, n, rounds, what, _seen(rows, what, rounds), inks, **options)
            plot("growth", json.dumps(film.as_data()), f"growth-{what}", inks, key=f"growth_{what}")
    st.html(_table(titles, n, rounds, beliefs))
    st.caption(
        "The lines are debates that never agree; a context is counted in replies, with memory = full. Orange: runs at "
        "hand that had this T. With all-to-all each of N agents reads N·t replies in round t: about N²T²/2 in all. "
        "SVR-MAD's debates do not grow with N."
    )


def _table(titles: dict[str, str], n: int, rounds: int, beliefs: int) -> str:
    head = "".join(
        f"<th>{t}</th>"
        for t in (
            "",
            "protocol",
            "links",
            f"at N = {n}, T = {rounds}",
            "longest prompt, in replies",
            "",
            "replies read",
        )
    )
    body = ""
    for (name, title), mark in zip(titles.items(), charts.MARKS, strict=False):
        found = growth(name, n, rounds, beliefs=beliefs)
        links, longest = FORMULAS[name]
        cells = (_SIGNS[mark], title, links, f"{found.links:,}", longest, f"{found.longest:,}", f"{found.read:,}")
        body += "<tr>" + "".join(f"<td>{safe(c)}</td>" for c in cells) + "</tr>"
    table = f'<table class="svr-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="svr-scroll">{table}</div>'


def _seen(rows: list[Row], what: str, rounds: int) -> list[charts.Seen]:
    """Links of all finished runs, contexts of those on this page, each with as many rounds as are shown."""
    if what == "links":
        return [_links(i) for i in pairing.known_runs().values() if i.totals is not None and i.totals.rounds == rounds]
    found = []
    for r in rows:
        recording = library.open_run(r.run_id)
        if r.rounds == rounds:
            value = getattr(measured(recording.events), what)
            n = len(recording.started.agents)
            text = f"{r.title}, this question: {value} {charts.GROWN[what]} (N = {n})"
            found.append(charts.Seen(recording.started.protocol, n, value, text))
    return found


def _links(info: RunInfo) -> charts.Seen:
    text = f"{pairing.method_title(info)}, {short(info.question, 40)}: {info.totals.links} links (N = {info.agents})"
    return charts.Seen(info.protocol, info.agents, info.totals.links, text)


__all__ = ["section"]
