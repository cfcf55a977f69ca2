"""SVR-MAD against scripted panels: who answered what, then who heard whom, and the verdict."""

from __future__ import annotations

import pytest

from svrmad_core import verify
from svrmad_core.scoring import beta_score, rank_scale, svr
from tests.scripted import FAILS, VOID, debate, heard, rounds, verdict


def test_worked_examples():
    assert svr(2, 1) == pytest.approx(1 / 3)
    assert svr(3, 1) == 0.5


async def test_retained_retained_changed_is_not_above_tau():
    _, events = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)],
        {("A1", "A4"): "4"},
        max_rounds=1,
    )
    assert heard(events) == [("A1", "A2", "retained"), ("A1", "A3", "retained"), ("A1", "A4", "changed")]
    assert verdict(events) == ("4", "vote", None)


async def test_three_retained_one_changed_is_still_not_above_tau():
    state, events = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6), ("5", 0.5)],
        {("A1", "A5"): "5"},
        challengers=4,
        max_rounds=1,
        quorum=5,
    )
    assert state.agents["A1"].svr == 0.5
    assert verdict(events)[1] == "vote"


async def test_the_surest_survives_three_challengers_and_is_accepted():
    state, events = await debate([("12", 0.9), ("15", 0.8), ("15", 0.7), ("16", 0.6), ("17", 0.5), ("12", 0.4)])
    assert rounds(events) == [("A1", ["A2", "A3", "A4"])]
    assert heard(events) == [("A1", "A2", "retained"), ("A1", "A3", "retained"), ("A1", "A4", "retained")]
    assert verdict(events) == ("12", "accepted", "A1")
    assert (state.agents["A1"].debates, len(state.links)) == (3, 3)


async def test_the_confident_one_falls_and_the_hesitant_one_survives():
    _, events = await debate(
        [("9", 0.99), ("5", 0.6), ("7", 0.5)],
        {("A1", "A2"): "5", ("A1", "A3"): ["7"]},
        max_rounds=3,
        quorum=3,
    )
    assert rounds(events)[0] == ("A1", ["A2", "A3"])
    # A1 is now at -1 and ranks last; A2 holds 5 against A1 and A3, who say 7
    assert rounds(events)[1] == ("A2", ["A3", "A1"])
    assert verdict(events) == ("5", "accepted", "A2")


async def test_all_agree_at_once():
    _, events = await debate(["7"] * 6)
    assert [e.event for e in events] == ["run_started"] + ["answered"] * 6 + ["run_finished"]
    assert verdict(events) == ("7", "consensus", None)


@pytest.mark.parametrize(("agents", "needed"), [(6, 5), (5, 4), (4, 4), (10, 8), (2, 2), (1, 1), (3, 3)])
async def test_quorum_is_ceil_of_four_fifths(agents, needed):
    enough = ["7"] * needed + [str(100 + i) for i in range(agents - needed)]
    _, events = await debate(enough)
    assert verdict(events)[1] == "consensus"


async def test_a_prior_alone_never_accepts():
    _, events = await debate([("1", 1.0), ("2", 0.0)], max_rounds=0)
    assert verdict(events) == ("1", "vote", None)


async def test_a_challenger_that_agrees_by_now_is_skipped():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("2", 0.7), ("3", 0.6)], {("A1", "A2"): "2"}, max_rounds=1)
    # A1 took over 2 from A2, so A3 no longer disagrees
    assert rounds(events) == [("A1", ["A2", "A3", "A4"])]
    assert heard(events) == [("A1", "A2", "changed"), ("A1", "A4", "retained")]


async def test_a_void_debate_is_recorded_and_not_counted():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): VOID})
    assert heard(events) == [("A1", "A2", "void"), ("A1", "A3", "retained")]
    agent = state.agents["A1"]
    assert (agent.debates, agent.retained, agent.changed, agent.void) == (1, 1, 0, 1)
    assert agent.answer == "1"
    assert len(state.links) == 2
    assert verdict(events) == ("1", "accepted", "A1")


async def test_only_void_debates_do_not_repeat_for_ever():
    _, events = await debate([("1", 0.9), ("2", 0.8)], {("A1", "A2"): VOID, ("A2", "A1"): VOID}, max_rounds=50)
    assert heard(events) == [("A1", "A2", "void"), ("A2", "A1", "void")]
    assert verdict(events) == ("1", "vote", None)


async def test_accept_after_each_debate_stops_at_the_first_survival():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], accept_after="debate")
    assert heard(events) == [("A1", "A2", "retained")]
    assert verdict(events) == ("1", "accepted", "A1")


async def test_parallel_round_takes_the_plurality():
    state, events = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.7), ("2", 0.6)],
        {("A1", "A2"): "2", ("A1", "A4"): "2"},
        round_mode="parallel",
        max_rounds=1,
    )
    assert [e.before for e in events if e.event == "debated"] == [0, 0, 0]
    assert state.agents["A1"].answer == "2"
    assert (state.agents["A1"].retained, state.agents["A1"].changed) == (1, 2)
    # the conversation that goes on is the one with A2, the first whose outcome was taken
    assert [s.agent for s in state.agents["A1"].conversation[-1].heard] == ["A2"]


async def test_parallel_round_that_ties_keeps_the_old_belief():
    state, _ = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.7)],
        {("A1", "A2"): "2", ("A1", "A3"): "3"},
        round_mode="parallel",
        max_rounds=1,
    )
    assert state.agents["A1"].answer == "1"
    assert state.agents["A1"].svr == -1.0


