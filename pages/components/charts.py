"""Pure functions to a film: the courses of two runs, methods against tokens, and how protocols grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from svrmad_core.comparison import Point, Row
from svrmad_core.growth import growth

from .figures import CLEAR
from .film import Film, Layer
from .look import Ink, plotly_text, short
from .twins import Stop

COURSE_HEIGHT, ROW_HEIGHT, GROWTH_HEIGHT = 250, 42, 380
"""Pixels."""
SIDES = ("solid", "dash")
"""How the lines of the two runs are drawn; dots are full and hollow."""
MARKS = ("circle", "square", "diamond", "triangle-up", "pentagon", "hexagon", "star", "cross")


def _layout(ink: Ink, height: float, **more: Any) -> dict[str, Any]:
    axis = {"zeroline": False, "fixedrange": True, "tickfont": {"color": ink.muted}, "gridcolor": ink.faint}
    base = {
        "height": int(height * ink.scale),
        "showlegend": False,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "dragmode": False,
        "hoverlabel": {"align": "left"},
        "font": {"color": ink.muted, "size": 14 * ink.scale},
        "margin": {"l": 62 * ink.scale, "r": 16, "t": 34 * ink.scale, "b": 40 * ink.scale},
    }
    return base | {name: axis | value if name in ("xaxis", "yaxis") else value for name, value in more.items()}


# -- two runs --------------------------------------------------------------------------------------------------------

COURSES = {"tokens": "tokens so far", "links": "links so far", "prompt": "tokens of each prompt"}


def courses(
    one: Sequence[Point], two: Sequence[Point], stops: Sequence[Stop], titles: tuple[str, str], what: str, ink: Ink
) -> Film:
    """A curve for each run over its calls, with a dot where the cursor stands.

    Parameters
    ----------
    what
        Of ``COURSES``: cumulative tokens, cumulative links, or the length of each call's prompt.
    """
    sides = [_course(points, what) for points in (one, two)]
    tallest = max((y for side in sides for _, _, y in side), default=1) or 1
    longest = max((x for side in sides for _, x, _ in side), default=1)
    layout = _layout(
        ink,
        COURSE_HEIGHT,
        title={"text": COURSES[what], "font": {"size": 15 * ink.scale, "color": ink.text}, "x": 0.02, "y": 0.97},
        xaxis={"range": [-0.4, max(1, longest) * 1.04 + 0.2], "title": {"text": "calls"}, "showgrid": False},
        yaxis={"range": [-0.04 * tallest, 1.12 * tallest], "nticks": 5},
    )
    ends = [f"{title} {side[-1][2]:,}" for title, side in zip(titles, sides, strict=True) if side]
    film = Film(len(stops), layout, alt=[f"{COURSES[what]}: {', '.join(ends)}."] * len(stops))
    for side, title, dash in zip(sides, titles, SIDES, strict=True):
        line = film.layer(
            title,
            mode="lines+markers" if what == "prompt" else "lines",
            line={"color": ink.text, "width": 3 * ink.scale, "dash": dash},
            marker={"size": 5 * ink.scale, "color": ink.text},
            hovertemplate="call %{x}: %{y:,}<extra>" + plotly_text(title) + "</extra>",
        )
        for _, x, y in side:
            line.add(1, x=x, y=y)
    for number, (side, dash) in enumerate(zip(sides, SIDES, strict=True)):
        dot = film.layer(
            f"cursor {number}",
            mode="markers",
            hoverinfo="skip",
            marker={
                "size": 14 * ink.scale,
                "color": ink.text if dash == "solid" else ink.paper,
                "line": {"color": ink.text, "width": 3},
            },
        )
        for at, stop in enumerate(stops, 1):
            reached = [p for p in side if p[0] <= stop[1 + number]]
            if reached:
                dot.add(at, at + 1, x=reached[-1][1], y=reached[-1][2])
    return film


def _course(points: Sequence[Point], what: str) -> list[tuple[int, int, int]]:
    """(step, calls so far, value) after each call."""
    found, calls, before = [], 0, 0
    for p in points:
        # a call is a step that spent tokens or, where none are told, sent a prompt
        if p.prompt is None and p.tokens == before:
            continue
        before, calls = p.tokens, calls + 1
        value = {"tokens": p.tokens, "links": p.links, "prompt": p.prompt or 0}[what]
        found.append((p.k, calls, value))
    return found


# -- all methods -----------------------------------------------------------------------------------------------------


def methods(rows: Sequence[Row], revealed: bool, ink: Ink) -> Film:
    """The verdict of each method against its tokens: one row a method, those of one verdict together, cheapest first.

    Parameters
    ----------
    revealed
        Say which verdict is right; that one then stands at the top.
    """

    def group(r: Row) -> tuple[int, str]:
        return (0 if revealed and r.right else 1, r.answer or "~")

    ordered = sorted(rows, key=lambda r: (*group(r), r.tokens))
    places: list[float] = []
    for i, r in enumerate(ordered):
        gap = i > 0 and group(ordered[i - 1]) != group(r)
        places.append((places[-1] + (1.9 if gap else 1)) if places else 0.6)
    heads = [i for i, r in enumerate(ordered) if i == 0 or group(ordered[i - 1]) != group(r)]
    most = max((r.tokens for r in rows), default=1) or 1
    layout = _layout(
        ink,
        60 + ROW_HEIGHT * (places[-1] + 1 if places else 1),
        xaxis={"range": [0, 1.06 * most], "title": {"text": "tokens, initial answers included"}, "nticks": 5},
        yaxis={"range": [(places[-1] if places else 1) + 0.5, -0.6], "visible": False},
        margin={"l": 10, "r": 24, "t": 4, "b": 46 * ink.scale},
    )
    told = "; ".join(f"{r.title}: {short(r.answer, 30)}, {r.tokens:,} tokens" for r in ordered)
    film = Film(1, layout, alt=[f"Verdict of each method against its tokens. {told}."])
    bars = film.layer("tokens", mode="lines", line={"color": ink.line, "width": 6 * ink.scale}, hoverinfo="skip")
    dots = film.layer(
        "verdicts",
        mode="markers",
        hovertemplate="%{customdata}<extra></extra>",
        cliponaxis=False,
    )

    def texts(name: str, size: float) -> Layer:
        font = {"size": size * ink.scale, "color": ink.text}
        look = {"textposition": "middle right", "textfont": font, "hoverinfo": "skip", "cliponaxis": False}
        return film.layer(name, mode="text", **look)

    names, answers = texts("methods", 14), texts("answers", 17)
    for i, (r, y) in enumerate(zip(ordered, places, strict=True)):
        bars.line([(0, y), (r.tokens, y)], 1)
        names.add(1, x=0, y=y - 0.42, text=f"{plotly_text(r.title)}  <b>{r.tokens:,}</b>")
        wrong = revealed and r.right is False
        dots.add(
            1,
            x=r.tokens,
            y=y,
            customdata=plotly_text(f"{r.title}: {r.tokens:,} tokens, {r.links} links, {r.calls} calls"),
            marker__symbol="x" if wrong else "circle",
            marker__size=14 * ink.scale,
            marker__color="#009E73" if revealed and r.right else "#D55E00" if wrong else ink.text,
        )
        if i in heads:
            mark = "" if not revealed or r.right is None else "✓ right: " if r.right else "✕ wrong: "
            answer = "no answer" if r.answer is None else short(r.answer, 30)
            answers.add(1, x=0, y=y - 1.05, text=f"<b>{plotly_text(mark + answer)}</b>")
    return film


# -- growth ----------------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    """A run as a measured point: its agents, and its links or replies."""

    protocol: str
    agents: int
    value: int
    text: str


GROWN = {"links": "links", "longest": "replies in the longest prompt", "read": "replies read in all prompts"}


def grown(
    protocols: dict[str, str], n: int, rounds: int, what: str, seen: Iterable[Seen], ink: Ink, **options: Any
) -> Film:
    """How a protocol grows with the agents, at a number of rounds, and what runs measured.

    Parameters
    ----------
    protocols
        Names and titles, in the order of their signs.
    n, rounds
        The N that is marked, and T.
    what
        A field of ``Growth``.
    options
        Of ``growth``.
    """
    agents = range(2, 51)
    lines = {p: [getattr(growth(p, a, rounds, **options), what) for a in agents] for p in protocols}
    top = max(max(values) for values in lines.values())
    layout = _layout(
        ink,
        GROWTH_HEIGHT,
        title={
            "text": f"{GROWN[what]}, T = {rounds}",
            "font": {"size": 15 * ink.scale, "color": ink.text},
            "x": 0.02,
            "y": 0.98,
        },
        margin={"l": 50 * ink.scale, "r": 150 * ink.scale, "t": 34 * ink.scale, "b": 40 * ink.scale},
        xaxis={"range": [1, 51], "title": {"text": "agents N"}, "showgrid": False},
        yaxis={"type": "log", "range": [0, len(str(top))], "dtick": 1},
        shapes=[
            {
                "type": "line",
                "x0": n,
                "x1": n,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": ink.muted, "dash": "dot", "width": 1.5},
            }
        ],
    )
    at = {p: getattr(growth(p, n, rounds, **options), what) for p in protocols}
    told = ", ".join(f"{title} {at[p]:,}" for p, title in protocols.items())
    film = Film(1, layout, alt=[f"{GROWN[what]} for N = {n}, T = {rounds}: {told}."])
    for i, (p, title) in enumerate(protocols.items()):
        own = p == "svr_mad"
        line = film.layer(
            p,
            mode="lines",
            line={
                "color": ink.text if own else ink.line,
                "width": (4.5 if own else 2) * ink.scale,
                "dash": ("solid", "solid", "dot", "dash", "dashdot", "longdash", "longdashdot", "dot")[i % 8],
            },
            hovertemplate=plotly_text(title) + ": %{y:,} at N = %{x}<extra></extra>",
        )
        for a, value in zip(agents, lines[p], strict=True):
            if value:
                line.add(1, x=a, y=value)
        if at[p]:
            mark = film.layer(
                f"{p} at N",
                mode="markers",
                marker={"symbol": MARKS[i % 8], "size": 12 * ink.scale, "color": ink.text},
                hovertemplate=plotly_text(title) + f": {at[p]:,} at N = {n}<extra></extra>",
            )
            mark.add(1, x=n, y=at[p])
    _ends(film, {title: lines[p][-1] for p, title in protocols.items()}, len(str(top)), ink)
    points = film.layer(
        "measured",
        mode="markers",
        hovertemplate="%{customdata}<extra></extra>",
        marker={"size": 11 * ink.scale, "color": "#D55E00", "line": {"color": ink.paper, "width": 1}},
    )
    signs = dict(zip(protocols, MARKS, strict=False))
    for s in seen:
        if s.value > 0 and s.protocol in signs:
            points.add(1, x=s.agents, y=s.value, customdata=plotly_text(s.text), marker__symbol=signs[s.protocol])
    return film


def _ends(film: Film, last: dict[str, int], decades: int, ink: Ink) -> None:
    """The names of the lines at their right ends, those of one value together, moved apart where they would touch."""
    together: dict[int, list[str]] = {}
    for title, value in last.items():
        if value:
            together.setdefault(value, []).append(title)
    layer = film.layer(
        "names",
        mode="text",
        textposition="middle right",
        textfont={"size": 13 * ink.scale, "color": ink.text},
        hoverinfo="skip",
        cliponaxis=False,
    )
    line, top = decades * 0.056, -1.0
    for value, names in sorted(together.items()):
        half = line * len(names) / 2
        middle = max(math.log10(value), top + half)
        top = middle + half
        text = "<br>".join(names)
        layer.add(1, x=50.5, y=10**middle, text=f"<b>{text}</b>" if "SVR-MAD" in names else text)


__all__ = ["COURSES", "GROWN", "MARKS", "Seen", "courses", "grown", "methods"]
