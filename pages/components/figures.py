"""Pure functions from a debate to a Plotly figure.

A figure is plain data, ``{"data": [...], "layout": {...}}``, which ``plotly.graph_objects.Figure`` takes as it is:
building Plotly's own objects costs fifty times as much, and every step of a run has a figure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from svrmad_core.debate import Debate
from svrmad_core.graph import communication_graph
from svrmad_core.records import RunStarted
from svrmad_core.words import number

from .look import Ink, colour, plotly_text, shape, short, text_on

Point = tuple[float, float]
Figure = dict[str, Any]
"""A Plotly figure as plain data."""
Trace = dict[str, Any]
GRAPH_HEIGHT, SCORE_HEIGHT = 480, 300
"""Pixels."""


def places(names: Sequence[str]) -> dict[str, Point]:
    """Fixed places on a circle, A1 at the top and on clockwise, so that nothing jumps between steps."""
    n = len(names)
    return {
        name: (math.sin(2 * math.pi * i / n), math.cos(2 * math.pi * i / n)) if n > 1 else (0.0, 0.0)
        for i, name in enumerate(names)
    }


def _bend(start: Point, end: Point, near: float, far: float, bow: float, steps: int = 14) -> list[Point]:
    """A quadratic curve from start to end, stopping short of both nodes, bowed to its left."""
    (x0, y0), (x1, y1) = start, end
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    cx = (x0 + x1) / 2 - (y1 - y0) * bow
    cy = (y0 + y1) / 2 + (x1 - x0) * bow
    first, last = near / length, 1 - far / length
    points = []
    for i in range(steps + 1):
        t = first + (last - first) * i / steps
        u = 1 - t
        points.append((u * u * x0 + 2 * u * t * cx + t * t * x1, u * u * y0 + 2 * u * t * cy + t * t * y1))
    return points


def graph_figure(debate: Debate, ink: Ink, height: int = GRAPH_HEIGHT) -> Figure:
    """The communication graph so far: nodes coloured and shaped by belief, edges challenger -> receiver.

    Retained is solid, changed dashed, void dotted; what happened last is thick, older edges fade; the links
    of all-to-all are faint ghosts behind.
    """
    graph = communication_graph(debate)
    at = places(list(graph))
    n = len(at)
    size = max(14.0, min(54.0, 250.0 / max(n, 1) ** 0.85))
    reach = 1.5 if n <= 25 else 1.2
    # half a node and its ring in the units of the axes: edges end there, labels begin there
    radius = (size / 2 + 9) * 2 * reach / height
    data = [_ghosts(at, ink), *_edges(graph, debate, at, radius, ink)]
    if n <= 12 and len(debate.links) <= 24:
        data.append(_numbers(graph, at, radius, ink))
    data += [_ring(debate, at, size, ink), _nodes(debate, at, size)]
    if n <= 25:
        data.append(_labels(debate, at, radius, n, ink))
    axis = {"visible": False, "fixedrange": True}
    layout = _layout(debate.started.run_id, height) | {
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "hoverlabel": {"align": "left"},
        "xaxis": axis | {"range": [-reach * 1.2, reach * 1.2]},
        "yaxis": axis | {"range": [-reach, reach], "scaleanchor": "x"},
    }
    return {"data": data, "layout": layout}


def _scatter(**fields: Any) -> Trace:
    return {"type": "scatter", **fields}


def _layout(run_id: str, height: int) -> dict[str, Any]:
    """What the figures share: no legend, the page shows through, and a zoom stays from step to step."""
    clear = "rgba(0,0,0,0)"
    return {
        "height": height,
        "showlegend": False,
        "paper_bgcolor": clear,
        "plot_bgcolor": clear,
        "uirevision": run_id,
    }


def _ghosts(at: dict[str, Point], ink: Ink) -> Trace:
    names = list(at)
    x: list[float | None] = []
    y: list[float | None] = []
    for i, a in enumerate(names):
        for b in names[i + 1 :]:
            x += [at[a][0], at[b][0], None]
            y += [at[a][1], at[b][1], None]
    return _scatter(x=x, y=y, mode="lines", name="ghosts", line={"color": ink.faint, "width": 1}, hoverinfo="skip")


def _newest(debate: Debate) -> int:
    """The event number of the newest links, or -1."""
    return debate.links[-1].seq if debate.links else -1


def _edges(graph: Any, debate: Debate, at: dict[str, Point], radius: float, ink: Ink) -> list[Trace]:
    newest = _newest(debate)
    many = graph.number_of_edges() > 60
    groups: dict[tuple[str, bool], tuple[list[Any], list[Any], list[Any]]] = {}
    traces = []
    for challenger, receiver, data in graph.edges(data=True):
        link = data["links"][-1]
        outcome = {True: "retained", False: "changed", None: "void"}[link.retained]
        current = link.seq == newest
        curve = _bend(at[challenger], at[receiver], radius, radius, -0.13, 6 if many else 14)
        xs, ys, texts = groups.setdefault((outcome, current), ([], [], []))
        text = _edge_text(debate, link, outcome)
        for px, py in curve:
            xs.append(px)
            ys.append(py)
            texts.append(text)
        xs.append(None)
        ys.append(None)
        texts.append(None)
    dashes = {"retained": "solid", "changed": "dash", "void": "dot"}
    for (outcome, current), (xs, ys, texts) in sorted(groups.items(), key=lambda item: item[0][1]):
        width = (4.5 if current else 2.0) * (0.6 if many else 1.0)
        # arrow heads only where a curve ends: the last point before each gap
        ends = [0 if i + 1 < len(xs) and xs[i + 1] is not None else 1 for i in range(len(xs))]
        head = (20 if current else 15) * (0.7 if many else 1.0)
        traces.append(
            _scatter(
                x=xs,
                y=ys,
                text=texts,
                mode="lines+markers",
                name=f"{outcome}{' now' if current else ''}",
                line={"color": ink.text if current else ink.line, "width": width, "dash": dashes[outcome]},
                marker={
                    "symbol": "arrow",
                    "angleref": "previous",
                    "size": [head if end and x is not None else 0 for end, x in zip(ends, xs, strict=True)],
                    "color": ink.text if current else ink.line,
                    "line": {"width": 0},
                },
                opacity=1.0 if current else 0.75,
                hovertemplate="%{text}<extra></extra>",
            )
        )
    return traces


def _edge_text(debate: Debate, link: Any, outcome: str) -> str:
    def said(belief: int | None) -> str:
        return plotly_text(short(None if belief is None else debate.beliefs[belief], 40))

    return (
        f"round {link.round}: {link.challenger} ({said(link.challenger_belief)}) → {link.receiver}"
        f"<br>{outcome}: {said(link.before)} → {said(link.after)}"
    )


def _numbers(graph: Any, at: dict[str, Point], radius: float, ink: Ink) -> Trace:
    """The order of the links, in small discs on the edges."""
    points, texts = [], []
    for challenger, receiver, data in graph.edges(data=True):
        points.append(_bend(at[challenger], at[receiver], radius, radius, -0.13, 10)[4])
        texts.append(str(data["number"]))
    return _scatter(
        x=[p[0] for p in points],
        y=[p[1] for p in points],
        text=texts,
        mode="markers+text",
        name="order",
        hoverinfo="skip",
        marker={"size": 20, "color": ink.paper, "line": {"color": ink.line, "width": 1.2}},
        textfont={"size": 11, "color": ink.text},
    )


def _ring(debate: Debate, at: dict[str, Point], size: float, ink: Ink) -> Trace:
    """A ring around the receiver of the round, or the accepted agent."""
    if debate.verdict is not None:
        name = debate.verdict.agent
    else:
        name = debate.round.receiver if debate.round is not None else None
    points = [at[name]] if name in at else []
    return _scatter(
        x=[p[0] for p in points],
        y=[p[1] for p in points],
        mode="markers",
        name="receiver",
        hoverinfo="skip",
        marker={"size": size + 16, "color": "rgba(0,0,0,0)", "line": {"color": ink.text, "width": 3}},
    )


def _nodes(debate: Debate, at: dict[str, Point], size: float) -> Trace:
    states = list(debate.agents.values())
    fills = [colour(s.belief) for s in states]
    hover = [
        f"<b>{s.name}</b> · {plotly_text(s.agent.model)}<br>answer: {plotly_text(short(s.answer, 60))}"
        f"<br>prior {number(s.prior)} · r {s.retained} · c {s.changed} · D {s.debates}"
        + (f"<br>{plotly_text(short(s.failure.message, 90))}" if s.failure else "")
        for s in states
    ]
    return _scatter(
        x=[at[s.name][0] for s in states],
        y=[at[s.name][1] for s in states],
        mode="markers+text",
        name="agents",
        text=[f"<b>{s.name}</b>" for s in states],
        textfont={
            "size": max(9, size * 0.31),
            "color": [text_on(f) if s.belief is not None else f for f, s in zip(fills, states, strict=True)],
        },
        customdata=[s.name for s in states],
        hovertext=hover,
        hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "size": size,
            "color": fills,
            "symbol": [shape(s.belief) for s in states],
            "opacity": [0.45 if s.failure else 1 for s in states],
            "line": {"width": 0},
        },
    )


def _labels(debate: Debate, at: dict[str, Point], radius: float, n: int, ink: Ink) -> Trace:
    """Outside each node: its answer, and its score by name."""
    xs, ys, texts, positions = [], [], [], []
    for state in debate.agents.values():
        x, y = at[state.name]
        out = 1 + radius + 0.02
        side = "middle right" if x > 0.3 else "middle left" if x < -0.3 else ""
        # beside a node only the width counts, so that a label clears the ring without drifting away
        xs.append(x + math.copysign(radius + 0.03, x) if side else x * out)
        ys.append(y if side else y * out if n > 1 else -radius * 1.6)
        positions.append(side or ("top center" if y > 0 else "bottom center"))
        texts.append(_label(debate, state, n))
    return _scatter(
        x=xs,
        y=ys,
        text=texts,
        textposition=positions,
        mode="text",
        name="scores",
        hoverinfo="skip",
        cliponaxis=False,
        textfont={"size": 14 if n <= 12 else 12, "color": ink.muted},
    )


def _label(debate: Debate, state: Any, n: int) -> str:
    if state.failure is not None and not state.turns:
        return "no reply"
    if not state.turns:
        return "…"
    if state.belief is None:
        return "no answer"
    svr = state.svr
    score = f"SVR {number(svr)}" if svr is not None else f"prior {number(state.prior)}"
    if n > 12:
        return number(svr if svr is not None else state.prior)
    return f"{plotly_text(short(state.answer, 14))}<br>{score}"


class Trail(NamedTuple):
    """One agent's score and belief over the turns: a value for each of 0 ... number of turns."""

    scores: list[float | None]
    beliefs: list[int | None]
    debated: list[int]


