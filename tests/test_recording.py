"""Recordings: what loads with a notice, what is refused with a sentence, and what verify finds."""

from __future__ import annotations

import json
import os

import pytest

import svrmad_core.recording as recording_module
from svrmad_core import Problem, Recorder, RecordingError, Settings, SimulatedPanel, load, resume, run, verify
from svrmad_core.recording import list_runs, read_info

PANEL = SimulatedPanel("simulated/hard")


@pytest.fixture
async def recorded(tmp_path):
    """A finished run's file."""
    path = tmp_path / "run-1.jsonl"
    with Recorder(path) as recorder:
        async for _ in run("Q?", "svr_mad", PANEL, Settings(seed=2), recorder=recorder, run_id="run-1"):
            pass
    return path


async def test_a_whole_recording_loads_without_notice(recorded):
    recording = load(recorded)
    assert (recording.notices, recording.interrupted, recording.run_id) == ([], False, "run-1")
    assert load(recorded.read_bytes()).events == recording.events


async def test_unknown_fields_are_kept(recorded):
    lines = recorded.read_text().splitlines()
    first = json.loads(lines[0]) | {"colour": "blue"}
    data = "\n".join([json.dumps(first), *lines[1:]]).encode()
    assert load(data).events[0].colour == "blue"


async def test_a_byte_order_mark_is_a_notice(recorded):
    recording = load(b"\xef\xbb\xbf" + recorded.read_bytes())
    assert len(recording.notices) == 1
    assert "byte-order mark" in recording.notices[0]


async def test_windows_line_ends_load(recorded):
    assert load(recorded.read_bytes().replace(b"\n", b"\r\n")).notices == []


async def test_a_truncated_last_line_is_a_notice_and_the_run_goes_on(recorded):
    data = recorded.read_bytes()
    for cut in (len(data) - 1, len(data) - 40, data.rstrip().rfind(b"\n") - 5):
        recorded.write_bytes(data[:cut])
        recording = load(recorded)
        whole = cut == len(data) - 1
        assert recording.interrupted != whole
        if whole:
            continue
        assert any("cut off" in n for n in recording.notices)
        assert any("interrupted" in n for n in recording.notices)
        with Recorder(recorded, keep=recording.good_bytes) as recorder:
            async for _ in resume(recording, PANEL, recorder=recorder):
                pass
        again = load(recorded)
        assert (again.notices, again.interrupted) == ([], False)
        assert verify(again) is None


async def test_a_run_cut_at_a_line_end_without_its_newline_goes_on(recorded):
    lines = recorded.read_bytes().splitlines()
    recorded.write_bytes(b"\n".join(lines[:5]))
    recording = load(recorded)
    assert len(recording.events) == 5
    with Recorder(recorded, keep=recording.good_bytes) as recorder:
        async for _ in resume(recording, PANEL, recorder=recorder):
            pass
    assert load(recorded).events[-1].event == "run_finished"


def change(line, **fields):
    return lambda lines: [*lines[:line], json.dumps(json.loads(lines[line]) | fields), *lines[line + 1 :]]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda lines: [], "empty"),
        (lambda lines: ["hello"], "Line 1 is not JSON"),
        (lambda lines: ["[1, 2]"], "Line 1 is no event"),
        (lambda lines: lines[1:], "Line 1 should be run_started"),
        (lambda lines: [*lines[:3], "{broken", *lines[3:]], "Line 4 is broken"),
        (change(0, schema=2), "schema 2"),
        (change(2, event="danced"), "Line 3: unknown event 'danced'"),
        (change(2, agent="A77"), "Line 3 cannot follow: there is no agent 'A77'"),
        (change(2, seq=9), "Line 3: event number 9"),
        (change(2, belief=55), "Line 3 cannot follow: belief 55"),
        (change(1, turn={"reply": 5}), "Line 2 (answered): turn.reply"),
        (change(0, run_id="../../etc/passwd"), "Line 1 (run_started): run_id"),
        (change(0, agents=[]), "Line 1 (run_started)"),
        (
            lambda lines: [*lines, lines[-1].replace(f'"seq":{len(lines) - 1}', f'"seq":{len(lines)}')],
            "after run_finished",
        ),
    ],
)
async def test_what_is_refused_with_one_sentence(recorded, spoil, says):
    lines = recorded.read_text().splitlines()
    with pytest.raises(RecordingError) as caught:
        load("\n".join(spoil(lines)).encode())
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"\x00\xff\xfe", b"[" * 100_000, b'{"event": "run_started"}', b"\n\n\n", b'"x"'])
def test_hostile_bytes_are_refused(data):
    with pytest.raises(RecordingError):
        load(data)


