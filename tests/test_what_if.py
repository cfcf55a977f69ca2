"""What a recorded run would have become with other settings, against the engine itself."""

from __future__ import annotations

import asyncio
import hashlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svrmad_core import Agent, Settings, SimulatedPanel, Turn, fold, run, what_if
from svrmad_core.prompts import messages_for
from tests.scripted import debate, heard, rounds


class PureFunctionPanel:
    """Agents whose reply depends on the exact messages and nothing else."""

    simulated = False

    def __init__(self, agents: int, seed: int, answers: int = 3) -> None:
        self.count, self.seed, self.answers = agents, seed, answers

    def agents(self, settings: Settings) -> list[Agent]:
        return [Agent(name=f"A{i + 1}", model="pure") for i in range(self.count)]

    async def ask(self, request):
        sent = messages_for(request.debate, request.ask, request.round)
        text = f"{self.seed} {request.ask.agent} {sent}"
        digest = hashlib.sha256(text.encode()).digest()
        answer = None if digest[0] < 16 else str(digest[1] % self.answers)
        return Turn(
            reply=f"reply {digest[:4].hex()}: {answer}",
            answer=answer,
            confidence=digest[2] / 255,
            prompt_tokens=len(text),
            completion_tokens=10,
            cost=0.001,
            latency=1.0,
            model="pure",
        )


def play(panel, chosen):
    async def collect():
        return [e async for e in run("Q?", "svr_mad", panel, chosen)]

    return asyncio.run(collect())


def decisions(events):
    """What happened, without times and without the order in which simultaneous replies arrived."""
    found = []
    at_once = events[0].settings.round_mode == "parallel"
    for e in events:
        if e.event == "receiver_chosen":
            found.append((e.round, e.receiver, tuple(e.challengers)))
        elif e.event == "debated":
            told = (e.round, e.receiver, e.challenger, e.turn.reply, e.retained)
            if at_once and isinstance(found[-1], frozenset):
                found[-1] |= {told}
            else:
                found.append(frozenset({told}) if at_once else told)
        elif e.event == "run_finished":
            v, votes = e.verdict, sorted(e.verdict.votes.values())  # beliefs are numbered as they arrive
            found.append((v.reason, v.answer, v.agent, votes, e.totals.links, e.totals.tokens))
    return found


SETTINGS = st.fixed_dictionaries(
    {
        "challengers": st.integers(1, 4),
        "tau": st.sampled_from([-1.0, 0.0, 0.5, 1.0]),
        "quorum": st.none() | st.integers(1, 6),
        "prior": st.sampled_from(["confidence", "uniform"]),
        "prior_scale": st.sampled_from(["probability", "rank"]),
        "score": st.sampled_from(["svr", "prior", "beta"]),
        "accept_after": st.sampled_from(["round", "debate"]),
        "round_mode": st.sampled_from(["sequential", "parallel"]),
        "memory": st.sampled_from(["full", "last"]),
        "max_rounds": st.none() | st.integers(0, 6),
        "max_links": st.none() | st.integers(0, 12),
    }
)


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6), SETTINGS, SETTINGS)
def test_it_is_the_beginning_of_the_run_that_the_engine_really_makes(agents, seed, first, second):
    panel = PureFunctionPanel(agents, seed)
    recorded = play(panel, Settings(agents=agents, **first))
    really = play(panel, Settings(agents=agents, **second))
    found = what_if(recorded, **second)
    imagined = decisions(found.events)
    assert imagined == decisions(really)[: len(imagined)]
    fold(found.events)
    assert [e.seq for e in found.events] == list(range(len(found.events)))
    assert (found.verdict is None) == bool(found.missing)
    if found.verdict is not None:
        assert len(found.events) == len(really)
        assert found.totals.tokens == really[-1].totals.tokens
    if found.departs is None:
        assert imagined[: len(decisions(recorded))] == decisions(recorded)[: len(imagined)] or first != second
    assert 1 <= found.same <= len(recorded)


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6), SETTINGS)
def test_nothing_changed_nothing_departs(agents, seed, chosen):
    recorded = play(PureFunctionPanel(agents, seed), Settings(agents=agents, **chosen))
    found = what_if(recorded)
    assert found.departs is None
    assert found.same == len(recorded)
    assert decisions(found.events) == decisions(recorded)
    for k in range(1, len(recorded)):
        cut = what_if(recorded[:k])
        assert cut.departs is None
        assert cut.same == k


