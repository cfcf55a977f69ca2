"""Pure functions from a walk through a run to a film: the graph, the scores, the slopes, the flow of beliefs.

Colour is belief, nodes stay put, edges run challenger -> receiver. A film is plain data: building Plotly's own objects
costs fifty times as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from svrmad_core.debate import Link
from svrmad_core.words import number

from .film import EDGE, NOW, Film, Layer, spans
from .look import Ink, colour, plotly_text, shape, short, text_on
from .walk import State, Walk

Point = tuple[float, float]
GRAPH_HEIGHT, SCORE_HEIGHT = 480, 300
"""Pixels."""
CLEAR = "rgba(0,0,0,0)"
OUTCOMES = {True: "retained", False: "changed", None: "void"}
DASHES = {"retained": "solid", "changed": "dash", "void": "dot"}
MANY = 12
"""Beyond so many agents labels shrink to the score alone, and scores are named for a few."""
CROWD = 25
"""Beyond so many agents nodes have their names beside them and no labels; hovering and the table tell."""
HAIRBALL = 600
"""Beyond so many pairs of agents that have debated, only the newest links are drawn: the others would hide them, and
stand among the ghosts and in the table."""
_BOW = -0.13


def places(names: Sequence[str]) -> dict[str, Point]:
    """Fixed places on a circle, A1 at the top and on clockwise, so that nothing jumps between steps."""
    n = len(names)
    return {
        name: (math.sin(2 * math.pi * i / n), math.cos(2 * math.pi * i / n)) if n > 1 else (0.0, 0.0)
        for i, name in enumerate(names)
    }


def grouped_places(names: Sequence[str], beliefs: int) -> Callable[[str, int | None], Point]:
    """Where an agent stands that holds a belief: in that belief's ring, always at its own place in it.

    The rings stand on a circle; agents without an answer are in the middle.
    """
    reach = 0.58 * min(1.0, 3.2 / max(beliefs, 1) + 0.12)

    def place(name: str, belief: int | None) -> Point:
        own = 2 * math.pi * names.index(name) / len(names)
        x, y = reach * math.sin(own), reach * math.cos(own)
        if belief is None:
            return x * 0.8, y * 0.8
        ring = 2 * math.pi * belief / beliefs
        return 1.1 * math.sin(ring) + x, math.cos(ring) + y

    return place


def _layout(run_id: str, height: int) -> dict[str, Any]:
    """What the figures share: no legend, the page shows through, and a zoom stays from step to step."""
    return {
        "height": height,
        "showlegend": False,
        "paper_bgcolor": CLEAR,
        "plot_bgcolor": CLEAR,
        "uirevision": run_id,
        "hoverlabel": {"align": "left"},
        "dragmode": False,
    }


# -- the graph ---------------------------------------------------------------------------------------------------


def graph(w: Walk, ink: Ink, grouped: bool = False, height: int = GRAPH_HEIGHT) -> Film:
    """The communication graph, growing.

    Retained is solid, changed dashed, void dotted; what happened last is thick, older edges fade; the links
    of all-to-all are faint ghosts behind. The receiver wears a ring, challengers still to be heard a thin one.

    Parameters
    ----------
    grouped
        Agents of one belief stand together, so that a changed mind moves its agent; else nodes stay put.
    """
    names = list(w.agents)
    n = len(names)
    height = int(height * ink.scale)
    circle = places(names)
    place = grouped_places(names, len(w.beliefs)) if grouped else lambda name, belief: circle[name]
    size = ink.scale * max(14.0, min(54.0, 250.0 / max(n, 1) ** 0.85)) * (0.8 if grouped and n > 2 else 1.0)
    reach = (1.85 if grouped else 1.5) if n <= CROWD else (1.75 if grouped else 1.2)
    # half a node and its ring in the units of the axes: edges end there, labels begin there
    radius = (size / 2 + 9) * 2 * reach / height
    axis = {"visible": False, "fixedrange": True}
    layout = _layout(w.started.run_id, height) | {
        "margin": {"l": 0, "r": 0, "t": 0, "b": 0},
        "xaxis": axis | {"range": [-reach * 1.2, reach * 1.2]},
        "yaxis": axis | {"range": [-reach, reach], "scaleanchor": "x"},
    }
    if not grouped:
        layout["shapes"] = _ghosts(circle, ink)
    film = Film(w.steps, layout, alt=w.graph_alt, fit=int(height * 1.2))
    drawn = _edges(film, w, place, radius, ink)
    if n <= MANY and len(w.links) <= 24:
        _numbers(film, drawn, ink)
    _rings(film, w, place, size, ink)
    _nodes(film, w, place, size, ink)
    if n <= CROWD:
        _labels(film, w, place, radius, ink, grouped)
    elif not grouped:
        _names(film, circle, radius, ink)
    return film


def _names(film: Film, at: dict[str, Point], radius: float, ink: Ink) -> None:
    """The names of a crowd, which its nodes are too small for, around the circle."""
    layer = film.layer(
        "names", mode="text", hoverinfo="skip", textfont={"size": 11 * ink.scale, "color": ink.muted}, cliponaxis=False
    )
    for name, (x, y) in at.items():
        out = 1 + radius * 1.15
        layer.add(1, x=x * out, y=y * out, text=name)


def _ghosts(at: dict[str, Point], ink: Ink) -> list[dict[str, Any]]:
    """All links of all-to-all as one path, which costs nothing to draw again."""
    names = list(at)
    path = "".join(
        f"M{at[a][0]:.3f},{at[a][1]:.3f}L{at[b][0]:.3f},{at[b][1]:.3f}"
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    )
    return (
        [
            {
                "type": "path",
                "path": path,
                "layer": "below",
                "line": {"color": ink.faint, "width": min(1, 12 / len(names))},
            }
        ]
        if path
        else []
    )


def _bend(start: Point, end: Point, near: float, far: float, steps: int) -> list[Point]:
    """A quadratic curve from start to end, stopping short of both nodes, bowed to its left."""
    (x0, y0), (x1, y1) = start, end
    length = math.hypot(x1 - x0, y1 - y0) or 1.0
    cx = (x0 + x1) / 2 - (y1 - y0) * _BOW
    cy = (y0 + y1) / 2 + (x1 - x0) * _BOW
    first, last = near / length, 1 - far / length
    points = []
    for i in range(steps + 1):
        t = first + (last - first) * i / steps
        u = 1 - t
        points.append((u * u * x0 + 2 * u * t * cx + t * t * x1, u * u * y0 + 2 * u * t * cy + t * t * y1))
    return points


def _head(curve: Sequence[Point], length: float) -> list[Point]:
    """The arrow's head at the end of a curve, as a triangle."""
    (x0, y0), (x1, y1) = curve[-2], curve[-1]
    whole = math.hypot(x1 - x0, y1 - y0) or 1.0
    dx, dy = (x1 - x0) / whole * length, (y1 - y0) / whole * length
    return [(x1 + dx * 0.25, y1 + dy * 0.25)] + [
        (x1 - dx * 0.75 + side * 0.42 * dy, y1 - dy * 0.75 - side * 0.42 * dx) for side in (1, -1)
    ]


