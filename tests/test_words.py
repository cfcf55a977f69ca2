"""A step in words: the numbers of METHOD.md's examples, said as the protocol decided."""

from __future__ import annotations

import asyncio
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from svrmad_core import PROTOCOLS, Settings, SimulatedPanel, Turn, fold, run
from svrmad_core.signals import prior_of, signals_from_logprobs
from svrmad_core.words import formula, tell
from tests.scripted import FAILS, VOID, debate
from tests.test_properties import debates, play


async def told(*args, **kwargs):
    """The words of every step."""
    _, events = await debate(*args, **kwargs)
    return [
        tell(fold(events, k - 1) if k > 1 else None, events[k - 1], fold(events, k)) for k in range(1, len(events) + 1)
    ]


async def test_the_worked_example_in_the_formula():
    state, _ = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A4"): "4"}, max_rounds=1)
    assert formula(state, "A1") == "SVR(A1) = (r − c) / D = (2 − 1) / 3 = 0.33"
    assert formula(state, "A2") == "D = 0: the score of A2 is still its prior, 0.80"


async def test_a_survivor_is_told_step_by_step():
    steps = await told([("12", 0.9), ("15", 0.8), ("16", 0.7), ("12", 0.2)], challengers=2, quorum=4)
    assert steps[0].detail.startswith("At most 2 challengers a round; accepted above τ = 0.5")
    assert (steps[1].title, steps[1].formula) == (
        "A1 answers 12.",
        "prior(A1) = 0.90, from its stated confidence",
    )
    assert steps[5].title == "Round 1: A1 ranks highest with 0.90 and is challenged by A2 and A3."
    assert steps[5].formula == "ranking: A1 0.90 > A2 0.80 > A3 0.70 > A4 0.20"
    assert steps[6].title == "A1 kept 12 against A2, who said 15."
    assert steps[6].formula == "SVR(A1) = (r − c) / D = (1 − 0) / 1 = 1.00 > τ = 0.5"
    assert "Next in this round: A3" in steps[6].detail
    assert steps[7].detail == "The round is over and A1 is above τ: accepted."
    assert steps[8].title == "Accepted: 12, the answer of A1."


async def test_a_change_of_mind_and_a_skipped_challenger():
    steps = await told([("1", 0.9), ("2", 0.8), ("2", 0.7), ("3", 0.6)], {("A1", "A2"): "2"}, max_rounds=1, quorum=4)
    assert steps[6].title == "A1 changed from 1 to 2, having heard A2, who said 2."
    assert steps[6].formula == "SVR(A1) = (r − c) / D = (0 − 1) / 1 = −1.00 ≤ τ = 0.5"
    assert steps[6].detail.startswith("A3 agrees now and is skipped. Next in this round: A4.")
    assert steps[-1].title == "Vote: 2."
    assert steps[-1].detail == "The rounds are used up."


async def test_the_rest_is_told_too():
    steps = await told([("1", 0.9), ("2", 0.8), (None, 0.1), FAILS], {("A1", "A2"): VOID})
    titles = [s.title for s in steps]
    assert "A3 gives no answer: none could be read out of its reply." in titles
    assert "A4 gives no initial answer after 2 attempts: timeout." in titles
    assert "A1 heard A2, and its reply holds no readable answer." in titles
    assert titles[-1] == "Accepted: 2, the answer of A2."


async def test_consensus_counts():
    steps = await told(["7"] * 5 + ["8"])
    assert steps[-1].title == "Consensus: 5 of 6 hold 7."
    assert steps[-1].formula == "votes: 7: 5, 8: 1"


async def test_a_fallback_of_the_prior_is_said():
    steps = await told([("1", 0.9), ("2", 0.8)], prior="min_logprob", max_rounds=0)
    assert steps[1].formula == "prior(A1) = 0.90, from its stated confidence (min_logprob was wanted and is missing)"


@pytest.mark.parametrize("protocol", ["all_to_all", "self_consistency"])
async def test_the_other_protocols_in_their_terms(protocol):
    steps = await told(["1", "2", "2"], {("A1", 1): "2"}, protocol=protocol)
    if protocol == "all_to_all":
        assert steps[4].title == "A1 heard A2 and A3 and changed from 1 to 2."
        assert steps[4].formula == "held now: 2: 3"
        assert steps[4].detail == "Still to reply in round 1: A2 and A3."
    assert all(step.title for step in steps)


# -- why ---------------------------------------------------------------------------------------------------------------