CAST = [("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6), ("5", 0.5)]


async def test_accepting_after_each_debate_stops_after_the_first():
    _, events = await debate(CAST, tau=0.5)
    assert heard(events)[:3] == [("A1", name, "retained") for name in ("A2", "A3", "A4")]
    found = what_if(events, accept_after="debate")
    assert found.verdict.reason == "accepted"
    assert found.totals.links == 1
    assert found.totals.tokens < fold(events).totals().tokens
    assert events[found.same].event == "debated", "the recording goes on to A3 where this one stops"
    assert "stop with '1' (accepted)" in found.departs


async def test_a_higher_tau_goes_on_where_the_recording_cannot_tell():
    _, events = await debate(CAST, tau=0.5)
    found = what_if(events, tau=1.0)
    assert found.verdict is None
    assert [(a.agent, a.heard) for a in found.missing] == [("A1", ("A5",))]
    assert "open round 2 with A1 challenged by A5" in found.departs


async def test_fewer_challengers_take_over_the_replies_that_fit():
    _, events = await debate(CAST, tau=0.5)
    found = what_if(events, challengers=2)
    assert rounds(found.events) == [("A1", ["A2", "A3"])]
    assert found.verdict.answer == "1"
    assert found.totals.links == 2
    assert events[found.same].event == "receiver_chosen"


async def test_another_prior_begins_with_another_receiver():
    _, events = await debate([("1", 0.2), ("2", 0.8), ("3", 0.7)])
    assert rounds(events)[0][0] == "A2"
    found = what_if(events, prior="uniform")
    assert "A1 challenged by A2, A3" in found.departs
    assert found.missing[0].agent == "A1"


async def test_a_lower_quorum_ends_before_any_debate():
    _, events = await debate([("1", 0.9), ("1", 0.8), ("2", 0.7), ("3", 0.6)])
    found = what_if(events, quorum=2)
    assert found.verdict.reason == "consensus"
    assert found.totals.links == 0
    assert found.same == 5


async def test_another_memory_sends_other_messages():
    _, events = await debate(CAST, tau=1.0)
    found = what_if(events, memory="last")
    second = [e for e in events if e.event == "debated"][1]
    assert found.same == second.seq, "the first debate still sends the same: an agent has said one thing"
    assert "A1 would be sent other messages" in found.departs


async def test_a_pause_does_not_matter():
    _, events = await debate(CAST)
    found = what_if(events, accept_after="debate")
    from svrmad_core.records import Paused, Resumed

    held = [*events[:7], Paused(seq=7), Resumed(seq=8)]
    held += [e.model_copy(update={"seq": e.seq + 2}) for e in events[7:]]
    again = what_if(held, accept_after="debate")
    assert decisions(again.events) == decisions(found.events)
    assert held[again.same].seq == again.same


async def test_a_run_stopped_by_hand_would_have_gone_on():
    _, events = await debate(CAST, max_rounds=0)
    end = events[-1].model_copy(update={"verdict": events[-1].verdict.model_copy(update={"reason": "stopped"})})
    found = what_if([*events[:-1], end], max_rounds=3)
    assert found.same == len(events) - 1
    assert "open round 1" in found.departs


async def test_what_cannot_be_asked_is_refused_in_a_sentence():
    _, events = await debate(CAST)
    with pytest.raises(ValueError, match="temperature cannot be changed"):
        what_if(events, temperature=1.0)
    with pytest.raises(ValueError, match="tau: "):
        what_if(events, tau=3)
    _, other = await debate(CAST, protocol="all_to_all")
    with pytest.raises(ValueError, match="what-if is for runs of svr_mad"):
        what_if(other)


async def test_long_runs_are_decided_again_while_one_waits():
    chosen = Settings(agents=50, seed=1, tau=1.0, max_rounds=115, quorum=50)
    events = [e async for e in run("Q?", "svr_mad", SimulatedPanel("simulated/hard"), chosen)]
    began = time.process_time()
    assert what_if(events).departs is None
    assert time.process_time() - began < 10
