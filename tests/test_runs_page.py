"""The Runs page by Streamlit's own test harness, and the runner that goes on with interrupted runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import library, runner
from svrmad_core import LiteLLMPanel, Problem, Recorder, RecordingError, Settings, SimulatedPanel, load, run, verify
from svrmad_core.panels import panel_for

ROOT = Path(__file__).parent.parent
KEY = "sk-test-0123456789abcdefghijkl"


async def record(path, panel, question="Which number?", protocol="svr_mad", **settings):
    with Recorder(path) as recorder:
        problem = Problem(question=question, reference="42")
        made = Settings(**{"seed": 3} | settings)
        async for _ in run(problem, protocol, panel, made, recorder=recorder, run_id=path.stem):
            pass
    return path


def cut(path, name, events, age=3600.0):
    """A copy of a recording that breaks off after some events, written to so many seconds ago."""
    lines = path.read_bytes().replace(f'"{path.stem}"'.encode(), f'"{name}"'.encode()).splitlines(keepends=True)
    copy = path.with_name(f"{name}.jsonl")
    copy.write_bytes(b"".join(lines[:events]))
    os.utime(copy, (time.time() - age,) * 2)
    return copy


@pytest.fixture(autouse=True)
def no_jobs():
    """No test sees the jobs of another."""
    yield
    for job in runner.jobs():
        job.stop()
        ended(job)
        runner.forget(job)


@pytest.fixture
async def runs(tmp_path, monkeypatch):
    """Three own runs: one finished, one interrupted, one that asks something else by another protocol."""
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    whole = await record(tmp_path / "whole.jsonl", SimulatedPanel("simulated/hard"))
    cut(whole, "broken-off", 6)
    await record(tmp_path / "other.jsonl", SimulatedPanel("simulated/easy"), "What *else*?", "all_to_all")
    return tmp_path


def ended(job, seconds=30):
    """The job, once it is done."""
    for _ in range(seconds * 50):
        if job.done:
            return job
        time.sleep(0.02)
    raise AssertionError(f"still running at step {job.steps}")


def page(chosen=None, **state):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.switch_page("pages/runs.py")
    if chosen:
        state["runs_chosen"] = chosen
    for name, value in state.items():
        app.session_state[name] = value
    return again(app)


def again(app):
    app.run()
    assert not app.exception
    return app


def listed(app):
    """The runs in the table, from above."""
    return list(app.dataframe[0].value["run"]) if app.dataframe else []


def press(app, label):
    next(b for b in app.button if b.label == label).click()
    return again(app)


def labels(app):
    return [b.label for b in app.button]


def text(app):
    blocks = [e.proto.body for e in app.get("html")]
    said = [*app.error, *app.warning, *app.info, *app.caption, *app.markdown]
    return "\n".join(blocks + [e.value for e in said])


def test_all_runs_are_listed_newest_first_with_what_they_came_to(runs):
    app = page()
    frame = app.dataframe[0].value.set_index("run")
    assert set(listed(app)[:3]) == {"whole", "broken-off", "other"}
    assert len(frame) == 3 + len(list((ROOT / "sample_runs").glob("*.jsonl")))
    row, verdict = frame.loc["whole"], load(runs / "whole.jsonl").events[-1]
    assert (row["answer"], row["ended"]) == (verdict.verdict.answer, verdict.verdict.reason)
    assert (row["links"], row["tokens"]) == (verdict.totals.links, verdict.totals.tokens)
    assert row["right"] == ("✓ right" if verdict.verdict.answer == "42" else "✗ wrong")
    assert list(row["marks"]) == ["simulated"]
    assert row["models"] == "simulated/hard"
    assert frame.loc["broken-off"]["ended"] == "◌ interrupted"
    assert frame.isna().loc["broken-off"][["answer", "right", "links", "tokens"]].all()
    assert f"{len(frame)} of {len(frame)} runs" in text(app)


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ({"runs_search": "WHICH number"}, {"whole", "broken-off"}),
        ({"runs_search": "simulated/easy"}, {"other"}),
        ({"runs_search": "broken-o"}, {"broken-off"}),
        ({"runs_source": ["own"], "runs_ended": ["interrupted"]}, {"broken-off"}),
        ({"runs_source": ["own"], "runs_protocol": ["all_to_all"]}, {"other"}),
        ({"runs_made": ["simulated"]}, {"whole", "broken-off", "other"}),
        ({"runs_made": ["simulated"], "runs_right": ["unknown"]}, {"broken-off"}),
        ({"runs_made": ["simulated"], "runs_right": ["right", "wrong"]}, {"whole", "other"}),
    ],
)
def test_search_and_filters(runs, state, found):
    app = page(**state)
    assert set(listed(app)) == found
    assert f"{len(found)} of" in text(app)


def test_where_nothing_matches_the_filters_can_be_cleared(runs):
    app = page(runs_search="no such words", runs_ended=["vote"])
    assert listed(app) == []
    assert "No run matches" in text(app)
    app = press(app, "Clear all")
    assert {"whole", "broken-off", "other"} < set(listed(app))
    assert "Clear all" not in labels(app)


def test_where_there_is_no_run_the_page_says_how_to_make_one(runs, monkeypatch, tmp_path):
    (tmp_path / "none").mkdir()
    assert "You have no runs yet" not in text(page())
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path / "none"))
    assert "You have no runs yet" in text(page())
    monkeypatch.setattr(library, "SAMPLES", tmp_path / "none")
    app = page()
    assert "You have no runs yet" in text(app)
    assert app.code[0].value.startswith("python -m svrmad_core run")
    assert listed(app) == []


def test_a_chosen_run_can_be_opened_in_replay(runs):
    # which run it is stands in the link, which is the browser's: see tests/browser/test_runs.py
    assert "svr-words" in text(press(page("own/other"), "Open in Replay"))


def test_deleting_asks_first_and_deletes_that_file_only(runs):
    app = press(page("own/other"), "Delete")
    assert "What *else*?" in text(app)
    assert (runs / "other.jsonl").exists()
    app = press(app, "Keep it")
    assert (runs / "other.jsonl").exists()
    press(app, "Delete")
    next(b for b in app.button if b.key == "delete_yes").click()
    app = again(app)
    assert sorted(p.name for p in runs.iterdir()) == ["broken-off.jsonl", "whole.jsonl"]
    assert "other" not in listed(app)


def test_a_sample_run_cannot_be_deleted_or_resumed(runs):
    sample = sorted((ROOT / "sample_runs").glob("*.jsonl"))[0].stem
    app = page(f"sample/{sample}")
    assert "Open in Replay" in labels(app)
    assert "Delete" not in labels(app)
    assert "Resume" not in labels(app)


@pytest.mark.parametrize("name", ["../keep", "/etc/passwd", "..", "", "whole\x00", "nothing", "a/b", "whole.jsonl"])
def test_only_own_runs_can_be_deleted(runs, name):
    (runs.parent / "keep.jsonl").write_text("mine")
    with pytest.raises(RecordingError):
        library.delete_run(name)
    assert (runs.parent / "keep.jsonl").exists()
    assert len(list(runs.iterdir())) == 3


def test_no_sample_run_is_deleted_where_the_folder_of_own_runs_is_that_of_samples(runs, monkeypatch):
    sample = sorted((ROOT / "sample_runs").glob("*.jsonl"))[0]
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(ROOT / "sample_runs"))
    with pytest.raises(RecordingError, match="Sample runs"):
        library.delete_run(sample.stem)
    assert sample.exists()
    assert len(listed(page())) == len(list((ROOT / "sample_runs").glob("*.jsonl")))


def test_the_page_resumes_an_interrupted_run_to_the_same_verdict(runs):
    app = press(page("own/broken-off"), "Resume")
    (job,) = runner.jobs()
    ended(job)
    app = again(app)
    whole, resumed = load(runs / "whole.jsonl"), load(runs / "broken-off.jsonl")
    assert resumed.notices == []
    assert resumed.events[-1].verdict == whole.events[-1].verdict
    assert verify(resumed) is None
    assert f"Finished in {len(resumed.events)} steps" in text(app)
    assert "Resume" not in labels(app)
    app = press(app, "Dismiss")
    assert "Finished in" not in text(app)


def test_a_run_that_may_be_running_elsewhere_is_resumed_only_when_that_is_confirmed(runs):
    path = cut(runs / "whole.jsonl", "fresh", 6, age=2)
    before = path.read_bytes()
    app = press(page("own/fresh"), "Resume")
    assert "may still be running" in text(app)
    assert runner.jobs() == []
    app = press(app, "Wait")
    assert path.read_bytes() == before
    app = press(app, "Resume")
    press(app, "It is not running: resume")
    assert ended(runner.jobs()[0]).verdict is not None


def test_a_model_is_given_longer_to_reply_than_a_simulation(runs):
    path = cut(runs / "whole.jsonl", "slow", 6, age=60)
    assert runner.may_be_running_elsewhere(path, simulated=True) is None
    assert runner.may_be_running_elsewhere(path, simulated=False) == pytest.approx(60, abs=5)


@pytest.mark.parametrize("events", range(1, 9))
def test_a_run_cut_anywhere_goes_on_to_the_same_verdict(runs, events):
    path = cut(runs / "whole.jsonl", "part", events)
    with open(path, "ab") as file:
        file.write(b'{"seq":99,"at')
    job = ended(runner.start(path))
    assert (job.error, job.verdict) == (None, load(runs / "whole.jsonl").events[-1].verdict)
    assert job.steps == len(load(path).events)


def test_a_finished_run_and_a_broken_file_are_one_sentence(runs):
    assert "is finished" in ended(runner.start(runs / "whole.jsonl")).error
    (runs / "bad.jsonl").write_text("hello\n")
    assert "Line 1 is not JSON" in ended(runner.start(runs / "bad.jsonl")).error
    assert "No such file" in ended(runner.start(runs / "nothing.jsonl")).error
    assert (runs / "bad.jsonl").read_text() == "hello\n"


async def interrupted(path, provider, model, **settings):
    """A run of a model that breaks off after its first three answers, and is then another model's."""
    panel = LiteLLMPanel("openai/fake-ok", api_base=provider.base_url)
    whole = await record(path.with_name("asked.jsonl"), panel, agents=5, api_base=provider.base_url, **settings)
    await panel.aclose()
    part = cut(whole, path.stem, 4)
    part.write_bytes(part.read_bytes().replace(b"fake-ok", model.encode()))
    return part