def steps_of(events):
    """(before, event, after, words) of every step."""
    before, after = None, fold(events[:1])
    for k, event in enumerate(events):
        if k:
            before, after = after, fold(events, k + 1)
        yield before, event, after, tell(before, event, after)


async def test_why_a_survival_rate_of_a_third_goes_on():
    """METHOD.md's worked example: retained, retained, changed."""
    steps = await told([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A4"): "4"}, quorum=4)
    assert steps[6].why == (
        "A1 kept its answer: r 0 → 1, D 0 → 1.",
        "SVR none yet → 1.00.",
        "The prior 0.90 no longer counts: from now on the score is SVR.",
        "SVR 1.00 is above τ = 0.5, but acceptance waits for the end of the round.",
        "A3 still disagrees and is heard next.",
    )
    assert steps[7].why[:2] == ("A1 kept its answer: r 1 → 2, D 1 → 2.", "SVR 1.00 → 1.00.")
    assert steps[8].why == (
        "A1 changed its answer: c 0 → 1, D 2 → 3.",
        "SVR 1.00 → 0.33.",
        "SVR 0.33 is not above τ = 0.5: A1 is not accepted.",
        "No consensus: 2 of 4 hold 4, and the quorum of 4 is not reached.",
        "The debate goes on with round 2: A2 can be challenged.",
    )
    assert steps[9].why == (
        "Ranking: A2 0.80 (prior), A3 0.70 (prior), A4 0.60 (prior), A1 0.33 (SVR, D = 3).",
        "A3, A4 and A1 disagree with 2: 3 of 3 that may challenge, at most S = 3.",
    )


async def test_why_three_survived_and_one_lost_is_not_above_one_half():
    """METHOD.md's other example: 3 retained, 1 changed."""
    initial = [(str(i), 0.9 - i / 10) for i in range(5)]
    steps = await told(initial, {("A1", "A5"): "4"}, challengers=4, max_rounds=1, quorum=5)
    assert steps[10].why == (
        "A1 changed its answer: c 0 → 1, D 3 → 4.",
        "SVR 1.00 → 0.50.",
        "SVR 0.50 is not above τ = 0.5: A1 is not accepted.",
        "No consensus: 2 of 5 hold 4, and the quorum of 5 is not reached.",
        "The rounds are used up: 1 has been held.",
    )
    assert steps[11].why[-1] == "2 of 5 agents with an answer hold 4, more than any other."


async def test_why_these_challengers_and_not_the_others():
    initial = [("1", 0.9), ("2", 0.8), ("1", 0.7), ("3", 0.6), (None, 0.5), ("1", 0.4), ("4", 0.3)]
    steps = await told(initial, challengers=1, quorum=7, max_links=4, tau=1.0)
    chosen = [s.why for s in steps if s.title.startswith("Round")]
    assert chosen[0] == (
        "Ranking: A1 0.90 (prior), A2 0.80 (prior), A3 0.70 (prior), A4 0.60 (prior), "
        "A6 0.40 (prior), A7 0.30 (prior).",
        "A2 disagrees with 1: 1 of 3 that may challenge, at most S = 1.",
        "A3 and A6 hold the same answer, 1.",
        "A4 and A7 disagree, but rank below the 1 taken.",
        "A5 has no answer.",
    )
    assert chosen[1][0].startswith("Ranking: A1 1.00 (SVR, D = 1), A2 0.80 (prior)")
    assert "A2 disagrees, but has already challenged A1 with these same beliefs." in chosen[1]
    assert "A1 ranks above A2, but is passed over: no challenger is left for it." in chosen[3]
    assert steps[-1].why[:2] == (
        "No consensus: 3 of 7 hold 1, and the quorum of 7 is not reached.",
        "The links are used up: 4 of 4 used, and what comes next would need more.",
    )


async def test_why_a_link_is_not_left_for_a_challenger():
    steps = await told([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], challengers=2, max_links=1)
    assert "A3 disagrees, but only 1 of 1 links is left." in steps[5].why
    assert "A4 disagrees, but ranks below the 2 taken." in steps[5].why


@pytest.mark.parametrize(
    ("confidences", "settings", "expected"),
    [
        ((0.9, 0.9, 0.1), {}, "A1 and A2 tie at 0.90 and in their priors: the lower index goes first."),
        ((0.9, 0.5, 0.5), {}, "A2 and A3 tie at 0.50 and in their priors: the lower index goes first."),
        ((0.1, 0.5, 0.9), {"prior": "uniform"}, "A1, A2 and A3 tie at 0.50 and in their priors: the lower index"),
        ((0.9, 0.8, 0.7), {}, None),
    ],
)
async def test_ties_of_the_ranking_are_explained_where_they_matter(confidences, settings, expected):
    initial = [(str(i), c) for i, c in enumerate(confidences)]
    why = (await told(initial, **settings))[4].why
    ties = [sentence for sentence in why if " tie at " in sentence]
    assert [t.startswith(expected) for t in ties] == [True] if expected else ties == []


async def test_a_tie_of_survivors_goes_to_the_higher_prior():
    initial = [("1", 0.8), ("2", 0.9), ("3", 0.1)]
    steps = await told(initial, challengers=1, tau=1.0, max_rounds=5)
    chosen = [s for s in steps if s.title.startswith("Round")]
    assert not any(" tie at " in " ".join(s.why) for s in chosen[:4])
    assert chosen[4].why[1] == "A2 and A1 tie at 1.00: the higher prior goes first (0.90 > 0.80)."


async def test_scores_that_look_alike_are_told_apart():
    why = (await told([("1", 0.904), ("2", 0.896)]))[3].why
    assert why[0] == "Ranking: A1 0.904 (prior), A2 0.896 (prior)."
    assert not any("tie" in sentence for sentence in why)


async def test_long_lists_are_cut():
    why = (await told([(str(i), 0.9 - i / 100) for i in range(39)]))[40].why
    assert "A8 0.83 (prior) and 31 more." in why[0]
    assert why[-1] == "A5, A6, A7, A8, A9, A10, A11, A12 and 27 more disagree, but rank below the 3 taken."


async def test_void_and_failed_debates_say_what_stays():
    steps = await told([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A2"): VOID, ("A1", "A3"): FAILS}, max_rounds=1)
    assert steps[5].why[:2] == (
        "Void: D = 0, r = 0 and c = 0 stay, it has no SVR yet.",
        "A1 stays with 1; the call counts as a link and in tokens.",
    )
    assert steps[6].why[:2] == (
        "Its answer stays 1: it counts in the vote, and others may still hear it.",
        "A1 has no counted debate, and a prior alone never accepts.",
    )


async def test_a_parallel_round_says_what_the_receiver_takes():
    initial = [("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)]
    many = {("A1", "A2"): "2", ("A1", "A3"): "2"}
    steps = await told(initial, many, round_mode="parallel", max_rounds=1)
    assert "A3 and A4 are still under way, from the beliefs at the start of the round." in steps[6].why
    assert "The outcomes of the round are 2 twice, 1 once: A1 takes 2, the plurality." in steps[8].why
    tie = {("A1", "A2"): "2", ("A1", "A3"): "3"}
    steps = await told(initial, tie, round_mode="parallel", max_rounds=1)
    assert (
        "The outcomes of the round are 2 once, 3 once, 1 once: A1 takes 1, a tie keeps the old belief." in steps[8].why
    )


async def test_who_is_no_longer_heard():
    initial = [("1", 0.9), ("2", 0.8), ("3", 0.7)]
    steps = await told(initial, accept_after="debate")
    assert steps[-1].why == (
        "SVR 1.00 is above τ = 0.5: A1 is accepted.",
        "A3 is not heard any more: acceptance is decided after each debate.",
    )
    steps = await told(initial, tau=1.0, max_tokens_total=700)
    assert "A3 is not heard any more: the token budget is used up." in steps[5].why
    assert steps[-1].why[1] == "The token budget is used up: 600 of 700 used, and the next calls would overrun it."


@pytest.mark.parametrize(
    ("initial", "replies", "expected"),
    [
        (
            [("1", 0.9), ("1", 0.8), ("2", 0.7), ("3", 0.6)],
            {("A1", 1): "2", ("A4", 1): "1"},
            ("A tie: 1 and 2 have 2 each.", "Initial answers: 1 had 2; 2 had 1: the most wins, 1."),
        ),
        (
            [("1", 0.4), ("2", 0.7), ("3", 0.1), ("3", 0.1)],
            {("A3", 1): "1", ("A4", 1): "2"},
            (
                "A tie: 1 and 2 have 2 each.",
                "Initial answers: 1 had 1; 2 had 1: 1 and 2 stay level.",
                "Highest score of a holder: A1 0.40 for 1; A2 0.70 for 2: the highest wins, 2.",
            ),
        ),
        (
            [("1", 0.5), ("2", 0.5), ("3", 0.2)],
            {},
            (
                "A tie: 1, 2 and 3 have 1 each.",
                "Initial answers: 1 had 1; 2 had 1; 3 had 1: 1, 2 and 3 stay level.",
                "Highest score of a holder: A1 0.50 for 1; A2 0.50 for 2; A3 0.20 for 3: 1 and 2 stay level.",
                "Lowest index of a holder: A1 for 1; A2 for 2: the lowest wins, 1.",
            ),
        ),
    ],
)
async def test_a_tied_vote_says_what_decided(initial, replies, expected):
    why = (await told(initial, replies, protocol="all_to_all", max_rounds=1))[-1].why
    assert why[1] == "The rounds are used up: 1 has been held."
    assert why[3:] == expected


async def test_self_consistency_votes_over_the_initial_answers():
    steps = await told(["1", "1", "2"], protocol="self_consistency")
    assert steps[-1].why == (
        "No consensus: 2 of 3 hold 1, and the quorum of 3 is not reached.",
        "No debate follows: the vote over the initial answers decides, over 0 links.",
        "2 of 3 agents with an answer hold 1, more than any other.",
    )


async def test_a_revision_says_what_was_heard_and_why_another_round():
    steps = await told(["1", "2", "2"], {("A1", 1): "2", ("A2", 1): "1"}, protocol="all_to_all")
    assert steps[4].why == (
        "Everybody hears everybody: A1 hears all 2 others.",
        "It heard 2 replies, from before the round: 2 twice.",
        "Its answer is now 2, which 2 of the 2 replies it heard said.",
        "Still to reply in round 1: A2 and A3.",
    )
    assert steps[6].why[3:] == (
        "No consensus: 2 of 3 hold 2, and the quorum of 3 is not reached.",
        "The debate goes on with round 2: 3 agents reply anew, each having heard up to 2.",
    )


@pytest.mark.parametrize(
    ("turn", "wanted", "expected"),
    [
        ({"confidence": 0.95}, "confidence", ("Stated confidence 95 → 0.95.",)),
        (
            {"confidence": 0.95},
            "min_logprob",
            (
                "The prior should come from min_logprob, but the reply has no log-probabilities: "
                "it falls back on confidence.",
                "Stated confidence 95 → 0.95.",
            ),
        ),
        (
            {"signals": [0.0, -1.0]},
            "perplexity",
            ("1 / perplexity = 1 / 1.649 = exp(mean token log-probability) = exp(−0.50) = 0.61.",),
        ),
        ({"signals": [0.0, -1.0]}, "min_logprob", ("exp(smallest token log-probability) = exp(−1.00) = 0.37.",)),
        (
            {},
            "confidence",
            (
                "The prior should come from confidence, but no confidence was stated and the reply has no "
                "log-probabilities: it falls back on uniform.",
                "Without a signal the prior is 0.50.",
            ),
        ),
        ({}, "uniform", ("Without a signal the prior is 0.50.",)),
    ],
)
async def test_where_a_prior_comes_from(turn, wanted, expected):
    _, events = await debate(["1", "2"], prior=wanted)
    signals = signals_from_logprobs(turn["signals"]) if "signals" in turn else None
    made = Turn(reply="1", answer="1", confidence=turn.get("confidence"), signals=signals)
    prior, used = prior_of(made, wanted)
    first = events[1].model_copy(update={"turn": made, "prior": prior, "prior_signal": used})
    recording = [events[0], first]
    assert tell(fold(recording, 1), first, fold(recording)).why == (*expected, "Still to answer: A2.")
    other = first.model_copy(update={"prior": 0.123})
    assert tell(fold(recording, 1), other, fold([events[0], other])).why == ("Still to answer: A2.",)


async def test_a_recording_that_departs_is_told_without_reasons():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A2"): "2"}, max_rounds=1)
    started, chosen, end = events[0], events[5], events[-1]
    unknown = [started.model_copy(update={"protocol": "mine"}), *events[1:]]
    for before, event, after, words in steps_of(unknown):
        assert words.title
        assert event.event != "receiver_chosen" or words.why == ()
        assert before is not None or after.k == 1
    other = chosen.model_copy(update={"receiver": "A2", "challengers": ["A1"]})
    assert tell(fold(events, 5), other, fold([*events[:5], other])).why == ()
    for update in (
        {"reason": "accepted", "agent": None},
        {"reason": "accepted", "agent": "A9"},
        {"reason": "consensus", "belief": 7, "votes": {7: 4}},
        {"reason": "no_answer", "answer": None, "belief": None},
        {"reason": "vote", "belief": 2},
        {"reason": "stopped", "belief": 2},
    ):
        last = end.model_copy(update={"verdict": end.verdict.model_copy(update=update)})
        words = tell(fold(events[:-1]), last, fold([*events[:-1], last]))
        assert words.title
        assert words.why == ()


async def test_stopped_by_hand_says_how_the_vote_was_counted():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("2", 0.7)], max_rounds=0)
    end = events[-1]
    last = end.model_copy(update={"verdict": end.verdict.model_copy(update={"reason": "stopped"})})
    assert tell(fold(events[:-1]), last, fold([*events[:-1], last])).why == (
        "Stopped by hand before the protocol had decided.",
        "2 of 3 agents with an answer hold 2, more than any other.",
    )


def check_numbers(before, event, after, words):
    """Every SVR that is printed is the fold's."""

    def near(text, value):
        assert abs(float(text.replace("−", "-")) - value) < 0.00500001, (words, value)

    told = " ".join(words.why)
    for name, value, count in re.findall(r"(A\d+) (−?\d\.\d+) \(SVR, D = (\d+)\)", told):
        near(value, before.agents[name].svr)
        assert int(count) == before.agents[name].debates
    for name, value in re.findall(r"SVR\((A\d+)\) = \(r − c\) / D = \(.*?\) / \d+ = (−?\d\.\d+)", words.formula):
        near(value, after.agents[name].svr)
    receiver = getattr(event, "receiver", None) or (after.round.receiver if after.round else None)
    for value in re.findall(r"SVR (−?\d\.\d+) is", told):
        near(value, after.agents[receiver].svr)
    if event.event == "debated" and event.retained is not None:
        was, now = re.findall(r"SVR (none yet|−?\d\.\d+) → (−?\d\.\d+)\.", told)[0]
        near(now, after.agents[receiver].svr)
        old = before.agents[receiver]
        assert (was == "none yet") == (old.svr is None)
        if old.svr is not None:
            near(was, old.svr)
        assert f"D {old.debates} → {after.agents[receiver].debates}." in told


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    model=st.sampled_from(["simulated/easy", "simulated/hard", "simulated/hallucination"]),
    protocol=st.sampled_from(sorted(PROTOCOLS)),
    chosen=st.fixed_dictionaries(
        {"agents": st.integers(2, 12)},
        optional={
            "challengers": st.integers(1, 5),
            "tau": st.sampled_from([-1.0, 0.0, 0.9, 1.0]),
            "quorum": st.integers(1, 12),
            "prior": st.sampled_from(["perplexity", "min_logprob", "uniform"]),
            "prior_scale": st.just("rank"),
            "score": st.sampled_from(["prior", "beta"]),
            "round_mode": st.just("parallel"),
            "memory": st.just("last"),
            "accept_after": st.just("debate"),
            "max_rounds": st.integers(0, 12),
            "max_links": st.integers(0, 40),
            "max_tokens_total": st.integers(1, 20_000),
            "max_cost": st.floats(0, 0.5),
        },
    ),
)
def test_every_step_of_every_simulated_run(seed, model, protocol, chosen):
    async def collect():
        return [e async for e in run("Q?", protocol, SimulatedPanel(model), Settings(seed=seed, **chosen))]

    for before, event, after, words in steps_of(asyncio.run(collect())):
        assert words.title
        assert words.why
        assert all(sentence.endswith(".") and "None" not in sentence for sentence in words.why), words.why
        check_numbers(before, event, after, words)


@settings(max_examples=100, deadline=None)
@given(debates())
def test_every_step_of_runs_that_fail_and_are_void(case):
    for before, event, after, words in steps_of(play(case)):
        assert words.title
        assert words.why
        check_numbers(before, event, after, words)


@settings(max_examples=60, deadline=None)
@given(debates())
def test_everybody_who_is_not_asked_has_a_reason(case):
    for before, event, _, _ in steps_of(play(case)):
        if event.event == "receiver_chosen":
            step = PROTOCOLS["svr_mad"].next_step(before)
            assert {*step.not_asked, step.receiver, *step.challengers} == set(before.agents)
            assert not {step.receiver, *step.challengers} & set(step.not_asked)
