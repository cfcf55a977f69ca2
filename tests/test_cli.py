"""The command line: what it prints, its exit codes, one line for each error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import networkx as nx
import pytest

from svrmad_core import load
from svrmad_core.cli import main
from svrmad_core.export import find_browser

ROOT = Path(__file__).parents[1]
WITHOUT_PYTHONPATH = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture
def cli(tmp_path, monkeypatch, capsys):
    """Run a command in an empty folder; returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SVRMAD_RUNS_DIR", raising=False)

    def call(*args):
        try:
            code = main([str(a) for a in args])
        except SystemExit as leaving:
            code = leaving.code
        out, err = capsys.readouterr()
        return code, out, err

    return call


def recorded(cli, *more, seed=2):
    code, out, _ = cli("run", "Q?", "--model", "simulated/hard", "--seed", seed, "--json", *more)
    return code, json.loads(out)


def test_run_prints_the_verdict_and_records(cli, tmp_path):
    code, out, err = cli("run", "What is 6 * 7?", "--model", "simulated/easy", "--seed", "1")
    assert code == 0
    for word in ("answer", "reason", "links", "calls", "tokens", "cost", "recording"):
        assert any(line.startswith(word) for line in out.splitlines())
    assert "A1 answers" in err
    (path,) = (tmp_path / "runs").glob("*.jsonl")
    assert load(path).started.simulated
    assert str(path.relative_to(tmp_path)) in out


def test_run_json_is_one_object_on_stdout(cli, tmp_path):
    code, summary = recorded(cli, "--out", tmp_path / "elsewhere")
    assert code == 0
    assert list(summary) == [
        "answer",
        "reason",
        "agent",
        "votes",
        "links",
        "calls",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "rounds",
        "recording",
    ]
    assert load(summary["recording"]).path.parent == tmp_path / "elsewhere"


def test_the_environment_names_the_folder(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("SVRMAD_RUNS_DIR", str(tmp_path / "env"))
    _, summary = recorded(cli)
    assert load(summary["recording"]).path.parent == tmp_path / "env"


def test_every_option_reaches_the_settings(cli):
    _, summary = recorded(
        cli,
        *("--agents", 4, "--challengers", 2, "--tau", 0.7, "--quorum", 3, "--prior", "perplexity"),
        *(
            "--prior-scale",
            "rank",
            "--round-mode",
            "parallel",
            "--memory",
            "last",
            "--accept-after",
            "debate",
        ),
        *(
            "--max-rounds",
            2,
            "--max-links",
            9,
            "--max-tokens-total",
            9999,
            "--max-cost",
            1,
            "--score",
            "beta",
        ),
        *("--temperature", 0.3, "--max-tokens", 77, "--timeout", 5, "--kind", "text", "--reference", "Paris"),
    )
    started = load(summary["recording"]).started
    s = started.settings
    assert (s.agents, s.challengers, s.tau, s.quorum, s.prior, s.prior_scale) == (
        4,
        2,
        0.7,
        3,
        "perplexity",
        "rank",
    )
    assert (s.round_mode, s.memory, s.accept_after, s.score) == ("parallel", "last", "debate", "beta")
    assert (s.max_rounds, s.max_links, s.max_tokens_total, s.max_cost) == (2, 9, 9999, 1.0)
    assert (s.temperature, s.max_tokens, s.timeout, s.seed) == (0.3, 77, 5.0, 2)
    assert (started.problem.kind, started.problem.reference) == ("text", "Paris")


def test_choices_imply_the_kind(cli):
    _, summary = recorded(cli, "--choices", "red", "green", "blue", "--reference", "B")
    problem = load(summary["recording"]).started.problem
    assert (problem.kind, problem.choices) == ("choice", ["red", "green", "blue"])


def test_replay_is_paired(cli):
    _, summary = recorded(cli)
    parent = load(summary["recording"])
    code, out, _ = cli("replay", parent.run_id, "--protocol", "all_to_all", "--json")
    assert code == 0
    child = load(json.loads(out)["recording"])
    assert child.started.parent == parent.run_id
    turns = [[e.turn for e in r.events if e.event == "answered"] for r in (parent, child)]
    assert turns[0] == turns[1]


def test_show_a_step(cli):
    _, summary = recorded(cli)
    code, out, _ = cli("show", summary["recording"], "--step", 3, "--json")
    state = json.loads(out)
    assert (code, state["step"], state["verdict"]) == (0, 3, None)
    assert [a["answer"] is None for a in state["agents"]] == [False, False, True, True, True, True]
    assert set(state["agents"][0]) >= {"answer", "prior", "D", "r", "c", "SVR", "score"}
    code, out, _ = cli("show", summary["recording"])
    assert code == 0
    assert "verdict:" in out


def test_verify(cli, tmp_path):
    _, summary = recorded(cli)
    assert cli("verify", summary["recording"])[0] == 0
    text = load(summary["recording"]).path.read_text()
    spoiled = tmp_path / "spoiled.jsonl"
    spoiled.write_text(text.replace('"tau":0.5', '"tau":-1.0').replace('"challengers":3', '"challengers":1', 1))
    code, out, err = cli("verify", spoiled)
    assert (code, out) == (1, "")
    assert "departs at event" in err
    assert err.count("\n") == 1


def test_resume_goes_on(cli):
    _, summary = recorded(cli)
    path = load(summary["recording"]).path
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6][:20])
    code, out, _ = cli("resume", path, "--json")
    again = json.loads(out)
    assert code == 0
    assert again["answer"] == summary["answer"]
    assert again["calls"] == summary["calls"]
    assert cli("verify", path)[0] == 0


