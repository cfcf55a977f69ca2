"""A recording as frames: what a row says, and that nothing unknown becomes a number."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from svrmad_core import Settings, SimulatedPanel, fold, load, run, tables
from svrmad_core.cli import SAMPLES
from svrmad_core.tables import agents, links, scores, turns
from tests.scripted import FAILS, VOID, debate

CASE = ([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A3"): "3", ("A1", "A4"): VOID})
EVERY = (turns, scores, agents, links)


def rows(frame, *columns):
    """The rows as tuples, None for what is missing."""
    chosen = frame[list(columns)].astype(object)
    return list(chosen.where(chosen.notna(), None).itertuples(index=False, name=None))


async def test_turns_read_as_the_debate_did():
    _, events = await debate(*CASE, max_rounds=1)
    frame = turns(events)
    moves = rows(frame, "k", "round", "agent", "heard", "answer", "belief", "before", "after", "retained")
    assert sorted(moves[:4], key=lambda row: row[2])[0][1:] == (0, "A1", None, "1", 0, None, None, None)
    assert moves[4:] == [
        (7, 1, "A1", "A2", "1", 0, 0, 0, True),
        (8, 1, "A1", "A3", "3", 2, 0, 2, False),
        (9, 1, "A1", "A4", None, None, 2, None, None),
    ]
    assert [events[k - 1].turn.reply for k in frame["k"]] == list(frame["reply"])
    assert rows(frame, "prompt_tokens", "completion_tokens", "cost", "latency", "model")[0] == (
        100,
        50,
        0.01,
        1.0,
        "scripted",
    )


async def test_a_turn_that_hears_several_names_them_all():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", 1): "2"}, protocol="all_to_all")
    frame = turns(events)
    first = frame[(frame["agent"] == "A1") & (frame["round"] == 1)]
    assert rows(first, "heard", "before", "after", "retained") == [("A2, A3", 0, 1, False)]
    assert len(links(events)) == fold(events).totals().links
    assert list(links(events)["number"]) == list(range(1, len(links(events)) + 1))


async def test_the_scores_of_every_step_are_the_folds():
    _, events = await debate(*CASE, max_rounds=1)
    frame = scores(events)
    assert len(frame) == len(events) * 4
    for k in range(1, len(events) + 1):
        state = fold(events, k)
        expected = [
            (
                s.name,
                s.belief,
                s.answer,
                s.prior if s.turns else None,
                s.debates,
                s.retained,
                s.changed,
                s.void,
                s.svr,
                state.score(s.name) if s.turns else None,
            )
            for s in state.agents.values()
        ]
        columns = ("agent", "belief", "answer", "prior", "D", "r", "c", "void", "svr", "score")
        assert rows(frame[frame["k"] == k], *columns) == expected


async def test_agents_after_k_events():
    _, events = await debate(*CASE, max_rounds=1)
    columns = ("agent", "first_answer", "answer", "prior", "prior_signal", "D", "r", "c", "void", "svr", "score")
    assert rows(agents(events), *columns)[0] == ("A1", "1", "3", 0.9, "confidence", 2, 1, 1, 1, 0.0, 0.0)
    assert rows(agents(events), *columns)[1] == ("A2", "2", "2", 0.8, "confidence", 0, 0, 0, 0, None, 0.8)
    assert rows(agents(events, 1), *columns)[0] == ("A1", None, None, None, None, 0, 0, 0, 0, None, None)


async def test_a_failed_agent_says_why_and_has_no_turn():
    _, events = await debate([("1", 0.9), FAILS, ("3", 0.7)], max_rounds=0)
    assert rows(agents(events), "agent", "prior", "score", "failed")[1] == (
        "A2",
        None,
        None,
        "No answer within 120 s.",
    )
    assert "A2" not in set(turns(events)["agent"])


async def test_links_give_answers_and_not_numbers_of_beliefs():
    _, events = await debate(*CASE, max_rounds=1)
    columns = ("k", "number", "round", "challenger", "receiver", "challenger_answer", "before", "after", "retained")
    assert rows(links(events), *columns) == [
        (7, 1, 1, "A2", "A1", "2", "1", "1", True),
        (8, 2, 1, "A3", "A1", "3", "1", "3", False),
        (9, 3, 1, "A4", "A1", "4", "3", None, None),
    ]


async def test_columns_and_types_are_the_same_with_and_without_rows():
    _, events = await debate(*CASE, max_rounds=1)
    for table in EVERY:
        assert table(events).dtypes.equals(table(events[:1]).dtypes), table.__name__
    assert list(turns(events[:1]).columns) == list(turns(events).columns)
    assert turns(events)["belief"].dtype == "Int64"
    assert turns(events)["retained"].dtype == "boolean"


def test_what_a_provider_did_not_tell_is_missing_and_not_zero():
    (path,) = SAMPLES.glob("20261201-131852-*.jsonl")
    frame = turns(load(path).events)
    assert frame["cost"].isna().all(), "a local model has no price"
    assert frame["perplexity"].ge(1).all()
    assert frame["min_logprob"].le(0).all()


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_tables_of_real_runs_agree_with_the_totals(path):
    events = load(path).events
    totals = fold(events).totals()
    said = turns(events)
    assert len(said) == totals.calls
    assert int(said["prompt_tokens"].sum() + said["completion_tokens"].sum()) == totals.tokens
    assert len(links(events)) == totals.links
    last = scores(events).tail(len(agents(events))).reset_index(drop=True)
    shared = ["agent", "belief", "answer", "prior", "D", "r", "c", "void", "svr", "score"]
    pd.testing.assert_frame_equal(last[shared], agents(events)[shared])


async def test_half_a_surrogate_pair_does_not_stop_a_table():
    _, events = await debate([("\ud835", 0.9), ("2", 0.8)], max_rounds=0)
    assert set(agents(events)["answer"]) == {"?", "2"}


async def test_a_large_run_is_quick():
    settings = Settings(agents=50, seed=1, quorum=50, tau=1, challengers=20, max_rounds=50)
    events = [e async for e in run("Q?", "svr_mad", SimulatedPanel("simulated/hard"), settings)][:500]
    assert len(events) == 500
    began = time.perf_counter()
    assert len(tables.scores(events)) == 25_000
    assert time.perf_counter() - began < 2
