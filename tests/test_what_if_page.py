"""What if, on the page, and running on from where the recording cannot tell."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.components import library, runner
from pages.components import what_if as page
from pages.components.policy import Policy
from svrmad_core import Recorder, Settings, SimulatedPanel, load, run, verify, what_if

ROOT = Path(__file__).parent.parent


@pytest.fixture
async def recording(tmp_path, monkeypatch):
    """A simulated run in which somebody is accepted after a debate or more."""
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    for seed in range(50):
        path = tmp_path / f"s{seed}.jsonl"
        with Recorder(path) as recorder:
            panel, chosen = SimulatedPanel("simulated/hard"), Settings(seed=seed)
            async for _ in run("Which?", "svr_mad", panel, chosen, recorder=recorder, run_id=path.stem):
                pass
        end = load(path).events[-1]
        if end.verdict.reason == "accepted" and end.totals.links > 2:
            return load(path)
        path.unlink()
    raise AssertionError("no seed of fifty gave a debate")


def shown(name):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    app.query_params["run"] = name
    app.session_state["open_what_if"] = True
    app.run()
    assert not app.exception
    return app


def text(app):
    return "\n".join(e.value for e in [*app.error, *app.warning, *app.info, *app.success, *app.caption])


def test_moving_a_setting_tells_where_the_run_departs(recording):
    app = shown(recording.run_id)
    assert "Nothing is invented" in text(app)
    app.segmented_control(key="if_accept").set_value("debate").run()
    assert not app.exception
    assert "the protocol would stop with" in text(app).replace("\\", "")
    assert [m.label for m in app.metric] == ["As recorded", "With these settings"]


def test_where_the_recording_cannot_tell_it_says_so_and_offers_to_run_on(recording):
    app = shown(recording.run_id)
    app.slider(key="if_tau").set_value(1.0).run()
    assert "the recording cannot tell" in text(app)
    app.button(key="if_go_on").click().run()
    assert not app.exception
    branch = app.session_state["branch"]
    _done(branch)
    made = load(recording.path.parent / f"{branch}.jsonl")
    assert made.started.parent == recording.run_id
    assert made.started.settings.tau == 1.0
    assert made.started.simulated
    assert verify(made) is None
    assert made.events[-1].event == "run_finished"


def _done(branch):
    for _ in range(200):
        if all(job.done for job in runner.jobs() if job.run_id == branch):
            return
        time.sleep(0.05)
    raise AssertionError("the branch does not end")


def test_an_opened_file_does_not_choose_whom_a_key_is_sent_to(recording):
    data = recording.path.read_bytes().replace(b'"simulated/hard"', b'"openai/gpt"')
    name = library.keep_upload(data)
    app = shown(name)
    app.slider(key="if_tau").set_value(1.0).run()
    assert "the recording cannot tell" in text(app)
    assert "An opened file is not run on from here" in text(app).replace("\\", "")
    assert not [b for b in app.button if b.key == "if_go_on"]


def test_a_branch_begins_with_the_recorded_replies_and_pays_for_none_again(recording):
    found = what_if(recording.events, tau=1.0)
    branch = page.begin_branch(recording, found, Policy())
    _done(branch)
    made = load(recording.path.parent / f"{branch}.jsonl")
    kept = [e.turn.reply for e in found.events if getattr(e, "turn", None)]
    replies = [e.turn.reply for e in made.events if getattr(e, "turn", None)]
    assert replies[: len(kept)] == kept
    assert len(replies) > len(kept)