@pytest.mark.parametrize(
    ("model", "says"),
    [("fake-401", "401"), ("fake-402", "no credit"), ("fake-404", "does not know"), ("fake-echo-key", "401")],
)
async def test_a_fault_that_can_be_put_right_leaves_the_run_to_be_resumed(runs, provider, monkeypatch, model, says):
    monkeypatch.setenv("SVRMAD_API_KEY", KEY)
    path = await interrupted(runs / "real.jsonl", provider, model)
    job = ended(runner.start(path), 60)
    assert says in job.error
    assert KEY not in job.error
    assert KEY.encode() not in path.read_bytes()
    left = load(path)
    assert left.interrupted
    assert [e.event for e in left.events[4:]] == ["resumed"]
    assert job.error[:60] in text(page()).replace("&#x27;", "'")
    # put right, it goes on
    path.write_bytes(path.read_bytes().replace(model.encode(), b"fake-ok"))
    job = ended(runner.start(path), 60)
    assert (job.error, load(path).interrupted) == (None, False)


async def test_a_server_that_is_down_leaves_the_run_to_be_resumed(runs, provider):
    path = await interrupted(runs / "real.jsonl", provider, "fake-drop")
    provider_address = provider.base_url.encode()
    path.write_bytes(path.read_bytes().replace(provider_address, b"http://127.0.0.1:9/v1"))
    job = ended(runner.start(path), 60)
    assert job.error
    assert load(path).interrupted