def test_not_a_number_is_refused(tmp_path):
    with pytest.raises(RecordingError, match="Line 1"):
        load(b'{"event": "run_started", "seq": 0, "schema": 1, "run_id": "x", "settings": {"tau": NaN}}')


def test_a_missing_file_and_a_folder(tmp_path):
    with pytest.raises(RecordingError, match="There is no recording 'nothing'"):
        load(tmp_path / "nothing")
    with pytest.raises(RecordingError, match="is a folder"):
        load(tmp_path)


async def test_a_recorder_never_overwrites(recorded):
    with pytest.raises(FileExistsError):
        Recorder(recorded)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda e: e.model_copy(update={"challengers": list(reversed(e.challengers))}), "is challenged by"),
        (lambda e: e.model_copy(update={"ranking": e.ranking[1:]}), "the ranking is not the protocol's"),
    ],
)
async def test_verify_names_the_event_where_a_recording_departs(recorded, spoil, says):
    events = list(load(recorded).events)
    at = next(i for i, e in enumerate(events) if e.event == "receiver_chosen")
    events[at] = spoil(events[at])
    departure = verify(events)
    assert departure.seq == at
    assert says in departure.message


async def test_verify_finds_another_tau_and_another_verdict(recorded):
    events = list(load(recorded).events)
    other = events[0].settings.model_copy(update={"tau": 1.0, "challengers": 1})
    assert verify([events[0].model_copy(update={"settings": other}), *events[1:]]) is not None
    verdict = events[-1].verdict.model_copy(update={"answer": "nonsense"})
    assert verify([*events[:-1], events[-1].model_copy(update={"verdict": verdict})]).seq == len(events) - 1


async def test_the_list_of_runs_reads_heads_and_tails(recorded, tmp_path):
    (tmp_path / "notes.jsonl").write_text("not a run\n")
    (tmp_path / "broken.jsonl").write_bytes(b"\xff\x00")
    cut = recorded.read_bytes().splitlines()[:4]
    (tmp_path / "run-2.jsonl").write_bytes(b"\n".join(cut).replace(b'"run-1"', b'"run-2"'))
    found = {info.run_id: info for info in list_runs(tmp_path)}
    assert set(found) == {"run-1", "run-2"}
    assert found["run-1"].totals.links >= 0
    assert found["run-2"].verdict is None
    assert found["run-1"].simulated


async def test_the_list_tells_what_a_row_shows(tmp_path):
    problem = Problem(question="Q?", reference="42")
    with Recorder(tmp_path / "run-1.jsonl") as recorder:
        async for _ in run(problem, "svr_mad", PANEL, Settings(seed=2), recorder=recorder, run_id="run-1"):
            pass
    info = read_info(tmp_path / "run-1.jsonl")
    recording = load(tmp_path / "run-1.jsonl")
    assert (info.reference, info.kind, info.steps) == ("42", "math", len(recording.events))
    assert info.right is (recording.events[-1].verdict.answer == "42")
    assert not info.interrupted


def with_verdict(data, answer, reference, reason="vote", kind="math"):
    """A finished recording with another verdict and another reference."""
    first, *between, last = (json.loads(line) for line in data.splitlines())
    first["problem"] |= {"reference": reference, "kind": kind}
    last["verdict"] |= {"answer": answer, "reason": reason}
    return "\n".join(json.dumps(event) for event in (first, *between, last)).encode() + b"\n"


