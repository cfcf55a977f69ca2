"""What the figures draw, as functions of a debate."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import plotly.graph_objects as go
import pytest

from pages.components import figures, timeline
from pages.components.film import NOW, Film, spans, still
from pages.components.look import BELIEF_COLOURS, DARK, LIGHT, NO_ANSWER_COLOUR, colour, glyph, plotly_text, safe, shape
from pages.components.walk import walk
from svrmad_core import Settings, SimulatedPanel, run
from svrmad_core.graph import all_to_all_links, communication_graph
from tests.scripted import FAILS, debate

CASE = ([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A3"): "3"})


def drawn(picture, events, k=None, inks=LIGHT, **options):
    """Plotly's own object, which refuses what is no figure."""
    film = figures.PICTURES[picture](walk(events), inks, **options)
    return go.Figure(still(film, len(events) if k is None else k))


def trace(figure, name):
    return next(t for t in figure.data if t.name == name)


async def test_the_graph_is_a_digraph_from_challenger_to_receiver():
    state, _ = await debate(*CASE, max_rounds=1)
    graph = communication_graph(state)
    assert list(graph.edges) == [("A2", "A1"), ("A3", "A1"), ("A4", "A1")]
    assert graph.edges["A3", "A1"]["links"][0].retained is False
    assert [graph.edges[e]["number"] for e in graph.edges] == [1, 2, 3]
    assert graph.nodes["A1"]["belief"] == state.agents["A1"].belief
    assert all_to_all_links(6) == 60


async def test_colour_and_shape_are_the_belief():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("1", 0.7), (None, 0.1)], max_rounds=0)
    nodes = trace(drawn("graph", events), "agents")
    assert list(nodes.marker.color) == [colour(0), colour(1), colour(0), NO_ANSWER_COLOUR]
    assert list(nodes.marker.symbol) == [shape(0), shape(1), shape(0), shape(None)]


def test_more_beliefs_than_colours_still_differ():
    pairs = {(colour(b), glyph(b)) for b in range(len(BELIEF_COLOURS) * 7)}
    assert len(pairs) == len(BELIEF_COLOURS) * 7


async def test_retained_is_solid_changed_is_dashed_and_the_newest_is_thick():
    _, events = await debate(*CASE, max_rounds=1)
    figure = drawn("graph", events)
    assert trace(figure, "retained").line.dash == "solid"
    assert trace(figure, "changed").line.dash == "dash"
    assert trace(figure, "retained now").line.width > trace(figure, "retained").line.width
    assert trace(figure, "retained now").line.color == LIGHT.text
    held = [len([x for x in trace(figure, name).x if x is None]) for name in ("retained", "changed", "retained now")]
    assert held == [1, 1, 1], "A2 and A3 were before, A4 is the newest"


async def test_an_edge_ends_in_an_arrow_near_its_receiver():
    _, events = await debate([("1", 0.9), ("2", 0.8)], max_rounds=1)
    figure = drawn("graph", events)
    edge = trace(figure, "retained now")
    points = [(x, y) for x, y in zip(edge.x, edge.y, strict=True) if x is not None]
    at = figures.places(["A1", "A2"])
    assert math.dist(points[-1], at["A1"]) < math.dist(points[0], at["A1"])
    head = trace(figure, "arrows now")
    tip = (head.x[0], head.y[0])
    assert math.dist(tip, at["A1"]) < math.dist((head.x[1], head.y[1]), at["A1"])
    assert math.dist(tip, points[-1]) < 0.1


async def test_nodes_stay_put():
    _, events = await debate(*CASE, max_rounds=1)
    nodes = [trace(drawn("graph", events, k), "agents") for k in range(1, len(events) + 1)]
    assert len({(tuple(t.x), tuple(t.y)) for t in nodes}) == 1


async def test_grouped_by_belief_only_who_changes_its_mind_moves():
    _, events = await debate(*CASE, max_rounds=1)
    changed = next(e for e in events if e.event == "debated" and e.retained is False)
    before, after = (trace(drawn("graph", events, changed.seq + i, grouped=True), "agents") for i in (0, 1))
    moved = [
        name
        for name, a, b in zip(
            before.customdata, zip(before.x, before.y, strict=True), zip(after.x, after.y, strict=True), strict=True
        )
        if a != b
    ]
    assert moved == ["A1"]
    places = figures.grouped_places(["A1", "A2", "A3", "A4"], 4)
    a1 = (after.x[0], after.y[0])
    assert a1 == pytest.approx(places("A1", changed.after))
    # an edge drawn before follows the agent that has moved
    edge = trace(drawn("graph", events, changed.seq + 1, grouped=True), "retained")
    ends = [(x, y) for x, y in zip(edge.x, edge.y, strict=True) if x is not None]
    assert math.dist(ends[-1], a1) < math.dist(ends[-1], (before.x[0], before.y[0]))


