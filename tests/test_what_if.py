"""What a recorded run would have become with other settings, against the engine itself."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from datetime import datetime, timedelta
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svrmad_core import (
    Agent,
    Ask,
    PanelError,
    Paused,
    Resumed,
    Settings,
    Signals,
    SimulatedPanel,
    Turn,
    TurnFailed,
    fold,
    run,
    what_if,
)
from svrmad_core.prompts import messages_for
from tests.scripted import debate, heard, rounds


class PureFunctionPanel:
    """Agents whose reply depends on the exact messages and nothing else, in few words, so that replies repeat."""

    simulated = False

    def __init__(self, agents: int, seed: int, answers: int = 3, fails: bool = False) -> None:
        self.count, self.seed, self.answers, self.fails = agents, seed, answers, fails
        self.sent: list[tuple] = []
        """(round, ask, the whole text sent) of each debate's call."""

    def agents(self, settings: Settings) -> list[Agent]:
        return [Agent(name=f"A{i + 1}", model="pure") for i in range(self.count)]

    async def ask(self, request):
        sent = messages_for(request.debate, request.ask, request.round)
        text = f"{self.seed} {request.ask.agent} {sent}"
        if request.ask.heard:
            self.sent.append((request.round, request.ask, text))
        digest = hashlib.sha256(text.encode()).digest()
        if self.fails and digest[5] < 12:
            raise PanelError("timeout", "No answer.", 1)
        signals = Signals(min_logprob=-digest[3] / 50, mean_logprob=-digest[4] / 100, perplexity=2.0, tokens=9)
        answer = None if digest[0] < 16 else str(digest[1] % self.answers)
        return Turn(
            reply=f"I say {answer}",
            answer=answer,
            confidence=digest[2] / 255 if digest[7] < 200 else None,
            signals=signals if digest[6] < 200 else None,
            prompt_tokens=len(text),
            completion_tokens=10 + digest[8],
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
        "prior": st.sampled_from(["confidence", "perplexity", "min_logprob", "uniform"]),
        "prior_scale": st.sampled_from(["probability", "rank"]),
        "score": st.sampled_from(["svr", "prior", "beta"]),
        "accept_after": st.sampled_from(["round", "debate"]),
        "round_mode": st.sampled_from(["sequential", "parallel"]),
        "memory": st.sampled_from(["full", "last"]),
        "max_rounds": st.none() | st.integers(0, 6),
        "max_links": st.none() | st.integers(0, 12),
        "max_tokens_total": st.none() | st.sampled_from([20_000, 60_000]),
    }
)


@st.composite
def pairs(draw):
    """Two settings: the recorded ones, and others that differ in some."""
    first, other = draw(SETTINGS), draw(SETTINGS)
    changed = draw(st.sets(st.sampled_from(sorted(other)), max_size=3) | st.just(set(other)))
    return first, first | {name: other[name] for name in changed}


def step_of(event):
    """An event as a decision: who, and by whom, or how it ended."""
    match event.event:
        case "receiver_chosen":
            return event.event, event.receiver, tuple(event.challengers)
        case "debated":
            return event.event, event.receiver, event.challenger
        case "run_finished":
            return event.event, event.verdict.reason, event.verdict.answer, event.verdict.agent
    return event.event, getattr(event, "agent", None)


def first_not_recorded(recorded, really, at_once):
    """The calls of the real run that were sent what no unused call of the recorded one was, by the whole text."""
    unused = Counter(text for _, _, text in recorded)
    steps = [list(calls) for _, calls in groupby(really, lambda call: call[0])] if at_once else [[c] for c in really]
    for calls in steps:
        if missing := tuple(ask for _, ask, text in calls if not unused[text]):
            return missing
        unused.subtract(text for _, _, text in calls)
    return ()


@settings(max_examples=150, deadline=None)
@given(st.integers(2, 6), st.integers(0, 10**6), st.integers(2, 9), pairs(), st.booleans())
def test_it_stops_exactly_where_a_text_was_never_sent(agents, seed, answers, both, fails):
    first, second = both
    panel, other = (PureFunctionPanel(agents, seed, answers, fails) for _ in range(2))
    recorded = play(panel, Settings(agents=agents, **first))
    really = play(other, Settings(agents=agents, **second))
    found = what_if(recorded, **second)
    assert found.missing == first_not_recorded(panel.sent, other.sent, second["round_mode"] == "parallel")

    replies = {(e.round, e.receiver, e.challenger): e for e in really if e.event == "debated"}
    same_beliefs = set()
    for event in found.events:
        if event.event == "debated":
            real = replies[event.round, event.receiver, event.challenger]
            assert (event.turn, event.retained) == (real.turn, real.retained)
            same_beliefs |= {(event.before, real.before), (event.after, real.after)}
    assert len({a for a, _ in same_beliefs}) == len({b for _, b in same_beliefs}) == len(same_beliefs)

    if found.verdict is not None:
        assert step_of(found.events[-1]) == step_of(really[-1])
        differs = {"seconds", "cost"}  # the clock, and the last digit of sums in another order
        assert found.totals.model_dump(exclude=differs) == really[-1].totals.model_dump(exclude=differs)
    if (first["memory"], first["round_mode"]) == (second["memory"], second["round_mode"]):
        alike = [step_of(a) == step_of(b) for a, b in zip(recorded, really, strict=False)]
        same = alike.index(False) if False in alike else len(alike)
        assert (found.same, found.departs is None) == (same, same == len(recorded))


