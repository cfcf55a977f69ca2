"""Paired runs beside each other."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from svrmad_core import Problem, Recorder, Settings, SimulatedPanel, run
from svrmad_core.comparison import (
    NotPaired,
    at_round,
    at_tokens,
    changed_minds,
    check_paired,
    compare,
    course,
    families,
    family_of,
    parting,
    shared_beliefs,
)
from svrmad_core.protocols import VARIANTS
from svrmad_core.recording import list_runs
from tests.scripted import ScriptedPanel, debate

PROBLEM = Problem(question="What is 6 * 7?", reference="42")


def paired(parent: list[Any], key: str, panel: Any, run_id: str, recorder: Any = None) -> list[Any]:
    variant = VARIANTS[key]
    settings = parent[0].settings.model_copy(update=dict(variant.settings))

    async def collect() -> list[Any]:
        made = run(
            parent[0].problem, variant.protocol, panel, settings, run_id=run_id, parent=parent, recorder=recorder
        )
        return [e async for e in made]

    return asyncio.run(collect())


def first(key: str = "svr_mad", seed: int = 3, run_id: str = "root", recorder: Any = None) -> list[Any]:
    async def collect() -> list[Any]:
        made = run(
            PROBLEM, key, SimulatedPanel("simulated/hard"), Settings(seed=seed), run_id=run_id, recorder=recorder
        )
        return [e async for e in made]

    return asyncio.run(collect())


def test_a_row_a_protocol_with_the_ratio_to_all_to_all():
    parent = first()
    runs = [parent] + [paired(parent, key, SimulatedPanel("simulated/hard"), key.replace(":", "-")) for key in VARIANTS]
    rows = compare(runs)
    assert [r.method for r in rows] == sorted([*VARIANTS, "svr_mad"], key=list(VARIANTS).index)
    by = {r.method: r for r in rows}
    base = by["all_to_all"]
    assert (base.tokens_ratio, base.links_ratio) == (1.0, 1.0)
    for r in rows:
        assert r.tokens == r.prompt_tokens + r.completion_tokens
        assert r.tokens_ratio == pytest.approx(r.tokens / base.tokens, abs=1e-4)
    assert by["self_consistency"].links_ratio == 0.0
    assert by["self_consistency"].calls == 6, "the shared initial answers are counted in every row"
    assert by["svr_mad:prior"].title == "SVR-MAD, score frozen at the prior"


def test_the_wall_clock_of_a_replay_includes_the_initial_answers_it_took_over():
    parent = first()
    replay = paired(parent, "self_consistency", SimulatedPanel("simulated/hard"), "sc")
    slowest = max(e.turn.latency for e in parent if e.event == "answered")
    assert compare([replay])[0].seconds >= slowest


def test_without_all_to_all_there_is_no_ratio_and_without_a_reference_nothing_is_right():
    _, events = asyncio.run(debate(["1", "2"]))
    only = compare([events])[0]
    assert (only.tokens_ratio, only.links_ratio, only.right) == (None, None, None)


def test_different_questions_are_refused_in_a_sentence():
    one = first()
    other = asyncio.run(_other_question())
    with pytest.raises(NotPaired, match="answer different questions"):
        compare([one, other])


async def _other_question() -> list[Any]:
    return [e async for e in run("Another?", "svr_mad", SimulatedPanel("simulated/hard"), Settings(seed=3))]


def test_the_same_question_from_other_answers_is_refused_in_a_sentence():
    with pytest.raises(NotPaired, match="different initial answers"):
        check_paired(first(seed=3), first(seed=4))


def test_nothing_to_compare():
    with pytest.raises(NotPaired):
        compare([])


def test_the_gate_that_asked_one_agent_is_still_paired():
    parent = first()
    gate = paired(parent, "sid_et:gate_first", SimulatedPanel("simulated/hard"), "gate")
    check_paired(parent, gate)


def test_a_family_goes_back_to_one_run_however_long_the_chain(tmp_path):
    panel = SimulatedPanel("simulated/hard")
    with Recorder(tmp_path / "root.jsonl") as recorder:
        root = first(recorder=recorder)
    with Recorder(tmp_path / "child.jsonl") as recorder:
        child = paired(root, "all_to_all", panel, "child", recorder)
    with Recorder(tmp_path / "grandchild.jsonl") as recorder:
        paired(child, "sparse", panel, "grandchild", recorder)
    with Recorder(tmp_path / "stranger.jsonl") as recorder:
        first(seed=9, run_id="stranger", recorder=recorder)
    found = families(list_runs(tmp_path))
    assert {root: [i.run_id for i in members] for root, members in found.items()} == {
        "root": ["root", "grandchild", "child"],
        "stranger": ["stranger"],
    }
    assert [e[0].run_id for e in family_of(child, [tmp_path])] == ["child", "grandchild", "root"]


def test_the_cursor_by_round_and_by_tokens():
    _, events = asyncio.run(debate(["1", "2", "3"], protocol="all_to_all"))
    points = course(events)
    assert [p.tokens for p in points[:4]] == [0, 150, 300, 450]
    assert (points[-1].links, points[-1].round) == (12, 2)
    # run_started, three answers: after step 4 everybody has answered
    assert (at_round(points, 0), at_round(points, 1), at_round(points, 9)) == (4, 7, len(events))
    assert [at_tokens(points, budget) for budget in (0, 149, 150, 450, 599, 10**9)] == [1, 1, 2, 4, 4, len(events)]


def test_where_two_runs_part_and_who_changed_in_one_alone():
    _, one = asyncio.run(debate(["1", "2", "2"], {("A1", "A2"): "2"}, quorum=4, max_rounds=1))
    two = paired(one, "all_to_all", ScriptedPanel(["1", "2", "2"], {("A3", 1): "1"}), "two")
    found = parting(one, two)
    assert (found.round, found.agent, found.one, found.two) == (1, "A1", "2", "1")
    assert changed_minds(one, two) == (["A1"], ["A3"])
    assert parting(one, one) is None


def test_the_command(cli_compare):
    code, out, err = cli_compare("root", "--json")
    found = json.loads(out)
    assert (code, err, found["reference"]) == (0, "", "42")
    assert [r["method"] for r in found["rows"]] == ["svr_mad", "all_to_all", "sparse"]
    assert set(found["rows"][0]) >= {
        *("answer", "right", "links", "calls", "prompt_tokens", "completion_tokens", "cost", "rounds", "seconds"),
        *("critical_path", "tokens_ratio", "links_ratio"),
    }
    code, out, _ = cli_compare("root")
    assert out.splitlines()[1].split()[:3] == ["protocol", "answer", "right"]
    assert "Simulated" in out


def test_the_command_refuses_what_is_not_paired(cli_compare):
    code, out, err = cli_compare("root", "stranger", "--json")
    assert (code, out) == (2, "")
    assert "different initial answers" in err
    assert err.count("\n") == 1


@pytest.fixture
def cli_compare(tmp_path, monkeypatch, capsys):
    from svrmad_core.cli import main

    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path))
    with Recorder(tmp_path / "root.jsonl") as recorder:
        root = first(recorder=recorder)
    for key in ("all_to_all", "sparse"):
        with Recorder(tmp_path / f"{key}.jsonl") as recorder:
            paired(root, key, SimulatedPanel("simulated/hard"), key, recorder)
    with Recorder(tmp_path / "stranger.jsonl") as recorder:
        first(seed=9, run_id="stranger", recorder=recorder)

    def call(*args: str) -> tuple[int, str, str]:
        try:
            code = main(["compare", *args])
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_one_answer_has_one_number_in_both_runs():
    _, one = asyncio.run(debate(["1", "2", "2"], {("A1", "A2"): "7"}, quorum=4, max_rounds=1))
    two = paired(one, "all_to_all", ScriptedPanel(["1", "2", "2"], {("A1", 1): "8", ("A2", 1): "7.0"}), "two")
    numbers, answers = shared_beliefs(one, two)
    assert answers == ["1", "2", "7", "8"]
    assert numbers == [0, 1, 3, 2], "7 is 7.0, and 8 is new"
