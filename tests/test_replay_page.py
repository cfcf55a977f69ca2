"""The Replay page, run by Streamlit's own test harness."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from svrmad_core import Recorder, Settings, SimulatedPanel, run

ROOT = Path(__file__).parent.parent


@pytest.fixture
async def runs(tmp_path, monkeypatch):
    """A folder with one own run that is simulated, and one that was interrupted."""
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path))
    monkeypatch.chdir(ROOT)
    with Recorder(tmp_path / "mine.jsonl") as recorder:
        async for _ in run(
            "Which?", "svr_mad", SimulatedPanel("simulated/hard"), Settings(seed=3), recorder=recorder, run_id="mine"
        ):
            pass
    lines = (tmp_path / "mine.jsonl").read_bytes().replace(b'"mine"', b'"cut"').splitlines(keepends=True)
    (tmp_path / "cut.jsonl").write_bytes(b"".join(lines[:6]))
    return tmp_path


def page(**link):
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    return app


def text(app):
    """All that the page says in HTML blocks and messages."""
    blocks = [e.proto.body for e in app.get("html")]
    return "\n".join(blocks + [e.value for e in [*app.error, *app.warning, *app.info]])


def test_the_link_names_run_and_step(runs):
    app = page(run="mine", step="2")
    assert "A1 answers" in text(app)
    assert "simulated: no model was asked" in text(app)


def test_without_a_link_a_run_is_shown(runs):
    assert "svr-words" in text(page())


@pytest.mark.parametrize("step", ["999999999999", "-1", "x", "²", "0", ""])
def test_a_step_that_is_none_is_taken_sensibly(runs, step):
    assert "svr-words" in text(page(run="mine", step=step))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nothing-like-it", "There is no run named nothing-like-it"),
        ("../../etc/passwd", "does not name a run"),
        ("/etc/passwd", "does not name a run"),
        ("..", "does not name a run"),
        ("mine\x00", "does not name a run"),
        ("<script>alert(1)</script>", "does not name a run"),
        ("upload-0123456789", "no longer here"),
    ],
)
def test_a_link_to_no_run_is_refused_with_a_sentence(runs, name, says):
    app = page(run=name)
    assert [says in e.value for e in app.error] == [True]
    assert "svr-words" not in text(app)


def test_an_interrupted_run_says_so(runs):
    app = page(run="cut")
    assert any("interrupted" in w.value for w in app.warning)


def test_the_reference_is_hidden_until_it_is_revealed(runs):
    app = page(run="mine")
    assert "reference answer:" not in text(app)


def test_a_broken_recording_is_one_sentence(runs):
    (runs / "bad.jsonl").write_text("hello\n")
    app = page(run="bad")
    assert ["Line 1 is not JSON" in e.value for e in app.error] == [True]


def test_own_runs_are_in_the_list(runs):
    options = page().selectbox[0].options
    assert any("Which?" in o and "simulated" in o for o in options)
    assert any("Which?" in o and "interrupted" in o for o in options)


def test_a_page_that_shows_a_recording_imports_no_litellm(runs):
    import subprocess
    import sys

    code = (
        "import sys; from streamlit.testing.v1 import AppTest; app = AppTest.from_file('app.py', default_timeout=60); "
        "app.query_params['run'] = 'mine'; app.run(); assert not app.exception; "
        "print([m for m in ('litellm', 'sympy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("agents", [2, 25, 50])
@pytest.mark.parametrize("protocol", ["svr_mad", "all_to_all", "self_consistency"])
async def test_any_run_can_be_inspected(runs, protocol, agents):
    with Recorder(runs / "any.jsonl") as recorder:
        panel, chosen = SimulatedPanel("simulated/hard"), Settings(agents=agents, seed=5, tau=1.0)
        async for _ in run("Which?", protocol, panel, chosen, recorder=recorder, run_id="any"):
            pass
    last = len((runs / "any.jsonl").read_bytes().splitlines())
    app = page(run="any", step=str(last), agent="A2")
    for k in (1, 2, agents + 1, last // 2 + 1):
        app.query_params["step"] = str(k)
        app.run()
        assert not app.exception
        assert "svr-words" in text(app)
    for view in ("slope", "flow"):
        app.segmented_control(key="view").set_value(view).run()
        assert not app.exception
    app.toggle(key="grouped").set_value(True).run()
    assert not app.exception
    assert "The turns of A2" in "\n".join(m.value for m in app.markdown)
