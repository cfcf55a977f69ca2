"""What must hold for every panel, whatever it says."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from svrmad_core import PROTOCOLS, Settings, SimulatedPanel, fold, run, verify
from tests.scripted import FAILS, ScriptedPanel, without_time

ANSWERS = st.sampled_from(["1", "2", "3", "4", None, FAILS])
INITIAL = st.lists(st.tuples(ANSWERS, st.floats(0, 1)), min_size=1, max_size=8)


@st.composite
def debates(draw):
    """A scripted panel of any size with any replies, a protocol, and settings."""
    initial = [a if a is FAILS else (a, round(c, 3)) for a, c in draw(INITIAL)]
    names = [f"A{i + 1}" for i in range(len(initial))]
    replies = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(names), st.one_of(st.sampled_from(names), st.integers(1, 4))),
            ANSWERS,
            max_size=30,
        )
    )
    chosen = Settings(
        agents=len(initial),
        challengers=draw(st.integers(1, 5)),
        tau=draw(st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0])),
        quorum=draw(st.none() | st.integers(1, 8)),
        prior=draw(st.sampled_from(["confidence", "perplexity", "min_logprob", "uniform"])),
        prior_scale=draw(st.sampled_from(["probability", "rank"])),
        score=draw(st.sampled_from(["svr", "prior", "beta"])),
        round_mode=draw(st.sampled_from(["sequential", "parallel"])),
        memory=draw(st.sampled_from(["full", "last"])),
        accept_after=draw(st.sampled_from(["round", "debate"])),
        max_rounds=draw(st.none() | st.integers(0, 12)),
        max_links=draw(st.none() | st.integers(0, 40)),
        max_tokens_total=draw(st.none() | st.integers(1, 6000)),
        max_cost=draw(st.none() | st.floats(0, 0.5)),
        neighbours=draw(st.integers(1, 9)),
        group_size=draw(st.integers(2, 5)),
        summaries=draw(st.booleans()),
        exit_variant=draw(st.sampled_from(["per_agent", "gate_first"])),
        exit_confidence=draw(st.sampled_from([0.2, 0.5, 0.9])),
    )
    return initial, replies, draw(st.sampled_from(sorted(PROTOCOLS))), chosen


def play(case):
    initial, replies, protocol, chosen = case

    async def collect():
        return [e async for e in run("Q?", protocol, ScriptedPanel(initial, replies), chosen)]

    return asyncio.run(collect())


@settings(max_examples=200, deadline=None)
@given(debates())
def test_every_run(case):
    events = play(case)
    chosen = case[3]
    assert events[-1].event == "run_finished"
    assert [e.seq for e in events] == list(range(len(events)))

    debate = fold(events[:1])
    for event in events[1:]:
        if event.event == "debated":
            challenger = debate.agents[event.challenger]
            assert challenger.belief is not None
            assert challenger.belief != event.before, "nobody debates one who agrees"
            assert event.challenger != event.receiver
        debate.apply(event)
        for agent in debate.agents.values():
            assert agent.svr is None or -1 <= agent.svr <= 1
            assert -1 <= debate.score(agent.name) <= 1
    verdict = events[-1].verdict
    held = {a.answer for a in debate.agents.values() if a.belief is not None}
    if verdict.reason == "trajectory":
        # what was abandoned keeps what it had earned, and may win
        held |= set(debate.beliefs)
    assert (verdict.answer in held) if held else verdict.answer is None
    assert (verdict.reason == "no_answer") == (verdict.answer is None)
    if verdict.reason == "accepted":
        assert debate.acceptance_score(verdict.agent) > chosen.tau
    if chosen.max_rounds is not None:
        assert debate.rounds <= chosen.max_rounds
    if chosen.max_links is not None:
        assert len(debate.links) <= chosen.max_links
    for event in events:
        if event.event == "revised":
            assert event.agent not in event.heard
            assert event.heard or event.summaries
    totals = debate.totals()
    answers = sum(e.event == "answered" for e in events)
    if chosen.max_tokens_total is not None:
        # every scripted call costs the same, so the forecast is never short; the initial answers are always asked
        assert totals.tokens <= max(chosen.max_tokens_total, answers * 150)
    if chosen.max_cost is not None and answers:
        assert totals.cost <= max(chosen.max_cost, answers * 0.01) + 1e-9


@settings(max_examples=100, deadline=None)
@given(debates())
def test_verify_accepts_every_run_the_engine_made(case):
    assert verify(play(case)) is None


@settings(max_examples=60, deadline=None)
@given(debates(), st.data())
def test_fold_of_a_prefix_is_the_state_at_that_step(case, data):
    events = play(case)
    k = data.draw(st.integers(1, len(events)))
    stepped = fold(events[:1])
    for event in events[1:k]:
        stepped.apply(event)
    folded = fold(events, k)
    assert folded.agents == stepped.agents
    assert (folded.links, folded.beliefs, folded.round) == (stepped.links, stepped.beliefs, stepped.round)
    assert folded.totals() == stepped.totals()


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["simulated/easy", "simulated/hard", "simulated/hallucination"]),
    st.sampled_from(sorted(PROTOCOLS)),
)
def test_the_same_seed_and_panel_give_the_same_events(seed, model, protocol):
    def once():
        async def collect():
            panel = SimulatedPanel(model)
            return [e async for e in run("Q?", protocol, panel, Settings(seed=seed))]

        return asyncio.run(collect())

    assert without_time(once()) == without_time(once())
