"""All-to-all and self-consistency against scripted panels."""

from __future__ import annotations

from svrmad_core import Settings, run, verify
from tests.scripted import FAILS, VOID, ScriptedPanel, debate, verdict


async def test_all_to_all_everyone_hears_everyone_twice():
    state, events = await debate(["1", "2", "3", "4"], protocol="all_to_all")
    revised = [e for e in events if e.event == "revised"]
    assert [(e.round, e.agent, e.heard) for e in revised[:2]] == [
        (1, "A1", ["A2", "A3", "A4"]),
        (1, "A2", ["A1", "A3", "A4"]),
    ]
    assert len(state.links) == 4 * 3 * 2
    assert (state.rounds, verdict(events)) == (2, ("1", "vote", None))


async def test_all_to_all_stops_on_consensus():
    state, events = await debate(["1", "2", "2", "2", "2", "3"], {("A1", 1): "2"}, protocol="all_to_all")
    assert state.rounds == 1
    assert verdict(events) == ("2", "consensus", None)


async def test_replies_of_a_round_are_heard_only_in_the_next():
    panel = ScriptedPanel(["1", "2", "3"], {("A1", 1): "9"})
    async for _ in run("Q?", "all_to_all", panel, Settings(agents=3)):
        pass
    first = next(r for r in panel.requests if r.round == 1 and r.ask.agent == "A3")
    second = next(r for r in panel.requests if r.round == 2 and r.ask.agent == "A3")
    assert [s.answer for s in first.debate.heard_by(first.ask, 1)] == ["1", "2"]
    assert [s.answer for s in second.debate.heard_by(second.ask, 2)] == ["9", "2"]


async def test_a_failed_agent_drops_out_and_is_still_heard():
    state, events = await debate(["1", "2", "3"], {("A2", 1): FAILS}, protocol="all_to_all")
    assert [e.agent for e in events if e.event == "revised" and e.round == 2] == ["A1", "A3"]
    assert all("A2" in e.heard for e in events if e.event == "revised" and e.round == 2)
    assert state.totals().failed == 1
    assert verify(events) is None


async def test_an_unreadable_reply_keeps_the_old_answer():
    state, _ = await debate(["1", "2", "3"], {("A1", 1): VOID, ("A1", 2): VOID}, protocol="all_to_all")
    assert state.agents["A1"].answer == "1"


async def test_self_consistency_is_the_vote():
    state, events = await debate(["1", "2", "2", "3"], protocol="self_consistency")
    assert (len(state.links), verdict(events)) == (0, ("2", "vote", None))


async def test_link_budget_of_all_to_all():
    state, events = await debate(["1", "2", "3"], protocol="all_to_all", max_links=7)
    assert (len(state.links), verdict(events)[1]) == (6, "vote")