async def test_vote_majority():
    _, events = await debate(["1", "2", "2", "3"], max_rounds=0)
    assert verdict(events) == ("2", "vote", None)


async def test_vote_tie_is_broken_by_the_initial_answers():
    # 1 and 2 are held twice each at the end; 2 was the initial answer of two, 1 of one
    state, events = await debate(
        [("9", 0.9), ("1", 0.5), ("2", 0.4), ("2", 0.3)], {("A1", "A2"): "1"}, max_rounds=1, challengers=1
    )
    assert state.votes() == {state.beliefs.index("1"): 2, state.beliefs.index("2"): 2}
    assert verdict(events) == ("2", "vote", None)


async def test_vote_tie_is_broken_by_the_highest_score_then_the_lowest_index():
    _, events = await debate([("1", 0.3), ("2", 0.8)], max_rounds=0)
    assert verdict(events)[0] == "2"
    _, events = await debate([("1", 0.5), ("2", 0.5)], max_rounds=0)
    assert verdict(events)[0] == "1"


async def test_no_agent_has_an_answer():
    state, events = await debate([VOID, VOID, FAILS])
    assert verdict(events) == (None, "no_answer", None)
    assert state.totals().failed == 1


async def test_an_agent_without_an_answer_takes_no_part():
    _, events = await debate([(None, 1.0), ("1", 0.5), ("2", 0.4)])
    assert rounds(events) == [("A2", ["A3"])]


async def test_a_receiver_that_fails_is_not_asked_again_and_the_debate_goes_on():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): FAILS})
    assert state.agents["A1"].failure is not None
    assert heard(events) == [("A2", "A1", "retained"), ("A2", "A3", "retained")]
    assert verdict(events) == ("2", "accepted", "A2")
    assert verify(events) is None


async def test_failures_within_a_parallel_round():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): FAILS}, round_mode="parallel")
    assert ("A1", "A3", "retained") in heard(events)
    assert state.agents["A1"].debates == 1
    assert verify(events) is None


@pytest.mark.parametrize(
    ("budget", "links", "reason"),
    [
        ({"max_links": 0}, 0, "vote"),
        ({"max_links": 2}, 2, "accepted"),
        ({"max_tokens_total": 900}, 0, "vote"),
        ({"max_cost": 0.06}, 0, "vote"),
        ({"max_rounds": 0}, 0, "vote"),
    ],
)
async def test_budgets(budget, links, reason):
    state, events = await debate([(str(i), 1 - i / 10) for i in range(6)], **budget)
    assert (len(state.links), verdict(events)[1]) == (links, reason)


async def test_a_token_budget_ends_a_round_that_it_no_longer_affords():
    # six answers cost 900; a debate is forecast at 150 in context + 50 heard + 50 to write = 250
    state, events = await debate([(str(i), 1 - i / 10) for i in range(6)], max_tokens_total=1200)
    assert len(state.links) == 1
    assert state.totals().tokens <= 1200
    assert verify(events) is None


async def test_ranking_ties_by_prior_then_index():
    _, events = await debate([("1", 0.5), ("2", 0.9), ("3", 0.9)], max_rounds=1)
    assert [row[0] for row in events[4].ranking] == ["A2", "A3", "A1"]


async def test_a_pair_is_not_debated_again_while_both_hold_the_same_beliefs():
    state, _ = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.1)],
        {("A1", "A2"): "2", ("A1", "A3"): "1"},
        challengers=1,
        max_rounds=12,
        tau=1.0,
    )
    held = [(x.receiver, x.challenger, x.before, x.challenger_belief) for x in state.links]
    assert len(held) > 3
    assert len(set(held)) == len(held)


async def test_score_frozen_at_the_prior_still_asks_for_survival():
    state, events = await debate(
        [("1", 0.9), ("2", 0.8), ("3", 0.7)],
        {("A1", "A2"): "2", ("A1", "A3"): "3"},
        score="prior",
        max_rounds=2,
    )
    assert state.score("A1") == 0.9
    assert rounds(events)[0][0] == rounds(events)[1][0] == "A1"


async def test_beta_score():
    assert beta_score(0.7, 3, 0) == pytest.approx(2 * (1.4 + 3) / 5 - 1)
    _, events = await debate([("1", 0.7), ("2", 0.6), ("3", 0.5), ("4", 0.4)], score="beta")
    assert verdict(events) == ("1", "accepted", "A1")


async def test_rank_scale():
    assert rank_scale([0.2, 0.9, 0.9, 0.1]) == [1 / 3, 2.5 / 3, 2.5 / 3, 0.0]
    state, _ = await debate([("1", 0.01), ("2", 0.02), ("3", 0.03)], prior_scale="rank", max_rounds=0)
    assert [a.prior for a in state.agents.values()] == [0.0, 0.5, 1.0]


async def test_accounting():
    state, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)])
    totals = events[-1].totals
    assert (totals.calls, totals.links, totals.rounds) == (5, 2, 1)
    assert (totals.prompt_tokens, totals.completion_tokens, totals.tokens) == (500, 250, 750)
    assert totals.cost == pytest.approx(0.05)
    # three answers at once, then two debates that wait for each other
    assert totals.critical_path == 3.0
    assert state.totals().tokens == 750