async def test_the_receiver_wears_the_ring_and_its_challengers_a_thin_one():
    _, events = await debate(*CASE, max_rounds=1)
    at = figures.places([f"A{i}" for i in range(1, 5)])
    chosen = next(e.seq for e in events if e.event == "receiver_chosen") + 1

    def rings(k):
        ring = trace(drawn("graph", events, k), "rings")
        return list(zip(ring.text or (), zip(ring.x, ring.y, strict=True), strict=True))

    assert rings(chosen) == [("receiver", at["A1"])] + [("challenger", at[f"A{i}"]) for i in (2, 3, 4)]
    assert rings(chosen + 1) == [("receiver", at["A1"])] + [("challenger", at[f"A{i}"]) for i in (3, 4)]
    assert rings(2) == []


async def test_scores_over_the_turns():
    _, events = await debate(*CASE, max_rounds=1)
    w = walk(events)
    assert w.turns[-1] == 3
    assert [w.agents["A1"][k - 1].score for k in w.changes()] == pytest.approx([1.0, 0.0, 1 / 3])
    figure = drawn("scores", events, inks=DARK)
    first, then = trace(figure, "belief 0"), trace(figure, "belief 2")
    a1 = [(x, y) for x, y, who in zip(first.x, first.y, first.customdata, strict=True) if who == "A1" and x is not None]
    assert a1 == [(0, 0.9), (1, 1.0), (2, 0.0)], "the line changes colour where the belief changes"
    assert first.line.color == colour(0)
    assert [(x, round(y, 2)) for x, y in zip(then.x, then.y, strict=True) if x is not None] == [
        (2, 0),
        (3, 0.33),
        (3, 0.33),
    ]
    faint = trace(figure, "belief 1 waiting")
    assert faint.opacity < 1
    assert {y for y in faint.y if y is not None} == {0.8}, "who has not debated keeps its prior"
    priors = trace(figure, "prior")
    assert list(priors.y) == [0.9, 0.8, 0.7, 0.6]
    assert all(s.endswith("-open") for s in priors.marker.symbol)
    assert [s.y0 for s in figure.layout.shapes if s.line.dash == "dash"] == [0.5]
    assert dict(zip(figure.layout.yaxis.tickvals, figure.layout.yaxis.ticktext, strict=True))[0.5] == "<b>τ</b> 0.5"


async def test_a_line_reaches_to_the_cursor_and_no_further():
    _, events = await debate(*CASE, max_rounds=1)
    second = walk(events).changes()[1]
    figure = drawn("scores", events, second)
    for t in figure.data:
        if t.name.startswith("belief") and t.x:
            assert max(x for x in t.x if x is not None) == 2
    assert list(trace(figure, "cursor").x) == [2, 2, None]


async def test_the_accepted_agent_has_a_tick_at_the_end():
    _, events = await debate([("1", 0.9), ("2", 0.8)])
    assert list(trace(drawn("scores", events), "ends").text) == ["<b>✓ A1 1.00</b>"]
    assert list(trace(drawn("scores", events, len(events) - 1), "ends").text) == ["<b>A1 1.00</b>"]


async def test_the_slope_sets_prior_beside_score():
    _, events = await debate(*CASE, max_rounds=1)
    figure = drawn("slope", events)
    slope = trace(figure, "slope 2")
    assert list(slope.x[:2]) == [0, 1]
    assert list(slope.y[:2]) == pytest.approx([0.9, 1 / 3])
    left, right = trace(figure, "names left"), trace(figure, "names right")
    assert left.text[0] == "A1 0.90"
    assert "A1 0.33" in right.text


async def test_the_flow_crosses_where_a_mind_is_changed():
    _, events = await debate(*CASE, max_rounds=1)
    w = walk(events)
    figure = drawn("flow", events)
    a1 = {
        t.name: [(x, y) for x, y, who in zip(t.x, t.y, t.customdata, strict=True) if who == "A1" and x is not None]
        for t in figure.data
        if t.name.startswith("belief")
    }
    assert a1["belief 0"][-1][0] < 2 < a1["belief 2"][-1][0]
    assert a1["belief 0"][-1] == a1["belief 2"][0], "the new colour begins where the old one ends"
    held = trace(drawn("flow", events, w.steps), "held")
    assert sorted(held.text) == ["<b>2</b> · 1", "<b>3</b> · 2", "<b>4</b> · 1"]
    told = trace(drawn("flow", events, w.steps, right=1), "held")
    assert sorted(told.text) == ["<b>2</b> · 1 ✓", "<b>3</b> · 2", "<b>4</b> · 1"]
    early = drawn("flow", events, 3)
    assert {x for t in early.data if t.name.startswith("belief") for x in t.x if x is not None} <= {-0.2, 0, 0.24}


