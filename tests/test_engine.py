"""The engine: at the same time, pause, step, stop, resume, paired runs, and panels that misbehave."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from svrmad_core import (
    Control,
    Problem,
    RecordedPanel,
    Recorder,
    Settings,
    SimulatedPanel,
    Turn,
    fold,
    load,
    resume,
    run,
    verify,
)
from tests.scripted import ScriptedPanel, debate, without_time

HARD = SimulatedPanel("simulated/hard")


async def collect(stream):
    return [event async for event in stream]


class SlowPanel(ScriptedPanel):
    """Counts how many calls are under way at once."""

    def __init__(self, initial, replies=None, seconds=0.02):
        super().__init__(initial, replies)
        self.seconds, self.now, self.most, self.cancelled = seconds, 0, 0, 0

    async def ask(self, request):
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.seconds)
            return await super().ask(request)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1


@pytest.mark.parametrize(
    ("protocol", "mode", "most_later"),
    [("svr_mad", "sequential", 1), ("svr_mad", "parallel", 3), ("all_to_all", "sequential", 6)],
)
async def test_turns_that_do_not_wait_for_each_other_run_at_the_same_time(protocol, mode, most_later):
    panel = SlowPanel([str(i) for i in range(6)])
    most_at_answers = 0
    async for event in run("Q?", protocol, panel, Settings(round_mode=mode)):
        if event.event == "answered":
            most_at_answers = max(most_at_answers, panel.most)
            panel.most = 0 if event.agent == "A6" else panel.most
    assert (most_at_answers, panel.most) == (6, most_later)


async def test_step_by_step_asks_nothing_before_it_is_told():
    control = Control(paused=True)
    panel = ScriptedPanel(["1", "2", "3"])
    stream = run("Q?", "svr_mad", panel, Settings(agents=3), control=control)
    seen = [await anext(stream), await anext(stream)]
    assert [e.event for e in seen] == ["run_started", "paused"]
    waiting = asyncio.ensure_future(anext(stream))
    await asyncio.sleep(0.01)
    assert panel.requests == []
    control.step()
    seen.append(await waiting)
    seen += [await anext(stream) for _ in range(3)]
    assert [e.event for e in seen[2:]] == ["resumed", "answered", "answered", "answered"]
    assert (await anext(stream)).event == "paused"
    control.go_on()
    rest = await collect(stream)
    assert rest[0].event == "resumed"
    assert rest[-1].verdict.reason == "accepted"


async def test_pause_lets_the_calls_under_way_finish():
    control = Control()
    panel = SlowPanel(["1", "2", "3"])
    stream = run("Q?", "svr_mad", panel, Settings(agents=3), control=control)
    seen = [await anext(stream), await anext(stream)]
    control.pause()
    seen += [await anext(stream) for _ in range(3)]
    assert [e.event for e in seen] == ["run_started", "answered", "answered", "answered", "paused"]
    await stream.aclose()


@pytest.mark.parametrize("paused", [False, True])
async def test_stop_closes_the_record_with_what_is_there(paused):
    control = Control()
    panel = SlowPanel(["1", "2", "3", "1"], seconds=0.05)
    seen = []
    async for event in run("Q?", "svr_mad", panel, Settings(agents=4), control=control):
        seen.append(event)
        if event.event == "receiver_chosen":
            if paused:
                control.pause()
            asyncio.get_running_loop().call_later(0.01, control.stop)
    assert seen[-1].event == "run_finished"
    assert (seen[-1].verdict.reason, seen[-1].verdict.answer) == ("stopped", "1")
    assert panel.now == 0
    assert verify(seen) is None


async def test_closing_early_cancels_what_is_under_way():
    panel = SlowPanel(["1", "2", "3"], seconds=5)
    async with aclosing(run("Q?", "svr_mad", panel, Settings(agents=3))) as stream:
        await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    assert (panel.now, panel.cancelled) == (0, 3)
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("protocol", ["svr_mad", "all_to_all"])
async def test_resume_from_any_event_pays_for_nothing_twice(protocol):
    whole = await collect(run("Q?", protocol, HARD, Settings(seed=3)))
    for k in range(1, len(whole)):
        panel = RecordedPanel(whole)
        asked = []

        class Counting:
            simulated = True

            async def ask(self, request, panel=panel, asked=asked):
                asked.append(request.ask)
                return await panel.ask(request)

        rest = await collect(resume(whole[:k], Counting()))
        assert rest[0].event == "resumed"
        went_on = whole[:k] + rest
        assert fold(went_on).verdict == whole[-1].verdict
        assert fold(went_on).totals().tokens == whole[-1].totals.tokens
        turns = sum(e.event in ("answered", "debated", "revised") for e in whole[:k])
        assert len(asked) == whole[-1].totals.calls - turns
        assert verify(went_on) is None


async def test_a_finished_run_is_not_resumed():
    whole = await collect(run("Q?", "svr_mad", HARD))
    with pytest.raises(ValueError, match="already finished"):
        resume(whole, HARD)


async def test_a_paired_run_takes_over_the_initial_answers_and_their_cost():
    parent = await collect(run(Problem(question="Q?", reference="42"), "svr_mad", HARD, Settings(seed=5)))
    paired = await collect(run(parent[0].problem, "all_to_all", HARD, parent=parent))
    assert paired[0].parent == parent[0].run_id
    mine = [(e.agent, e.belief, e.turn) for e in paired if e.event == "answered"]
    assert mine == [(e.agent, e.belief, e.turn) for e in parent if e.event == "answered"]
    assert paired[-1].totals.calls == 6 + 12
    assert paired[-1].totals.tokens > sum(e.turn.tokens for e in parent if e.event == "answered")
    assert verify(paired) is None


async def test_a_recorded_panel_plays_every_turn():
    whole = await collect(run("Q?", "all_to_all", HARD, Settings(seed=8)))
    again = await collect(run("Q?", "all_to_all", RecordedPanel(whole), whole[0].settings))
    assert without_time(again) == without_time(whole)


async def test_a_recorded_panel_says_what_it_does_not_hold():
    whole = await collect(run("Q?", "svr_mad", HARD, Settings(seed=1)))
    again = await collect(run("Q?", "all_to_all", RecordedPanel(whole), whole[0].settings))
    assert {e.kind for e in again if e.event == "turn_failed"} == {"not_recorded"}
    assert again[-1].event == "run_finished"


async def test_a_panel_that_breaks_does_not_kill_the_run_nor_tell_its_secrets():
    class Broken(ScriptedPanel):
        async def ask(self, request):
            if request.ask.agent == "A2":
                raise RuntimeError("sk-secret-key-in-a-message")
            return await super().ask(request)

    events = await collect(run("Q?", "svr_mad", Broken(["1", "2", "3"]), Settings(agents=3)))
    assert events[-1].verdict.answer == "1"
    assert "sk-secret" not in "".join(e.model_dump_json() for e in events)


async def test_same_answers_in_other_words_are_one_belief():
    state, _ = await debate([("1/2", 0.9), ("0.5", 0.8), ("50\\%", 0.7), ("\\frac{1}{3}", 0.6)], max_rounds=0)
    assert [a.belief for a in state.agents.values()] == [0, 0, 0, 1]
    assert state.beliefs == ["1/2", "\\frac{1}{3}"]


async def test_full_memory_goes_on_and_last_memory_forgets():
    for memory, lengths in (("full", [4, 6, 8, 10]), ("last", [4, 6, 6, 6])):
        panel = ScriptedPanel([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)])
        seen = []
        plain = panel.ask

        async def ask(request, seen=seen, plain=plain):
            if request.ask.agent == "A1":
                seen.append([m["role"] for m in request.messages()])
            return await plain(request)

        panel.ask = ask
        await collect(run("Q?", "svr_mad", panel, Settings(agents=4, memory=memory)))
        assert [len(roles) for roles in seen] == lengths
        assert all(r == ["system"] + ["user", "assistant"] * (len(r) // 2 - 1) + ["user"] for r in seen)


async def test_a_run_is_recorded_event_by_event(tmp_path):
    path = tmp_path / "r.jsonl"
    with Recorder(path) as recorder:
        async for event in run("Q?", "svr_mad", HARD, recorder=recorder, run_id="r"):
            assert path.read_text(encoding="utf-8").splitlines()[-1] == event.model_dump_json()
    assert load(path).events[-1].event == "run_finished"


async def test_unknown_protocol():
    with pytest.raises(ValueError, match="svr_mad, all_to_all, self_consistency"):
        run("Q?", "svrmad", HARD)


async def test_agents_that_were_told_nothing_of_usage_are_unknown_not_free():
    class NoUsage(ScriptedPanel):
        async def ask(self, request):
            return Turn(reply="x", answer="1" if request.ask.agent == "A1" else "2")

    events = await collect(run("Q?", "self_consistency", NoUsage(["1", "2"]), Settings(agents=2)))
    totals = events[-1].totals
    assert (totals.tokens, totals.calls_without_usage, totals.cost) == (0, 2, None)