class _Edge:
    """A link while neither of its ends moves: its curve, from which step until which, and as the newest until when."""

    def __init__(self, link: Link, place: int, curve: list[Point], start: int, newest: int, until: int) -> None:
        self.link, self.place, self.curve = link, place, curve
        self.start, self.newest, self.until = start, newest, until


def _edges(film: Film, w: Walk, place: Callable[..., Point], radius: float, ink: Ink) -> list[_Edge]:
    pairs = len({(a.challenger, a.receiver) for a in w.links})
    many = pairs > 60
    edges = _cut_edges(w, place, radius, 4 if many else 14)
    if pairs > HAIRBALL:
        _fade(edges, w)
    unit = 0.7 if many else 1.0
    for now in (False, True):
        width = (4.5 if now else 2.0) * unit * ink.scale
        fill = ink.text if now else ink.line
        look: dict[str, Any] = {"opacity": 1.0 if now else 0.75, "mode": "lines"}
        lines = {
            outcome: film.layer(
                f"{outcome}{' now' if now else ''}",
                line={"color": fill, "width": width, "dash": DASHES[outcome]},
                hovertemplate="%{text}<extra></extra>",
                **look,
            )
            for outcome in DASHES
        }
        heads = film.layer(
            f"arrows{' now' if now else ''}",
            fill="toself",
            fillcolor=fill,
            line={"color": fill, "width": 1},
            hoverinfo="skip",
            **look,
        )
        for edge in edges:
            start, until = (edge.start, edge.newest) if now else (max(edge.newest, edge.start), edge.until)
            if start < until:
                outcome = OUTCOMES[edge.link.retained]
                lines[outcome].line(edge.curve, start, until, text=_edge_text(w, edge.link, outcome))
                head = _head(edge.curve, radius * (0.75 if now else 0.55) * (0.8 if many else 1.0))
                heads.line([*head, head[0]], start, until)
    return edges


