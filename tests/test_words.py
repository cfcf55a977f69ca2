"""A step in words: the numbers of METHOD.md's examples, said as the protocol decided."""

from __future__ import annotations

import pytest

from svrmad_core import fold
from svrmad_core.words import formula, tell
from tests.scripted import FAILS, VOID, debate


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