WRONG = [
    (["run", "Q?"], "say who answers"),
    (["run"], "required: QUESTION"),
    (["run", "Q?", "--model", "simulated/nobody"], "no simulated panel"),
    (["run", "Q?", "--model", "simulated/hard", "--model", "openai/x"], "cannot share a run"),
    (["run", "Q?", "--model", "simulated/hard", "--tau", "5"], "tau"),
    (["run", "Q?", "--model", "simulated/hard", "--agents", "0"], "agents"),
    (["run", "", "--model", "simulated/hard"], "question"),
    (["run", "Q?", "--model", "simulated/hard", "--choices", "one"], "at least two options"),
    (["run", "Q?", "--model", "openai/x", "--api-base", "ftp://x"], "http"),
    (["show", "nothing"], "no recording 'nothing'"),
    (["replay", "../../etc/passwd"], "no recording"),
    (["resume", "nothing"], "no recording"),
    (["export", "nothing", "--to", "csv", "out"], "no recording"),
    (["export", "nothing", "out"], "required: --to"),
    (["export", "nothing", "--to", "docx", "out"], "invalid choice"),
    (["export", "nothing", "--to", "csv"], "required: OUT"),
    (["export", "nothing", "--to", "csv", "out", "--picture", "flow"], "--picture is for png and svg"),
    (["export", "nothing", "--to", "graphml", "out", "--dark"], "--dark is for html, png and svg"),
    (["export", "nothing", "--to", "html", "out", "--step", "3"], "--step is not for html"),
    (["dance"], "invalid choice"),
]


@pytest.mark.parametrize(("args", "says"), WRONG)
def test_wrong_use_is_one_line_and_exit_code_2(cli, args, says):
    code, out, err = cli(*args)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_a_step_outside_the_run(cli):
    _, summary = recorded(cli)
    code, _, err = cli("show", summary["recording"], "--step", 999)
    assert code == 2
    assert "steps 1 to" in err


def test_resume_of_a_finished_run(cli):
    _, summary = recorded(cli)
    code, _, err = cli("resume", summary["recording"])
    assert code == 2
    assert "finished" in err


@pytest.mark.parametrize("command", ["run", "replay", "resume", "show", "verify", "export"])
def test_each_command_has_help(cli, command):
    code, out, _ = cli(command, "--help")
    assert code == 0
    assert command in out


