"""Answers marked by hand: a debate from them is as any other."""

from __future__ import annotations

from svrmad_core import Settings, fold, run, verify
from svrmad_core.marking import marked, unread
from tests.scripted import FAILS, ScriptedPanel, debate


async def test_a_debate_goes_on_from_answers_marked_by_hand():
    _, events = await debate(["7", None, "1/2", None, FAILS], challengers=2)
    assert unread(events) == {"A2": "I say None", "A4": "I say None"}
    first = marked(events, {"A2": " 0.5 ", "A4": "", "A1": "ignored"})
    state = fold(first)
    assert state.beliefs == ["7", "0.5"]
    assert [s.belief for s in state.agents.values()] == [0, 1, 1, None, None]
    assert state.agents["A5"].failure is not None
    panel = ScriptedPanel(["7"] * 5)
    made = [e async for e in run(events[0].problem, "svr_mad", panel, Settings(agents=5), parent=first)]
    assert verify(made) is None
    assert made[2].turn.marked_by_hand is True
    assert made[0].parent == events[0].run_id
    assert all(request.round > 0 for request in panel.requests)