def trails(started: RunStarted, events: Sequence[Any], upto: int) -> tuple[dict[str, Trail], int]:
    """Scores and beliefs of all agents after each turn that followed the initial answers.

    Returns
    -------
    trails, turns
        name -> Trail, each list one longer than the number of turns after ``upto`` events.
    """
    debate = Debate(started)
    found = {name: Trail([], [], []) for name in debate.agents}

    def note() -> None:
        for name, trail in found.items():
            state = debate.agents[name]
            trail.scores.append(debate.score(name) if state.turns else None)
            trail.beliefs.append(state.belief)
            trail.debated.append(state.debates)

    turns = 0
    answering = True
    for event in events[1:upto]:
        later = event.event in ("debated", "revised")
        if later and answering:
            answering = False
            note()
        debate.apply(event)
        if later:
            turns += 1
            note()
    if answering:
        note()
    return found, turns


def score_figure(started: RunStarted, events: Sequence[Any], k: int, ink: Ink, height: int = SCORE_HEIGHT) -> Figure:
    """Prior against SVR: a hollow marker for each prior, a step line for each score, tau dashed.

    A line changes colour where its agent changes its belief; agents that have not debated stay faint.
    """
    found, turns = trails(started, events, k)
    total = sum(1 for e in events if e.event in ("debated", "revised"))
    tau = started.settings.tau
    uses_tau = started.protocol == "svr_mad"
    shapes = [_line(ink.line, x0=turns, x1=turns, yref="paper", y0=0, y1=1)]
    annotations: list[dict[str, Any]] = []
    if uses_tau:
        shapes.append(_line(ink.text, dash="dash", xref="paper", x0=0, x1=1, y0=tau, y1=tau))
        annotations.append(_beside(tau, f"τ = {tau:g}", ink.text, 14))
    data: list[Trace] = []
    ends: list[tuple[float, str, str]] = []
    for name, trail in found.items():
        active = trail.debated[-1] > 0
        for xs, ys, belief in _runs(trail):
            data.append(
                _scatter(
                    x=xs,
                    y=ys,
                    mode="lines",
                    name=name,
                    line={"shape": "hv", "width": 3.5 if active else 1.5, "color": colour(belief)},
                    opacity=1 if active else 0.45,
                    hovertemplate=f"{name}: %{{y:.2f}}<extra></extra>",
                )
            )
        if active and trail.scores[-1] is not None:
            ends.append((trail.scores[-1], name, colour(trail.beliefs[-1])))
    data.append(_priors(found))
    for y, name, value, fill in _spread(ends, lowest=-1.02 if uses_tau else 0.02):
        readable = ink.text if (fill, ink.paper) == ("#F0E442", "#FFFFFF") else fill
        annotations.append(_beside(y, f"<b>{name} {number(value)}</b>", readable, 15))
    ticks = (-1, -0.5, 0, 0.5, 1) if uses_tau else (0, 0.25, 0.5, 0.75, 1)
    axis = {"zeroline": False, "fixedrange": True, "tickfont": {"color": ink.muted}}
    layout = _layout(started.run_id, height) | {
        "margin": {"l": 46, "r": 92, "t": 14, "b": 40},
        "font": {"color": ink.muted, "size": 14},
        "shapes": shapes,
        "annotations": annotations,
        "xaxis": axis
        | {
            "range": [-0.25, max(total, 1) + 0.15],
            "title": {"text": "turns after the initial answers", "font": {"size": 14}},
            "dtick": 1 if total <= 20 else None,
            "showgrid": False,
        },
        "yaxis": axis
        | {
            "range": [-1.08 if uses_tau else -0.04, 1.08],
            "tickvals": ticks,
            "ticktext": [f"{t:g}".replace("-", "−") for t in ticks],
            "gridcolor": ink.faint,
        },
    }
    return {"data": data, "layout": layout}