@pytest.mark.parametrize(
    ("answer", "reference", "reason", "kind", "right"),
    [
        ("1/2", "0.5", "vote", "math", True),
        ("0.4", "0.5", "vote", "math", False),
        ("(b)", "B", "accepted", "choice", True),
        ("Paris", "paris.", "consensus", "text", True),
        (None, "5", "no_answer", "math", False),
        (None, "5", "stopped", "math", None),
        ("5", None, "vote", "math", None),
        (r"\frac{\sin x}{\cos x}", r"\tan x", "vote", "math", None),
    ],
)
async def test_right_or_wrong_where_it_is_told_at_once(recorded, answer, reference, reason, kind, right):
    recorded.write_bytes(with_verdict(recorded.read_bytes(), answer, reference, reason, kind))
    assert read_info(recorded).right is right


async def test_steps_count_whole_events_only(recorded):
    lines = recorded.read_bytes().splitlines(keepends=True)
    for data, steps in (
        (b"".join(lines), len(lines)),
        (b"".join(lines[:4]), 4),
        (b"".join(lines[:4]).rstrip(), 4),
        (b"".join(lines[:4]) + lines[4][:30], 4),
        (b"".join(lines[:4]) + b'{"se', None),
        (lines[0], 1),
    ):
        recorded.write_bytes(data)
        assert read_info(recorded).steps == steps


@pytest.mark.parametrize("size", [20_000, 200_000])
async def test_long_questions_and_long_replies_are_listed(recorded, size):
    first, second, *rest = (json.loads(line) for line in recorded.read_bytes().splitlines())
    first["problem"]["question"] = "q" * min(size, 50_000)
    second["turn"]["reply"] = "r" * size
    recorded.write_text("\n".join(json.dumps(event) for event in (first, second)))
    info = read_info(recorded)
    assert (len(info.question), info.steps, info.interrupted) == (min(size, 50_000), 2, True)
    recorded.write_text("\n".join(json.dumps(event) for event in (first, second, *rest)))
    assert read_info(recorded).steps == 2 + len(rest)


async def test_only_what_changed_is_read_again(recorded, tmp_path, monkeypatch):
    for i in range(2, 6):
        data = recorded.read_bytes().replace(b'"run-1"', f'"run-{i}"'.encode())
        (tmp_path / f"run-{i}.jsonl").write_bytes(data)
    (tmp_path / "garbage.jsonl").write_text("no run\n")
    read = []
    monkeypatch.setattr(recording_module, "read_info", lambda path: read.append(path.name) or read_info(path))
    assert len(list_runs(tmp_path)) == 5
    assert len(read) == 6
    assert len(list_runs(tmp_path)) == 5
    assert len(read) == 6
    read.clear()
    lines = (tmp_path / "run-3.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "run-3.jsonl").write_bytes(b"".join(lines[:4]))
    (tmp_path / "run-4.jsonl").unlink()
    assert {i.run_id: i.interrupted for i in list_runs(tmp_path)} == {
        "run-1": False,
        "run-2": False,
        "run-3": True,
        "run-5": False,
    }
    assert read == ["run-3.jsonl"]


async def test_what_only_has_a_recordings_name_is_left_out(recorded, tmp_path):
    (tmp_path / "folder.jsonl").mkdir()
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "dangling.jsonl").symlink_to(tmp_path / "nothing")
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    (tmp_path / "other-name.jsonl").write_bytes(recorded.read_bytes())
    newer = recorded.read_bytes().replace(b'"schema":1', b'"schema":2').replace(b'"run-1"', b'"newer"')
    (tmp_path / "newer.jsonl").write_bytes(newer)
    broken_end = recorded.read_bytes().replace(b'"run-1"', b'"odd"').replace(b'"reason":"', b'"reason":"x')
    (tmp_path / "odd.jsonl").write_bytes(broken_end)
    found = {info.run_id: info for info in list_runs(tmp_path)}
    assert set(found) == {"run-1", "odd"}
    assert found["odd"].interrupted
    assert list_runs(tmp_path / "nowhere") == []