def _fade(edges: Sequence[_Edge], w: Walk) -> None:
    """Let an edge go when as many links have followed it as can be told apart."""
    most = HAIRBALL // 2
    for edge in edges:
        # links of one turn come and go together
        if edge.place + most <= len(w.links):
            edge.until = max(edge.newest, min(edge.until, w.links[edge.place + most - 1].seq + 1))


def _cut_edges(w: Walk, place: Callable[..., Point], radius: float, points: int) -> list[_Edge]:
    """The links as edges: the newest of a pair stands for it, and an edge is drawn anew where an end has moved."""
    end = w.steps + 1
    seqs = sorted({link.seq for link in w.links})
    follows = dict.fromkeys(seqs, end) | {seq: later + 1 for seq, later in pairwise(seqs)}
    replaced: dict[tuple[str, str], int] = {}
    found = []
    for number_, link in reversed(list(enumerate(w.links, 1))):
        pair = (link.challenger, link.receiver)
        first, until = link.seq + 1, replaced.get(pair, end)
        replaced[pair] = first
        ends = [
            (place(link.challenger, a.belief), place(link.receiver, b.belief))
            for a, b in zip(
                w.agents[link.challenger][first - 1 : until - 1],
                w.agents[link.receiver][first - 1 : until - 1],
                strict=True,
            )
        ]
        for start, stop, (a, b) in spans(ends):
            begin, over = start + first - 1, stop + first - 1
            curve = _bend(a, b, radius, radius, points)
            found.append(_Edge(link, number_, curve, begin, min(follows[link.seq], over), over))
    return found[::-1]


def _edge_text(w: Walk, link: Link, outcome: str) -> str:
    def said(belief: int | None) -> str:
        return plotly_text(short(None if belief is None else w.beliefs[belief], 40))

    return (
        f"round {link.round}: {link.challenger} ({said(link.challenger_belief)}) → {link.receiver}"
        f"<br>{outcome}: {said(link.before)} → {said(link.after)}"
    )


def _numbers(film: Film, edges: Sequence[_Edge], ink: Ink) -> None:
    """The order of the links, in small discs on the edges."""
    layer = film.layer(
        "order",
        mode="markers+text",
        hoverinfo="skip",
        marker={"size": 20 * ink.scale, "color": ink.paper, "line": {"color": ink.line, "width": 1.2}},
        textfont={"size": 12 * ink.scale, "color": ink.text},
    )
    for edge in edges:
        x, y = edge.curve[int(len(edge.curve) * 0.4)]
        layer.add(edge.start, edge.until, x=x, y=y, text=str(edge.place))


def _rings(film: Film, w: Walk, place: Callable[..., Point], size: float, ink: Ink) -> None:
    """A ring around the receiver of the round, or the accepted agent; a thin one around who will challenge it."""
    layer = film.layer("rings", mode="markers", hoverinfo="skip", marker={"color": CLEAR, "line": {"color": ink.text}})
    for agent, states in w.agents.items():
        worn = [
            (place(agent, s.belief), "receiver" if agent == one else "challenger")
            if agent == one or agent in waiting
            else None
            for s, one, waiting in zip(states, w.receiver, w.waiting, strict=True)
        ]
        for start, until, ring in spans(worn):
            if ring is not None:
                (x, y), role = ring
                wide, thick = (16, 3) if role == "receiver" else (12, 1.5)
                layer.add(start, until, x=x, y=y, text=role, marker__size=size + wide, marker__line__width=thick)