def test_spans_and_stills():
    assert spans([1, 1, 2]) == [(1, 3, 1), (3, 4, 2)]
    film = Film(3, {}, at=[0, 5, 7])
    layer = film.layer("line", mode="lines")
    layer.add(1, x=0, y=1, marker__line__width=2)
    layer.add(2, 3, x=NOW, y=1, marker__line__width=3)
    shown = [still(film, k)["data"][0] for k in (1, 2, 3)]
    assert [t["x"] for t in shown] == [[0], [0, 5], [0]]
    assert shown[1]["marker"]["line"]["width"] == [2, 3]


async def test_labels_of_equal_scores_do_not_lie_on_each_other():
    ends = [(1.0, "A1", ""), (1.0, "A2", ""), (0.98, "A3", ""), (-1.0, "A4", ""), (-1.0, "A5", "")]
    ys = [y for y, *_ in figures._spread(ends, -1.08, 1.08)]
    assert all(a - b >= 0.154 for a, b in pairwise(ys))
    assert ys[-1] >= -1.08
    crowd = figures._spread([(0.5, f"A{i}", "") for i in range(1, 51)], -1.08, 1.08)
    assert all(-1.08 <= y <= 1.08 for y, *_ in crowd)


async def test_the_timeline_has_a_tick_for_every_event_but_the_ends():
    state, events = await debate(*CASE, max_rounds=1)
    blocks = timeline.blocks(events, state)
    assert [b["label"] for b in blocks] == ["answers", "A1 challenged"]
    ticks = [t for b in blocks for t in b["ticks"]]
    assert [t["k"] for t in ticks] == [e.seq + 1 for e in events[1:-1]]
    assert [t["mark"] for t in blocks[1]["ticks"]] == ["choice", "retained", "changed", "retained"]
    assert blocks[1]["ticks"][2]["colour"] == colour(2), "the colour of the belief that was taken over"
    assert timeline.verdict_block(state, len(events))["text"].startswith("vote: ")


async def test_a_failed_turn_shows():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): FAILS})
    marks = [t["mark"] for b in timeline.blocks(events, state) for t in b["ticks"]]
    assert "failed" in marks
    nodes = trace(drawn("graph", events), "agents")
    assert nodes.marker.opacity[0] < 1


@pytest.mark.parametrize("agents", [1, 2, 6, 12, 25, 50])
@pytest.mark.parametrize("protocol", ["svr_mad", "all_to_all"])
async def test_any_number_of_agents_is_drawn(agents, protocol):
    events = [e async for e in run("Q?", protocol, SimulatedPanel("simulated/hard"), Settings(agents=agents, seed=1))]
    for inks in (LIGHT, DARK):
        assert len(trace(drawn("graph", events, inks=inks), "agents").x) == agents
        assert len(trace(drawn("graph", events, inks=inks, grouped=True), "agents").x) == agents
        for picture in ("scores", "slope", "flow"):
            for k in {1, len(events) // 2, len(events)}:
                drawn(picture, events, k, inks)
    w = walk(events)
    assert w.graph_alt[-1].startswith("Communication graph with")
    assert len(w.graph_alt) == len(w.score_alt) == len(events)


def test_untrusted_text_cannot_become_markup_or_latex():
    assert "<" not in safe("<script>alert(1)</script>")
    assert "<" not in plotly_text("<a href='x'>")
    assert "$" not in plotly_text("$1 and $2")


async def test_a_film_of_a_long_run_is_small_and_of_a_crowd_no_hairball():
    settings = Settings(agents=50, seed=1, tau=1.0, max_rounds=115, quorum=50)
    events = [e async for e in run("Q?", "svr_mad", SimulatedPanel("simulated/hard"), settings)]
    assert len(events) > 400
    w = walk(events)
    for draw in figures.PICTURES.values():
        assert len(json.dumps(draw(w, LIGHT).as_data())) < 2_000_000
    events = [e async for e in run("Q?", "all_to_all", SimulatedPanel("simulated/hard"), settings)]
    figure = drawn("graph", events)
    edges = [t for t in figure.data if t.name.startswith(("retained", "changed", "void"))]
    assert sum(x is None for t in edges for x in t.x) < figures.HAIRBALL
