"""What the figures draw, as functions of a debate."""

from __future__ import annotations

import math
from itertools import pairwise

import plotly.graph_objects as go
import pytest

from pages.components import figures, plot, timeline
from pages.components.look import BELIEF_COLOURS, DARK, LIGHT, NO_ANSWER_COLOUR, colour, glyph, plotly_text, safe, shape
from svrmad_core import Settings, SimulatedPanel, fold, run
from svrmad_core.graph import all_to_all_links, communication_graph
from tests.scripted import FAILS, debate

CASE = ([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A3"): "3"})


def graph_figure(state, inks=LIGHT):
    """Plotly's own object, which refuses what is no figure."""
    return go.Figure(figures.graph_figure(state, inks))


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
    state, _ = await debate([("1", 0.9), ("2", 0.8), ("1", 0.7), (None, 0.1)], max_rounds=0)
    nodes = trace(graph_figure(state), "agents")
    assert list(nodes.marker.color) == [colour(0), colour(1), colour(0), NO_ANSWER_COLOUR]
    assert list(nodes.marker.symbol) == [shape(0), shape(1), shape(0), shape(None)]


def test_more_beliefs_than_colours_still_differ():
    pairs = {(colour(b), glyph(b)) for b in range(len(BELIEF_COLOURS) * 7)}
    assert len(pairs) == len(BELIEF_COLOURS) * 7


async def test_retained_is_solid_changed_is_dashed_and_the_newest_is_thick():
    state, _ = await debate(*CASE, max_rounds=1)
    figure = graph_figure(state)
    assert trace(figure, "retained").line.dash == "solid"
    assert trace(figure, "changed").line.dash == "dash"
    assert trace(figure, "retained now").line.width > trace(figure, "retained").line.width
    assert trace(figure, "retained now").line.color == LIGHT.text


async def test_an_edge_ends_in_an_arrow_near_its_receiver():
    state, _ = await debate([("1", 0.9), ("2", 0.8)], max_rounds=1)
    figure = graph_figure(state)
    edge = trace(figure, "retained now")
    points = [(x, y) for x, y in zip(edge.x, edge.y, strict=True) if x is not None]
    at = figures.places(["A1", "A2"])
    assert math.dist(points[-1], at["A1"]) < math.dist(points[0], at["A1"])
    sizes = [s for s, x in zip(edge.marker.size, edge.x, strict=True) if x is not None]
    assert sizes[-1] > 0
    assert not any(sizes[:-1])


async def test_nodes_stay_put():
    _, events = await debate(*CASE, max_rounds=1)
    drawn = [trace(graph_figure(fold(events, k)), "agents") for k in range(1, len(events) + 1)]
    assert len({(tuple(t.x), tuple(t.y)) for t in drawn}) == 1


async def test_the_receiver_wears_the_ring():
    _, events = await debate(*CASE, max_rounds=1)
    at = figures.places([f"A{i}" for i in range(1, 5)])
    chosen = next(e.seq for e in events if e.event == "receiver_chosen") + 1
    ring = trace(graph_figure(fold(events, chosen)), "receiver")
    assert (ring.x[0], ring.y[0]) == at["A1"]
    assert len(trace(graph_figure(fold(events, 2)), "receiver").x) == 0


async def test_scores_over_the_turns():
    _, events = await debate(*CASE, max_rounds=1)
    found, turns = figures.trails(events[0], events, len(events))
    assert turns == 3
    assert found["A1"].scores == pytest.approx([0.9, 1.0, 0.0, 1 / 3])
    assert found["A2"].scores == [0.8] * 4
    assert found["A1"].beliefs == [0, 0, 2, 2]
    figure = go.Figure(figures.score_figure(events[0], events, len(events), DARK))
    lines = [t for t in figure.data if t.name == "A1"]
    assert [t.line.color for t in lines] == [colour(0), colour(2)], "the line changes colour with the belief"
    priors = trace(figure, "prior")
    assert list(priors.y) == [0.9, 0.8, 0.7, 0.6]
    assert all(s.endswith("-open") for s in priors.marker.symbol)
    assert [s.y0 for s in figure.layout.shapes if s.line.dash == "dash"] == [0.5]


async def test_labels_of_equal_scores_do_not_lie_on_each_other():
    ends = [(1.0, "A1", ""), (1.0, "A2", ""), (0.98, "A3", ""), (-1.0, "A4", ""), (-1.0, "A5", "")]
    ys = [y for y, *_ in figures._spread(ends)]
    assert all(a - b >= 0.154 for a, b in pairwise(ys))
    assert ys[-1] >= -1.02


async def test_the_timeline_has_a_tick_for_every_event_but_the_ends():
    state, events = await debate(*CASE, max_rounds=1)
    blocks = timeline.blocks(events, state)
    assert [b["label"] for b in blocks] == ["answers", "A1 challenged"]
    ticks = [t for b in blocks for t in b["ticks"]]
    assert [t["k"] for t in ticks] == [e.seq + 1 for e in events[1:-1]]
    assert [t["mark"] for t in blocks[1]["ticks"]] == ["choice", "retained", "changed", "retained"]
    assert timeline.verdict_block(state, len(events))["text"].startswith("vote: ")


async def test_a_failed_turn_shows():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): FAILS})
    marks = [t["mark"] for b in timeline.blocks(events, state) for t in b["ticks"]]
    assert "failed" in marks
    nodes = trace(graph_figure(state), "agents")
    assert nodes.marker.opacity[0] < 1


@pytest.mark.parametrize("agents", [1, 2, 6, 12, 25, 50])
@pytest.mark.parametrize("protocol", ["svr_mad", "all_to_all"])
async def test_any_number_of_agents_is_drawn(agents, protocol):
    events = [e async for e in run("Q?", protocol, SimulatedPanel("simulated/hard"), Settings(agents=agents, seed=1))]
    state = fold(events)
    for inks in (LIGHT, DARK):
        assert len(trace(graph_figure(state, inks), "agents").x) == agents
        go.Figure(figures.score_figure(events[0], events, len(events), inks))
    assert figures.graph_alt(state).startswith("Communication graph with")


def test_untrusted_text_cannot_become_markup_or_latex():
    assert "<" not in safe("<script>alert(1)</script>")
    assert "<" not in plotly_text("<a href='x'>")
    assert "$" not in plotly_text("$1 and $2")


async def test_the_figures_of_every_step_are_sent_once_unless_they_are_too_large():
    _, events = await debate(*CASE, max_rounds=1)

    def draw(k):
        return figures.graph_figure(fold(events, k), LIGHT), f"step {k}"

    assert sorted(plot.steps_as_json(draw, len(events))) == list(range(1, len(events) + 1))
    assert list(plot.steps_as_json(draw, len(events), only=3)) == [3]
    assert plot.steps_as_json(lambda k: ({"data": ["x" * plot.MOST_BYTES], "layout": {}}, ""), 2) == {}