def _nodes(film: Film, w: Walk, place: Callable[..., Point], size: float, ink: Ink) -> None:
    layer = film.layer(
        "agents",
        mode="markers+text",
        hovertemplate="%{hovertext}<extra></extra>",
        textfont={"size": max(9, size * 0.31)},
        marker={"size": size, "line": {"width": 0, "color": ink.text}},
        meta={"nodes": True},
    )
    models = {a.name: plotly_text(a.model) for a in w.started.agents}
    for name, states in w.agents.items():
        for start, until, s in spans(states):
            x, y = place(name, s.belief)
            fill = colour(s.belief)
            layer.add(
                start,
                until,
                x=x,
                y=y,
                text=f"<b>{name}</b>" if len(w.agents) <= CROWD else "",
                customdata=name,
                hovertext=f"<b>{name}</b> · {models[name]}<br>answer: {plotly_text(short(s.answer, 60))}"
                f"<br>prior {number(s.prior)} · r {s.retained} · c {s.changed} · D {s.debates}"
                + (f"<br>{plotly_text(short(s.failure, 90))}" if s.failure else ""),
                textfont__color=fill if s.belief is None else text_on(fill),
                marker__color=fill,
                marker__symbol=shape(s.belief),
                marker__opacity=0.45 if s.failure else 1,
            )


def _labels(film: Film, w: Walk, place: Callable[..., Point], radius: float, ink: Ink, grouped: bool) -> None:
    """Outside each node: its answer, and its score by name."""
    n = len(w.agents)
    layer = film.layer(
        "scores",
        mode="text",
        hoverinfo="skip",
        cliponaxis=False,
        textfont={"size": (14 if n <= MANY else 12) * ink.scale, "color": ink.muted},
    )
    for name, states in w.agents.items():
        for start, until, (text, belief) in spans([(_label(s, n), s.belief) for s in states]):
            x, y = place(name, belief)
            if grouped:
                # away from the middle of its ring, and the number alone: the legend says which ring is which answer
                ring = [place(other, belief) for other in w.agents]
                dx, dy = x - sum(p[0] for p in ring) / n, y - sum(p[1] for p in ring) / n
                far = math.hypot(dx, dy) or 1.0
                lx, ly = x + dx / far * radius * 1.35, y + dy / far * radius * 1.35
                layer.add(
                    start, until, x=lx, y=ly, text=text.split("<br>")[-1].split(" ")[-1], textposition="middle center"
                )
                continue
            out = 1 + radius + 0.02
            side = "middle right" if x > 0.3 else "middle left" if x < -0.3 else ""
            # beside a node only the width counts, so that a label clears the ring without drifting away
            layer.add(
                start,
                until,
                x=x + math.copysign(radius + 0.03, x) if side else x * out,
                y=y if side else y * out if n > 1 else -radius * 1.6,
                text=text,
                textposition=side or ("top center" if y > 0 else "bottom center"),
            )


def _label(s: State, n: int) -> str:
    if not s.asked:
        return "…"
    if s.score is None:
        return "no reply"
    if s.belief is None:
        return "no answer"
    if n > MANY:
        return number(s.svr if s.svr is not None else s.prior)
    score = f"SVR {number(s.svr)}" if s.svr is not None else f"prior {number(s.prior)}"
    # what fits beside a node on half a page
    return f"{plotly_text(short(s.answer, 10))}<br>{score}"


# -- the scores over the turns ---------------------------------------------------------------------------------------


def scores(w: Walk, ink: Ink, height: int = SCORE_HEIGHT) -> Film:
    """Prior against score: a hollow marker for each prior, a step line for each score, tau dashed.

    A line changes colour where its agent changes its belief; agents that have not debated stay faint.
    """
    uses_tau = w.started.protocol == "svr_mad"
    layout = _score_layout(w, ink, height, uses_tau) | {
        "xaxis": _turn_axis(w, ink),
    }
    film = Film(w.steps, layout, at=w.turns, alt=w.score_alt)
    _cursor(film, w, layout["yaxis"]["range"], ink)
    changes = w.changes()
    answered = changes[0] - 1 if changes else w.steps
    layers: dict[tuple[int | None, bool], Layer] = {}
    for active in (False, True):
        for name, states in w.agents.items():
            # a line is faint until its agent has debated
            woken = next((k for k in range(answered, w.steps + 1) if states[k - 1].debates), w.steps + 1)
            shown = (woken, w.steps + 1) if active else (answered, woken)
            for start, until, belief in spans([s.belief for s in states[answered - 1 :]]):
                piece = (start + answered - 1, until + answered - 1)
                if (belief, active) not in layers:
                    layers[belief, active] = _score_layer(film, belief, active)
                _score_line(layers[belief, active], w, name, piece, shown)
    _priors(film, w, answered)
    _ends(film, w, ink, layout["yaxis"]["range"])
    return film