def test_opening_a_recording_imports_no_litellm(cli):
    _, summary = recorded(cli)
    code = (
        "import sys; from svrmad_core.cli import main; "
        f"main(['show', {summary['recording']!r}]); "
        "print([m for m in ('litellm', 'sympy', 'pandas', 'streamlit', 'plotly') if m in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_money_budget_needs_a_price(cli):
    code, _, err = cli("run", "Q?", "--model", "openai/x", "--api-base", "http://127.0.0.1:9/v1", "--max-cost", 1)
    assert code == 2
    assert "no known price for openai/x; use --max-tokens-total" in err


def test_a_real_provider_from_the_command_line(cli, provider):
    provider.latency = 0.01
    args = ("--api-base", provider.base_url, "--seed", 1, "--agents", 4)
    code, out, err = cli(
        "run", "Which number?", "--model", "openai/fake-ok", "--model", "openai/fake-nologprobs", *args
    )
    assert code == 0, err
    (path,) = [line.split()[-1] for line in out.splitlines() if line.startswith("recording")]
    recording = load(path)
    assert [a.model for a in recording.started.agents] == ["openai/fake-ok", "openai/fake-nologprobs"] * 2
    assert recording.started.settings.api_base == provider.base_url
    assert cli("verify", path)[0] == 0
    # resume needs no options: models and address are in the record
    lines = load(path).path.read_bytes().splitlines(keepends=True)
    load(path).path.write_bytes(b"".join(lines[:4]))
    asked = len(provider.requests)
    code, out, err = cli("resume", path, "--json")
    assert code == 0, err
    assert len(provider.requests) - asked == json.loads(out)["calls"] - 3


def test_a_run_without_an_answer_says_why_and_returns_1(cli, provider):
    code, out, err = cli("run", "Q?", "--model", "openai/fake-401", "--api-base", provider.base_url, "--agents", 2)
    assert code == 1
    assert "wants a key for openai/fake-401 (401): set SVRMAD_API_KEY" in err
    assert "no_answer" in out


def test_no_key_is_in_a_recording(cli, provider, monkeypatch, tmp_path):
    key = "sk-test-0123456789abcdefghijkl"
    monkeypatch.setenv("SVRMAD_API_KEY", key)
    base = provider.base_url.replace("http://", "http://user:secretpassword@")
    _, out, err = cli("run", "Q?", "--model", "openai/fake-ok", "--model", "openai/fake-echo-key", "--api-base", base)
    assert any(key in str(r.headers) for r in provider.requests)
    kept = "".join(p.read_text() for p in tmp_path.rglob("*.jsonl"))
    assert kept
    for text in (kept, out, err):
        assert key not in text
        assert "secretpassword" not in text


TABLES = ["turns.csv", "scores.csv", "agents.csv", "links.csv"]


def test_export_tables_to_a_folder_and_to_a_zip(cli, tmp_path):
    _, summary = recorded(cli)
    name = load(summary["recording"]).run_id
    code, out, err = cli("export", name, "--to", "csv", "tables")
    assert (code, err) == (0, "")
    assert out == f"wrote {', '.join(str(Path('tables') / n) for n in TABLES)}\n"
    assert [(tmp_path / "tables" / n).is_file() for n in TABLES] == [True] * 4
    assert cli("export", name, "--to", "csv", "tables")[0] == 0, "files are overwritten"
    code, out, _ = cli("export", summary["recording"], "--to", "csv", tmp_path / "all.zip", "--json")
    assert json.loads(out) == {"wrote": [str(tmp_path / "all.zip")]}
    with zipfile.ZipFile(tmp_path / "all.zip") as packed:
        assert packed.namelist() == TABLES


def test_export_the_graph_of_a_step(cli, tmp_path):
    _, summary = recorded(cli)
    count = len(load(summary["recording"]).events)
    edges = []
    for step in (["--step", 1], ["--step", count], []):
        code, out, _ = cli("export", summary["recording"], "--to", "graphml", "run.graphml", *step)
        assert (code, out) == (0, "wrote run.graphml\n")
        edges.append(nx.read_graphml(tmp_path / "run.graphml").number_of_edges())
    assert edges[0] == 0
    assert edges[1] == edges[2] > 0


def test_export_tables_of_a_step(cli, tmp_path):
    _, summary = recorded(cli)
    assert cli("export", summary["recording"], "--to", "csv", "tables", "--step", 3)[0] == 0
    assert (tmp_path / "tables" / "turns.csv").read_text("utf-8-sig").count("simulated/hard") == 2


def test_export_says_where_it_cannot_write(cli, tmp_path):
    _, summary = recorded(cli)
    (tmp_path / "folder.zip").mkdir()
    (tmp_path / "file").write_text("kept")
    for to, out, says in (
        ("graphml", "folder.zip", "folder.zip is a folder"),
        ("png", "folder.zip", "folder.zip is a folder"),
        ("csv", "folder.zip", "folder.zip is a folder"),
        ("csv", "file", "file is a file; give a folder"),
        ("graphml", "missing/run.graphml", "no folder missing"),
        ("svg", "missing/run.svg", "no folder missing"),
    ):
        code, printed, err = cli("export", summary["recording"], "--to", to, out)
        assert (code, printed, err.count("\n")) == (2, "", 1)
        assert says in err
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.parametrize("to", ["csv", "graphml", "png", "svg"])
@pytest.mark.parametrize("step", [0, 999, -1])
def test_export_of_a_step_outside_the_run(cli, tmp_path, to, step):
    _, summary = recorded(cli)
    code, _, err = cli("export", summary["recording"], "--to", to, "out", "--step", step)
    assert code == 2
    assert "steps 1 to" in err
    assert not (tmp_path / "out").exists()


def test_export_tells_of_what_was_left_out(cli, tmp_path):
    _, summary = recorded(cli)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(Path(summary["recording"]).read_bytes()[:-20])
    code, out, err = cli("export", cut, "--to", "graphml", "run.graphml")
    assert (code, out) == (0, "wrote run.graphml\n")
    assert "cut off" in err


@pytest.mark.parametrize("to", ["html", "png", "svg"])
def test_pages_that_are_not_here_are_one_sentence(cli, tmp_path, to):
    _, summary = recorded(cli)
    (tmp_path / "svrmad_core").symlink_to(ROOT / "svrmad_core")
    command = [sys.executable, "-m", "svrmad_core", "export", summary["recording"], "--to", to, "out"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=WITHOUT_PYTHONPATH)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{to} is drawn by the app's pages" in done.stderr
    assert "run this in the folder that holds app.py" in done.stderr


def test_tables_and_graphs_need_neither_pages_nor_streamlit(cli, tmp_path):
    _, summary = recorded(cli)
    code = (
        "import sys; from svrmad_core.cli import main; "
        f"main(['export', {summary['recording']!r}, '--to', 'graphml', 'g.graphml']); "
        "print([m for m in ('litellm', 'sympy', 'pandas', 'pages', 'streamlit', 'plotly', 'kaleido') "
        "if m in sys.modules])"
    )
    env = {**WITHOUT_PYTHONPATH, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.splitlines() == ["wrote g.graphml", "[]"]


def test_export_a_page(cli, tmp_path):
    _, summary = recorded(cli)
    code, out, err = cli("export", summary["recording"], "--to", "html", "run.html", "--dark")
    assert (code, out) == (0, "wrote run.html\n"), err
    assert "<html" in (tmp_path / "run.html").read_text("utf-8").lower()


@pytest.mark.parametrize("picture", ["graph", "scores", "slope", "flow"])
def test_export_a_picture(cli, tmp_path, picture):
    if find_browser() is None:
        pytest.skip("Chromium is missing")
    _, summary = recorded(cli)
    to, begins = ("png", b"\x89PNG") if picture == "graph" else ("svg", b"<svg")
    code, _, err = cli("export", summary["recording"], "--to", to, "out", "--picture", picture, "--step", 8)
    assert code == 0, err
    assert (tmp_path / "out").read_bytes().startswith(begins)


def test_a_picture_without_a_browser_is_one_sentence(cli, tmp_path, monkeypatch):
    _, summary = recorded(cli)
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "nothing"))
    code, out, err = cli("export", summary["recording"], "--to", "png", "out.png")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "BROWSER_PATH" in err
    assert not (tmp_path / "out.png").exists()


def test_replay_runs_several_protocols_at_once(cli):
    _, summary = recorded(cli)
    parent = load(summary["recording"])
    wanted = ("sparse", "svr_mad:prior", "group_debate:summaries")
    options = [part for name in wanted for part in ("--protocol", name)]
    code, out, err = cli("replay", parent.run_id, *options, "--json")
    runs = json.loads(out)["runs"]
    assert (code, tuple(r["method"] for r in runs)) == (0, wanted)
    assert all(load(r["recording"]).started.parent == parent.run_id for r in runs)
    assert "Sparse: " in err
    code, out, _ = cli("replay", parent.run_id, "--protocol", "all", "--json")
    assert (code, len(json.loads(out)["runs"])) == (0, 11)


def test_options_given_one_by_one_go_before_a_variants(cli):
    _, summary = recorded(cli)
    code, out, _ = cli("replay", summary["recording"], "--protocol", "svr_mad", "--score", "beta", "--json")
    assert (code, load(json.loads(out)["recording"]).started.settings.score) == (0, "beta")