async def test_a_job_is_one_a_run_can_be_stopped_and_only_four_run_at_once(runs, provider):
    first = await interrupted(runs / "real-1.jsonl", provider, "fake-hang")
    paths = [first, *(cut(first.with_name("real-1.jsonl"), f"real-{i}", 4) for i in range(2, 6))]
    jobs = [runner.start(path) for path in paths[:4]]
    assert runner.start(paths[0]) is jobs[0]
    assert runner.job_of(paths[0]) is jobs[0]
    with pytest.raises(runner.CannotStart, match="4 runs are under way"):
        runner.start(paths[4])
    app = press(page("own/real-5"), "Resume")
    assert "4 runs are under way" in text(app)
    app = page("own/real-1")
    assert "Running …" in text(app) or "Starting …" in text(app)
    delete = next(b for b in app.button if b.label == "Delete")
    assert delete.disabled
    next(b for b in app.button if b.label == "Stop" and str(paths[0].resolve()) in b.key).click()
    again(app)
    ended(jobs[0])
    assert jobs[0].verdict.reason == "stopped"
    assert load(paths[0]).notices == []
    assert verify(load(paths[0])) is None
    runner.start(paths[4])


async def test_a_file_that_another_program_writes_meanwhile_is_left_alone(runs, monkeypatch):
    path = cut(runs / "whole.jsonl", "shared", 6)
    lines = (runs / "whole.jsonl").read_bytes().replace(b'"whole"', b'"shared"').splitlines(keepends=True)

    def slowly(models, settings):
        with open(path, "ab") as file:
            file.write(lines[6])
        return panel_for(models, settings)

    monkeypatch.setattr("pages.components.job.panel_for", slowly)
    job = ended(runner.start(path))
    assert "still being written by another program" in job.error
    assert path.read_bytes() == b"".join(lines[:7])


def test_the_box_of_runs_stays_short(runs, monkeypatch):
    data = (runs / "whole.jsonl").read_bytes()
    for i in range(60):
        started = f'"at":"2020-01-01T00:00:{i:02d}.000+00:00"'.encode()
        first, rest = data.split(b"\n", 1)
        first = first.replace(b'"whole"', f'"old-{i:02d}"'.encode())
        first = first[: first.index(b'"at"')] + started + first[first.index(b',"event"') :]
        (runs / f"old-{i:02d}.jsonl").write_bytes(first + b"\n" + rest)
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["run"] = "old-00"
    box = again(app).selectbox[0]
    samples = len(list((ROOT / "sample_runs").glob("*.jsonl")))
    assert len(box.options) == samples + 50 + 1
    assert box.value == "old-00"
    assert "50 newest of 63 own runs" in app.get("page_link")[0].proto.label


def test_the_page_imports_no_litellm_and_no_sympy(runs):
    import subprocess
    import sys

    code = (
        "import sys; from streamlit.testing.v1 import AppTest; app = AppTest.from_file('app.py', default_timeout=60); "
        "app.switch_page('pages/runs.py'); app.run(); assert not app.exception; assert app.dataframe; "
        "print([m for m in ('litellm', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