def _score_layer(film: Film, belief: int | None, active: bool) -> Layer:
    return film.layer(
        f"belief {belief}{'' if active else ' waiting'}",
        mode="lines",
        line={"shape": "hv", "width": 3.5 if active else 1.5, "color": colour(belief)},
        opacity=1.0 if active else 0.45,
        hovertemplate="%{customdata}: %{y:.2f}<extra></extra>",
        meta={"lines": True},
    )


def _score_line(layer: Layer, w: Walk, name: str, piece: tuple[int, int], shown: tuple[int, int]) -> None:
    """A piece of an agent's line, of one belief: from where the piece begins to where the next one does."""
    first, over = piece

    def add(start: int, until: int, x: Any, y: float | None) -> None:
        start, until = max(start, shown[0]), min(until, shown[1])
        if start < until:
            layer.add(start, until, x=x, y=y, customdata=name)

    for start, until, score in spans([s.score for s in w.agents[name][first - 1 : over - 1]]):
        k = start + first - 1
        add(k, w.steps + 1, w.turns[k - 1], score)
        add(k, until + first - 1, NOW, score)
    if over <= w.steps:
        add(over, w.steps + 1, w.turns[over - 1], w.agents[name][over - 1].score)
    add(first, w.steps + 1, None, None)


def _turn_axis(w: Walk, ink: Ink) -> dict[str, Any]:
    total = w.turns[-1]
    return _axis(ink) | {
        "range": [-0.25, max(total, 1) + 0.15],
        "title": {"text": "turns after the initial answers", "font": {"size": 14 * ink.scale}},
        "dtick": 1 if total <= 20 else None,
        "showgrid": False,
    }


def _axis(ink: Ink) -> dict[str, Any]:
    return {"zeroline": False, "fixedrange": True, "tickfont": {"color": ink.muted}}


def _score_layout(w: Walk, ink: Ink, height: int, uses_tau: bool) -> dict[str, Any]:
    tau = w.started.settings.tau
    ticks = {t: f"{t:g}".replace("-", "−") for t in ((-1, -0.5, 0, 0.5, 1) if uses_tau else (0, 0.25, 0.5, 0.75, 1))}
    if uses_tau:  # tau is named on the axis, in the place of what it would hide
        ticks = {t: text for t, text in ticks.items() if abs(t - tau) > 0.12} | {tau: f"<b>τ</b> {tau:g}"}
    layout = _layout(w.started.run_id, int(height * ink.scale)) | {
        "margin": {"l": 52 * ink.scale, "r": 92 * ink.scale, "t": 14, "b": 40 * ink.scale},
        "font": {"color": ink.muted, "size": 14 * ink.scale},
        "yaxis": _axis(ink)
        | {
            "range": [-1.08 if uses_tau else -0.04, 1.08],
            "tickvals": list(ticks),
            "ticktext": list(ticks.values()),
            "gridcolor": ink.faint,
        },
    }
    if uses_tau:
        line = {"color": ink.text, "width": 1.5, "dash": "dash"}
        layout["shapes"] = [{"type": "line", "line": line, "xref": "paper", "x0": 0, "x1": 1, "y0": tau, "y1": tau}]
    return layout


def _cursor(film: Film, w: Walk, heights: Sequence[float], ink: Ink) -> None:
    layer = film.layer("cursor", mode="lines", hoverinfo="skip", line={"color": ink.line, "width": 1.5})
    for start, until, turn in spans(w.turns):
        layer.line([(turn, heights[0]), (turn, heights[1])], start, until)