@settings(max_examples=100, deadline=None)
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
    held = [*events[:7], Paused(seq=7), Resumed(seq=8)]
    held += [e.model_copy(update={"seq": e.seq + 2}) for e in events[7:]]
    again = what_if(held, accept_after="debate")
    assert decisions(again.events) == decisions(found.events)
    assert held[again.same].seq == again.same


async def test_time_spent_paused_is_not_counted():
    _, events = await debate(CAST)
    began = datetime.fromisoformat(events[0].at)

    def at(seconds):
        return (began + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")

    held = [e.model_copy(update={"at": at(e.seq)}) for e in events[:7]]
    held += [Paused(seq=7, at=at(7)), Resumed(seq=8, at=at(3607))]
    held += [e.model_copy(update={"seq": e.seq + 2, "at": at(3602 + e.seq)}) for e in events[7:]]
    found = what_if(held)
    assert found.departs is None
    assert found.totals.seconds == fold(held[:-1]).totals().seconds == 11.0
    assert fold(found.events).totals() == found.totals
    assert what_if(held[:8]).same == 8, "a recording that ends in a pause is the same to its end"


async def test_a_blank_reply_is_not_taken_for_another_challengers():
    """Nobody hears a blank reply, so hearing A2 or A3 is the same text and yet not the same link."""
    cast = [("1", 0.9), ("2", 0.8), ("3", 0.7)]
    _, events = await debate(cast, prior="confidence")
    turns = {"A2": {"reply": " ", "confidence": 0.8}, "A3": {"reply": " ", "confidence": 0.7}}
    blank = [
        e.model_copy(update={"turn": e.turn.model_copy(update=turns[e.agent])})
        if e.event == "answered" and e.agent in turns
        else e
        for e in events
    ]
    only_a2 = [e.model_copy(update={"challengers": ["A2"]}) if e.event == "receiver_chosen" else e for e in blank[:6]]
    only_a2[0] = only_a2[0].model_copy(update={"settings": events[0].settings.model_copy(update={"challengers": 1})})
    found = what_if(only_a2, challengers=2, round_mode="parallel")
    assert [(a.agent, a.heard) for a in found.missing] == [("A1", ("A3",))]


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
    with pytest.raises(ValueError, match="there is no setting colour"):
        what_if(events, colour="red")
    with pytest.raises(ValueError, match="tau: "):
        what_if(events, tau=3)
    _, other = await debate(CAST, protocol="all_to_all")
    with pytest.raises(ValueError, match="what-if is for runs of svr_mad"):
        what_if(other)
    for no_run in ([], events[1:]):
        with pytest.raises(ValueError, match="a run begins with run_started"):
            what_if(no_run)
    step = next(i for i, e in enumerate(events) if e.event == "debated")
    with pytest.raises(ValueError, match="there is no agent 'A99'"):
        what_if([*events[:step], events[step].model_copy(update={"challenger": "A99"})])
    failed = TurnFailed(seq=step, agent="A1", kind="timeout", message="No answer.", round=1, heard=["A99"])
    assert what_if([*events[:step], failed]).missing == (Ask("A1", ("A2",)),), "it fits no call, so none is made of it"


async def test_beliefs_are_numbered_as_they_appear_there():
    """Recorded, A3 comes to 9 and then A1 to 8; if all priors are alike A1 is first, and 8 is the new belief."""
    cast, replies = [("1", 0.6), ("2", 0.3), ("3", 0.9)], {("A3", "A1"): "9", ("A1", "A2"): "8"}
    _, events = await debate(cast, replies, challengers=1, tau=1.0)
    assert [(e.receiver, e.after) for e in events if e.event == "debated"][:2] == [("A3", 3), ("A1", 4)]
    found = what_if(events, prior="uniform")
    assert [(e.receiver, e.turn.answer, e.after) for e in found.events if e.event == "debated"] == [("A1", "8", 3)]
    assert fold(found.events).beliefs == ["1", "2", "3", "8"]


async def test_a_token_budget_ends_before_the_first_debate():
    _, events = await debate(CAST)
    found = what_if(events, max_tokens_total=800)
    assert (found.verdict.reason, found.totals.links, found.totals.tokens) == ("vote", 0, 750)


async def test_long_runs_are_decided_again_while_one_waits():
    chosen = Settings(agents=50, seed=1, tau=1.0, max_rounds=115, quorum=50)
    events = [e async for e in run("Q?", "svr_mad", SimulatedPanel("simulated/hard"), chosen)]
    began = time.process_time()
    assert what_if(events).departs is None
    assert time.process_time() - began < 10
