"""The recordings that ship: real, whole, as the protocol decided, paired, and without anything private."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from svrmad_core import load, same_answer, verify
from svrmad_core.comparison import compare, families
from svrmad_core.protocols import VARIANTS
from svrmad_core.recording import list_runs

FOLDER = Path(__file__).parent.parent / "sample_runs"
FILES = sorted(FOLDER.glob("*.jsonl"))
README = (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_sample_run(path):
    recording = load(path)
    assert recording.notices == []
    assert verify(recording) is None
    assert not recording.started.simulated
    assert recording.started.problem.reference
    assert recording.run_id in README
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"sk-[A-Za-z0-9]|Bearer|api_key", text)
    # no path of the machine it was made on: of its folders, its home, or its files for a moment
    private = (FOLDER.parent.parent, Path.home(), Path(tempfile.gettempdir()))
    assert not any(f"{folder}/" in text for folder in private if folder != Path("/"))


def test_every_question_has_a_run_of_every_method_from_the_same_initial_answers():
    for root, members in families(list_runs(FOLDER)).items():
        assert {info.method for info in members} == set(VARIANTS), root
        rows = compare([load(info.path).events for info in members])
        assert len(rows) == len(VARIANTS)
        assert all(row.tokens_ratio is not None for row in rows)


def test_the_cases_are_there_and_each_has_its_all_to_all_replay():
    runs = list_runs(FOLDER)
    svr_mad = [r for r in runs if r.parent is None]
    paired = {r.parent for r in runs if r.protocol == "all_to_all"}
    assert {r.run_id for r in svr_mad} == paired
    reasons = {}
    for info in svr_mad:
        right = same_answer(info.verdict.answer, load(info.path).started.problem.reference)
        reasons.setdefault((info.verdict.reason, right), []).append(info.run_id)
    assert ("consensus", True) in reasons
    assert ("accepted", True) in reasons
    assert ("accepted", False) in reasons
    assert any(reason == "vote" for reason, _ in reasons)