def _priors(film: Film, w: Walk, answered: int) -> None:
    layer = film.layer(
        "prior",
        mode="markers",
        hovertemplate="%{hovertext}: prior %{y:.2f}<extra></extra>",
        marker={"size": 11, "line": {"width": 2.5}},
        cliponaxis=False,
    )
    for name, states in w.agents.items():
        # priors by rank move while answers come in; later an agent's first belief stays
        for start, until, (asked, prior, belief) in spans(
            [(s.score is not None, s.prior, w.agents[name][min(k, answered - 1)].belief) for k, s in enumerate(states)]
        ):
            if asked:
                symbol = shape(belief)
                layer.add(
                    start,
                    until,
                    x=0,
                    y=prior,
                    hovertext=name,
                    marker__symbol=symbol if symbol.endswith("-open") else f"{symbol}-open",
                    marker__color=colour(belief),
                )


def _ends(film: Film, w: Walk, ink: Ink, heights: Sequence[float]) -> None:
    """Name and score at the right of the agents that have debated, moved apart; of a crowd, the highest.

    At the end the accepted agent has a tick.
    """
    accepted = w.verdict.agent if w.verdict is not None else None
    layer = film.layer(
        "ends",
        mode="text",
        textposition="middle right",
        textfont={"size": 15 * ink.scale},
        hoverinfo="skip",
        cliponaxis=False,
    )
    rows = []
    for k in range(w.steps):
        found = [
            (s.score, f"✓ {name}" if name == accepted and k + 1 == w.steps else name, colour(s.belief))
            for name, s in ((name, states[k]) for name, states in w.agents.items())
            if s.debates and s.score is not None
        ]
        rows.append(_spread(found, *heights))
    for start, until, row in spans(rows):
        for y, name, value, fill in row:
            text = f"<b>{name} {number(value)}</b>"
            layer.add(start, until, x=EDGE, y=y, text=text, textfont__color=_readable(fill, ink))


def _readable(fill: str, ink: Ink) -> str:
    return ink.text if (fill, ink.paper) == ("#F0E442", "#FFFFFF") else fill


def _spread(ends: Sequence[tuple[float, str, str]], low: float, high: float) -> list[tuple[float, str, float, str]]:
    """Move labels apart that would lie on each other: down from the highest, then up again from the bottom.

    Parameters
    ----------
    ends
        (height, name, colour) of each; if there is not room for all, the highest are taken.
    low, high
        The range of the axis.
    """
    gap = (high - low) / 14
    rows = sorted(ends, key=lambda end: (-end[0], end[1]))[:13]
    heights: list[float] = []
    for value, _, _ in rows:
        heights.append(min(value, heights[-1] - gap) if heights else value)
    lowest = low + gap / 3
    for i in reversed(range(len(heights))):
        heights[i] = max(heights[i], lowest if i + 1 == len(heights) else heights[i + 1] + gap)
    return [(y, name, value, fill) for y, (value, name, fill) in zip(heights, rows, strict=True)]


# -- prior beside score ----------------------------------------------------------------------------------------------


def slopes(w: Walk, ink: Ink, height: int = SCORE_HEIGHT) -> Film:
    """Each agent's prior at the left and its score now at the right: who fell, who survived.

    Agents that have not debated are faint and level; the accepted one is drawn thick.
    """
    uses_tau = w.started.protocol == "svr_mad"
    layout = _score_layout(w, ink, height, uses_tau) | {
        "xaxis": _axis(ink)
        | {
            "range": [-0.32, 1.32],
            "tickvals": [0, 1],
            "ticktext": ["prior", "score now"],
            "tickfont": {"color": ink.text, "size": 15 * ink.scale},
            "showgrid": False,
        }
    }
    layout["margin"] = layout["margin"] | {"r": 14}
    film = Film(w.steps, layout, alt=w.score_alt)
    accepted = w.verdict.agent if w.verdict is not None else None
    layers: dict[tuple[int | None, bool, bool], Layer] = {}
    for name, states in w.agents.items():
        kinds = [
            None if s.score is None else (s.belief, s.debates > 0, name == accepted and k == w.steps, s.prior, s.score)
            for k, s in enumerate(states, 1)
        ]
        for start, until, kind in spans(kinds):
            if kind is None:
                continue
            *look, prior, score = kind
            layer = layers.get(tuple(look)) or layers.setdefault(tuple(look), _slope_layer(film, *look, ink))
            filled = shape(look[0])
            hollow = filled if filled.endswith("-open") else f"{filled}-open"
            for x, y, symbol in ((0, prior, hollow), (1, score, filled), (None, None, filled)):
                layer.add(start, until, x=x, y=y, marker__symbol=symbol, customdata=name)
    _slope_names(film, w, ink, layout["yaxis"]["range"])
    return film


