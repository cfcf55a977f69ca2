"""The other protocols of the literature against scripted panels, each as its paper describes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from svrmad_core import Settings, SimulatedPanel, fold, run, verify
from svrmad_core.debate import Debate
from svrmad_core.protocols import PROTOCOLS, VARIANTS, group_debate, sparse, variant_of
from svrmad_core.protocols.free_mad import trajectory_scores
from svrmad_core.records import Answered, Turn
from svrmad_core.signals import signals_from_logprobs
from tests.scripted import FAILS, VOID, ScriptedPanel, debate, verdict


def hearings(events: list[Any], number: int) -> dict[str, list[str]]:
    """agent -> whom it heard in a round."""
    return {e.agent: e.heard for e in events if e.event == "revised" and e.round == number}


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


# -- sparse: a fixed ring ----------------------------------------------------------------------------------------------


async def test_on_the_ring_each_hears_its_two_neighbours_in_every_round():
    state, events = await debate(["1", "2", "3", "4", "5", "6"], protocol="sparse")
    ring = {
        "A1": ["A6", "A2"],
        "A2": ["A1", "A3"],
        "A3": ["A2", "A4"],
        "A4": ["A3", "A5"],
        "A5": ["A4", "A6"],
        "A6": ["A5", "A1"],
    }
    assert hearings(events, 1) == hearings(events, 2) == ring
    assert len(state.links) == 2 * 6 * 2
    assert verify(events) is None


@pytest.mark.parametrize(
    ("n", "k", "expected"), [(6, 3, ["A6", "A2", "A5"]), (3, 2, ["A3", "A2"]), (2, 2, ["A2"]), (1, 2, [])]
)
def test_the_nearest_on_a_ring(n, k, expected):
    assert sparse.nearest([f"A{i + 1}" for i in range(n)], 0, k) == expected


async def test_a_neighbour_that_said_nothing_is_not_replaced():
    _, events = await debate(["1", FAILS, "3", "4"], protocol="sparse")
    assert hearings(events, 1) == {"A1": ["A4"], "A3": ["A4"], "A4": ["A3", "A1"]}


# -- GroupDebate: random groups ----------------------------------------------------------------------------------------


async def test_groups_of_three_are_drawn_anew_each_round_and_everyone_hears_its_group():
    state, events = await debate(["1", "2", "3", "4", "5", "6"], protocol="group_debate", seed=3)
    drawn = [group_debate.groups(state, number) for number in (1, 2)]
    assert drawn[0] != drawn[1]
    for number in (1, 2):
        for group in drawn[number - 1]:
            for name in group:
                assert hearings(events, number)[name] == [other for other in group if other != name]
    assert len(state.links) == 2 * 6 * 2
    assert verify(events) is None


@pytest.mark.parametrize(("n", "sizes"), [(2, [2]), (4, [2, 2]), (5, [2, 3]), (6, [3, 3]), (7, [2, 2, 3])])
async def test_groups_are_even_and_none_is_larger_than_three(n, sizes):
    state, _ = await debate([str(i) for i in range(n)], protocol="group_debate", quorum=n + 1)
    assert sorted(len(group) for group in group_debate.groups(state, 1)) == sizes
    assert sorted(name for group in group_debate.groups(state, 1) for name in group) == sorted(state.agents)


async def test_the_same_seed_draws_the_same_groups_and_another_one_does_not():
    states = [(await debate(["1"] * 12, protocol="group_debate", seed=seed))[0] for seed in (1, 1, 2)]
    same, again, other = (group_debate.groups(state, 1) for state in states)
    assert same == again != other


async def test_with_summaries_the_groups_stay_and_hear_what_the_others_sum_up():
    panel = ScriptedPanel(["1", "2", "3", "4", "5", "6"])
    settings = Settings(agents=6, seed=3, summaries=True)
    events = [e async for e in run("Q?", "group_debate", panel, settings)]
    state = fold(events)
    one, two = group_debate.groups(state, 1)
    assert group_debate.groups(state, 2) == [one, two]
    kinds = [e.event for e in events]
    replies = ["revised"] * 6
    assert kinds == ["run_started", *["answered"] * 6, *replies, *["summarized"] * 2, *replies, "run_finished"]
    written = [e for e in events if e.event == "summarized"]
    assert [(e.agent, tuple(e.heard)) for e in written] == [(one[0], one), (two[0], two)]
    last = {e.agent: e.summaries for e in events if e.event == "revised" and e.round == 2}
    assert last == {name: [two[0] if name in one else one[0]] for name in state.agents}
    asked = next(r for r in panel.requests if r.round == 2 and r.task == "reply" and r.ask.agent == one[0])
    assert f"The group of solvers {', '.join(two)} sums up its discussion:" in asked.messages()[-1]["content"]
    summing = next(r for r in panel.requests if r.task == "summary")
    assert "Sum up their discussion" in summing.messages()[-1]["content"]
    # 2 N within the groups each round, and one summary for each agent in the second; a call for each summary
    assert (len(state.links), state.totals().calls) == (2 * 6 * 2 + 6, 6 * 3 + 2)
    assert verify(events) is None


async def test_a_group_whose_summary_fails_is_not_heard_and_its_writer_is_not_asked_again():
    replies = {("A1", "summary 2"): FAILS}
    state, events = await debate(["1", "2", "3", "4", "5", "6"], replies, protocol="group_debate", summaries=True)
    mine = next(g for g in group_debate.groups(state, 1) if "A1" in g)
    second = {e.agent: e.summaries for e in events if e.event == "revised" and e.round == 2}
    assert "A1" not in second
    assert all(bool(told) == (name in mine) for name, told in second.items())
    assert verify(events) is None


# -- S2-MAD: one representative of each other belief -------------------------------------------------------------------


async def test_an_agent_hears_the_highest_ranked_holder_of_each_other_belief():
    initial = [("12", 0.5), ("12", 0.9), ("15", 0.3), ("15", 0.8), ("18", 0.1)]
    state, events = await debate(initial, protocol="s2_mad", max_rounds=1)
    assert hearings(events, 1) == {
        "A1": ["A4", "A5"],
        "A2": ["A4", "A5"],
        "A3": ["A2", "A5"],
        "A4": ["A2", "A5"],
        "A5": ["A2", "A4"],
    }
    assert len(state.links) == (3 - 1) * 5
    assert verify(events) is None


async def test_with_nobody_to_hear_an_agent_sits_out():
    state, events = await debate(["7", "7", "7"], protocol="s2_mad", quorum=4)
    assert (len(state.links), verdict(events)) == (0, ("7", "vote", None))


async def test_an_agent_without_an_answer_hears_every_belief():
    _, events = await debate([VOID, "1", "2"], protocol="s2_mad", max_rounds=1)
    assert hearings(events, 1)["A1"] == ["A2", "A3"]


# -- SID: leave early when confident -----------------------------------------------------------------------------------


class Measured(ScriptedPanel):
    """Answers with token log-probabilities, one list an agent."""

    def __init__(self, initial: list[Any], logprobs: list[list[float] | None]) -> None:
        super().__init__(initial)
        self.logprobs = logprobs

    async def ask(self, request: Any) -> Turn:
        turn = await super().ask(request)
        given = self.logprobs[int(request.ask.agent[1:]) - 1]
        return turn.model_copy(update={"signals": signals_from_logprobs(given) if given else None})


async def sid(initial: list[Any], logprobs: list[list[float] | None], **settings: Any) -> tuple[Debate, list[Any]]:
    made = Settings(agents=len(initial), **settings)
    events = [e async for e in run("Q?", "sid_et", Measured(initial, logprobs), made)]
    assert verify(events) is None
    return fold(events), events


async def test_who_is_confident_leaves_and_is_still_heard():
    state, events = await sid(["1", "2", "3"], [[-2.5, 0.0], [-2.6], [-4.0, 0.0]])
    assert hearings(events, 1) == hearings(events, 2) == {"A2": ["A1", "A3"], "A3": ["A1", "A2"]}
    assert len(state.links) == (3 - 1) * 2 * 2, "N - 1 for each that remains"


async def test_where_all_leave_the_vote_decides_without_a_debate():
    state, events = await sid(["1", "2", "2"], [[-1.0]] * 3)
    assert (len(state.links), verdict(events)) == (0, ("2", "vote", None))


@pytest.mark.parametrize(
    ("signal", "limit", "leaves"),
    [("max", None, False), ("mean", None, True), ("q90", None, True), ("q99", None, False), ("max", 3.0, True)],
)
async def test_the_signal_of_the_early_exit_and_its_limit(signal, limit, leaves):
    # twenty sure tokens and one doubtful one: the largest NLL is 3, the mean 1/7, the 90 % quantile 0
    _, events = await sid(
        ["1", "2"], [[0.0] * 20 + [-3.0], [-9.0]], exit_signal=signal, exit_threshold=limit, max_rounds=1
    )
    assert ("A1" not in hearings(events, 1)) is leaves


async def test_without_log_probabilities_the_stated_confidence_decides():
    _, events = await debate([("1", 0.95), ("2", 0.6), "3"], protocol="sid_et", max_rounds=1)
    assert set(hearings(events, 1)) == {"A2", "A3"}


async def test_gate_first_asks_the_first_agent_alone_and_is_content_with_a_confident_answer():
    state, events = await sid(["1", "2", "3"], [[-1.0], [-1.0], [-1.0]], exit_variant="gate_first")
    assert (state.calls, verdict(events)) == (1, ("1", "early_exit", "A1"))


async def test_gate_first_lets_all_debate_where_the_first_is_not_confident():
    state, events = await sid(["1", "2", "3"], [[-5.0], [-0.1], [-0.1]], exit_variant="gate_first", max_rounds=1)
    assert set(hearings(events, 1)) == {"A1", "A2", "A3"}
    assert len(state.links) == 6


async def test_a_paired_gate_takes_over_only_the_answers_it_asks_for():
    _, parent = await debate([("1", 0.2), ("2", 0.99)], protocol="self_consistency")
    # the second answer came first, so that beliefs are numbered anew
    started, one, two, *_ = parent
    swapped = [started, two.model_copy(update={"seq": 1, "belief": 0}), one.model_copy(update={"seq": 2, "belief": 1})]
    sure = swapped[2].turn.model_copy(update={"confidence": 0.95})
    swapped[2] = swapped[2].model_copy(update={"turn": sure})
    settings = Settings(agents=2, exit_variant="gate_first")
    events = [e async for e in run("Q?", "sid_et", ScriptedPanel(["1", "2"]), settings, parent=swapped)]
    assert [type(e) for e in events if e.event == "answered"] == [Answered]
    assert (events[1].belief, verdict(events)) == (0, ("1", "early_exit", "A1"))
    assert verify(events) is None


# -- Free-MAD: the best trajectory -------------------------------------------------------------------------------------


async def test_the_best_trajectory_wins_and_not_the_vote():
    # two of three hold 1 at first; one is shown its error, one finds another answer
    state, events = await debate(["1", "1", "2"], {("A1", 1): "2", ("A2", 1): "3"}, protocol="free_mad")
    # 1: +20 +20 -25/2 -25/2 = 15; 2: +20 +30/2 +20/2 = 45; 3: +30/2 = 15
    assert trajectory_scores(state) == {0: 15.0, 1: 45.0, 2: 15.0}
    assert (state.rounds, verdict(events)) == (1, ("2", "trajectory", None))
    assert verify(events) is None


async def test_what_was_abandoned_may_win():
    replies = {(f"A{i}", 1): str(10 + i) for i in range(1, 5)}
    state, events = await debate(["1", "1", "1", "1", VOID, VOID], replies, protocol="free_mad")
    assert trajectory_scores(state)[0] == 4 * 20 - 4 * 12.5
    assert verdict(events) == ("1", "trajectory", None)


async def test_the_prompt_of_free_mad_asks_not_to_conform():
    panel = ScriptedPanel(["1", "2"])
    async for _ in run("Q?", "free_mad", panel, Settings(agents=2)):
        pass
    told = next(r for r in panel.requests if r.round == 1).messages()[-1]["content"]
    assert "Do not conform" in told


# -- what all share ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", VARIANTS)
def test_every_variant_has_a_run_that_verifies_and_knows_its_own_name(key):
    variant = VARIANTS[key]
    settings = Settings(seed=5, **variant.settings)

    async def collect():
        return [e async for e in run("Q?", variant.protocol, SimulatedPanel("simulated/hard"), settings)]

    events = asyncio.run(collect())
    assert verify(events) is None
    assert variant_of(events[0].protocol, events[0].settings) == key


@pytest.mark.parametrize("key", ["all_to_all", "sparse", "group_debate", "s2_mad", "sid_et", "free_mad"])
async def test_no_protocol_changes_its_mind_about_a_round_in_the_middle_of_it(key):
    """Who hears whom is decided as the round began, however many have replied since."""
    initial = [(str(i % 3), round(i / 9, 2)) for i in range(6)]
    replies = {(f"A{i}", 1): str(i % 2) for i in range(1, 7)}
    _state, events = await debate(initial, replies, protocol=key, seed=1)
    next_step = PROTOCOLS[key].next_step
    begun = next(k for k, e in enumerate(events) if e.event == "revised")
    planned = {ask.agent: list(ask.heard) for ask in next_step(fold(events, begun)).asks}
    assert hearings(events, 1) == planned