def _line(colour: str, dash: str = "solid", **where: Any) -> dict[str, Any]:
    return {"type": "line", "line": {"color": colour, "width": 1.5, "dash": dash}, **where}


def _beside(y: float, text: str, fill: str, size: int) -> dict[str, Any]:
    """A label in the right margin."""
    where = {"x": 1.015, "xref": "paper", "y": y, "xanchor": "left", "showarrow": False}
    return {"text": text, "font": {"size": size, "color": fill}, **where}


def _runs(trail: Trail) -> list[tuple[list[int], list[float | None], int | None]]:
    """Split a trail where the belief changes, each piece reaching to where the next begins."""
    pieces: list[tuple[list[int], list[float | None], int | None]] = []
    start = 0
    last = len(trail.scores) - 1
    for i in range(1, last + 1):
        if trail.beliefs[i] != trail.beliefs[start]:
            xs = list(range(start, i + 1))
            pieces.append((xs, [trail.scores[x] for x in xs], trail.beliefs[start]))
            start = i
    xs = list(range(start, last + 1))
    pieces.append((xs, [trail.scores[x] for x in xs], trail.beliefs[start]))
    return pieces


def _priors(found: dict[str, Trail]) -> Trace:
    rows = [(name, t.scores[0], colour(t.beliefs[0]), shape(t.beliefs[0])) for name, t in found.items()]
    return _scatter(
        x=[0] * len(rows),
        y=[r[1] for r in rows],
        mode="markers",
        name="prior",
        hovertext=[r[0] for r in rows],
        hovertemplate="%{hovertext}: prior %{y:.2f}<extra></extra>",
        marker={
            "size": 11,
            "symbol": [r[3] if r[3].endswith("-open") else f"{r[3]}-open" for r in rows],
            "color": [r[2] for r in rows],
            "line": {"width": 2.5},
        },
        cliponaxis=False,
    )


def _spread(
    ends: list[tuple[float, str, str]], gap: float = 0.155, lowest: float = -1.02
) -> list[tuple[float, str, float, str]]:
    """Move labels apart that would lie on each other: down from the highest, then up again from the bottom."""
    rows = sorted(ends, key=lambda end: (-end[0], end[1]))
    places: list[float] = []
    for value, _, _ in rows:
        places.append(min(value, places[-1] - gap) if places else value)
    for i in reversed(range(len(places))):
        places[i] = max(places[i], lowest if i + 1 == len(places) else places[i + 1] + gap)
    return [(y, name, value, fill) for y, (value, name, fill) in zip(places, rows, strict=True)]


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