def _slope_layer(film: Film, belief: int | None, debated: bool, chosen: bool, ink: Ink) -> Layer:
    return film.layer(
        f"slope {belief}",
        mode="lines+markers",
        line={"color": colour(belief), "width": 6 if chosen else 3.5 if debated else 1.5},
        opacity=1.0 if debated else 0.45,
        hovertemplate="%{customdata}: %{y:.2f}<extra></extra>",
        marker={"size": 11 * ink.scale, "line": {"width": 2.5, "color": colour(belief)}, "color": colour(belief)},
        meta={"lines": True},
    )


def _slope_names(film: Film, w: Walk, ink: Ink, heights: Sequence[float]) -> None:
    for x, side in ((0.0, "left"), (1.0, "right")):
        layer = film.layer(
            f"names {side}",
            mode="text",
            textposition=f"middle {side}",
            textfont={"size": 14 * ink.scale},
            hoverinfo="skip",
        )
        rows = []
        for k in range(w.steps):
            found = [
                (s.prior if side == "left" else s.score, name, colour(s.belief))
                for name, s in ((name, states[k]) for name, states in w.agents.items())
                if s.score is not None and (len(w.agents) <= MANY or s.debates)
            ]
            rows.append(_spread(found, *heights))
        for start, until, row in spans(rows):
            for y, name, value, fill in row:
                text = f"{name} {number(value)}"
                layer.add(
                    start,
                    until,
                    x=x + (-0.03 if side == "left" else 0.03),
                    y=y,
                    text=text,
                    textfont__color=_readable(fill, ink),
                )


# -- who believed what -----------------------------------------------------------------------------------------------


def flow(w: Walk, ink: Ink, right: int | None = None, height: int = SCORE_HEIGHT) -> Film:
    """Who believed what over the turns: a band a belief, a line an agent, a changed mind crosses from band to band.

    Parameters
    ----------
    right
        The belief that is the reference answer, if that is to be told.
    """
    n = len(w.agents)
    height = int(height * ink.scale)
    changes = w.changes()
    answered = changes[0] - 1 if changes else w.steps
    moments = [answered, *changes]
    heights = [_slots(w, k) for k in moments]
    lowest = max((y for at in heights for y in at.values()), default=1.0)
    layout = _layout(w.started.run_id, height) | {
        "margin": {"l": 44 * ink.scale if n <= CROWD else 12, "r": 150 * ink.scale, "t": 8, "b": 40 * ink.scale},
        "font": {"color": ink.muted, "size": 14 * ink.scale},
        "xaxis": _turn_axis(w, ink),
        "yaxis": _axis(ink) | {"visible": False, "range": [lowest + 0.7, -0.7]},
    }
    film = Film(w.steps, layout, at=w.turns, alt=_flow_alt(w))
    _cursor(film, w, [lowest + 0.7, -0.7], ink)
    thick = max(1.5, min(24.0, (height - 60) / (lowest + 1.4) * 0.82))
    layers: dict[int | None, Layer] = {}
    hold = 0.3 if w.turns[-1] <= 60 else 0.0

    def layer_of(belief: int | None) -> Layer:
        if belief not in layers:
            layers[belief] = film.layer(
                f"belief {belief}",
                mode="lines",
                line={"color": colour(belief), "width": thick},
                opacity=0.85,
                hovertemplate="%{text}<extra></extra>",
                meta={"lines": True},
            )
        return layers[belief]

    for name in w.agents:
        _flow_agent(w, name, changes, heights, hold, layer_of)
    _flow_names(film, w, heights, ink)
    _flow_labels(film, w, ink, moments, heights, right)
    return film


def _flow_agent(
    w: Walk,
    name: str,
    changes: Sequence[int],
    heights: Sequence[dict[str, float]],
    hold: float,
    layer_of: Callable[[int | None], Layer],
) -> None:
    """One agent's line: level while nothing changes for it, drawn as far as the run has come."""
    states, end = w.agents[name], w.steps + 1
    before = changes[0] - 1 if changes else w.steps
    first = next((k for k, s in enumerate(states, 1) if s.asked), before)
    belief, y = states[before - 1].belief, heights[0][name]

    def add(start: int, until: int, x: Any, y: float | None) -> None:
        text = None if x is None else _flow_text(w, name, belief)
        layer_of(belief).add(start, until, x=x, y=y, text=text, customdata=name)

    add(first, end, -0.2, y)
    add(first, end, hold * 0.8, y)
    for i, k in enumerate(changes, 1):
        held, there = states[k - 1].belief, heights[i][name]
        if (held, there) == (belief, y):
            continue
        add(before, k, NOW, y)
        add(k, end, i - 1 + hold, y)
        if held != belief:
            add(first, end, None, None)
            belief = held
            add(k, end, i - 1 + hold, y)
        add(k, end, i - hold, there)
        before, y = k, there
    add(before, end, NOW, y)
    add(first, end, None, None)


def _slots(w: Walk, k: int) -> dict[str, float]:
    """Agents stacked by belief in order of appearance, no answer last, with a gap between beliefs."""
    held: dict[int, list[str]] = {}
    for name, states in w.agents.items():
        belief = states[k - 1].belief
        held.setdefault(len(w.beliefs) if belief is None else belief, []).append(name)
    slots: dict[str, float] = {}
    y = 0.0
    for belief in sorted(held):
        for name in held[belief]:
            slots[name] = y
            y += 1.0
        y += 0.6
    return slots


def _flow_text(w: Walk, name: str, belief: int | None) -> str:
    return f"{name}: {plotly_text(short(None if belief is None else w.beliefs[belief], 40))}"


def _flow_names(film: Film, w: Walk, heights: Sequence[dict[str, float]], ink: Ink) -> None:
    if len(w.agents) > CROWD:
        return
    layer = film.layer(
        "names",
        mode="text",
        textposition="middle left",
        textfont={"size": 13 * ink.scale, "color": ink.muted},
        hoverinfo="skip",
        cliponaxis=False,
    )
    for name, y in heights[0].items():
        layer.add(1, x=-0.25, y=y, text=name)


def _flow_labels(
    film: Film, w: Walk, ink: Ink, moments: Sequence[int], heights: Sequence[dict[str, float]], right: int | None
) -> None:
    """At the right, each belief held now, and by how many."""
    layer = film.layer(
        "held",
        mode="text",
        textposition="middle right",
        textfont={"size": 14 * ink.scale},
        hoverinfo="skip",
        cliponaxis=False,
    )
    for i, k in enumerate(moments):
        until = moments[i + 1] if i + 1 < len(moments) else None
        held: dict[int | None, list[float]] = {}
        for name, states in w.agents.items():
            held.setdefault(states[k - 1].belief, []).append(heights[i][name])
        for belief, ys in held.items():
            answer = "no answer" if belief is None else plotly_text(short(w.beliefs[belief], 14))
            text = f"<b>{answer}</b> · {len(ys)}{' ✓' if belief is not None and belief == right else ''}"
            y = sum(ys) / len(ys)
            layer.add(k, until, x=EDGE, y=y, text=text, textfont__color=_readable(colour(belief), ink))


def _flow_alt(w: Walk) -> list[str]:
    """Who holds what, after each step."""
    told = []
    for k in range(w.steps):
        held: dict[int | None, list[str]] = {}
        for name, states in w.agents.items():
            if states[k].asked:
                held.setdefault(states[k].belief, []).append(name)
        rows = [
            f"{len(names)} hold {short(None if b is None else w.beliefs[b], 30)}: {', '.join(names[:MANY])}"
            for b, names in held.items()
        ]
        told.append(f"Beliefs after {w.turns[k]} turns. {'; '.join(rows) or 'No answers yet'}.")
    return told


PICTURES: dict[str, Callable[[Walk, Ink], Film]] = {"graph": graph, "scores": scores, "slope": slopes, "flow": flow}
"""What can be drawn of a run, by name."""
