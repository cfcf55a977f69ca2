"""What can be taken along: tables, GraphML, pictures, one HTML file."""

from __future__ import annotations

import csv
import io
import re
import shutil
import zipfile

import networkx as nx
import pytest

from pages.components import takeaway
from svrmad_core import Recorder, Settings, SimulatedPanel, export, fold, load, run, tables
from svrmad_core.cli import main
from tests.scripted import debate

CASE = ([("=1+1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", "A3"): "3"})
NEEDS_BROWSER = pytest.mark.skipif(export.browser() is None, reason="Chromium is missing: apt install chromium")


async def case():
    _, events = await debate(*CASE, kind="text", max_rounds=1)
    return events


async def test_the_tables_are_the_fold():
    events = await case()
    state = fold(events)
    turns, scores, agents, links = (getattr(tables, n)(events) for n in ("turns", "scores", "agents", "links"))
    assert len(turns) == state.calls
    assert turns["prompt_tokens"].sum() == state.prompt_tokens
    assert len(scores) == len(events) * 3
    last = scores[scores["step"] == len(events)].set_index("agent")
    assert last.loc["A1", "svr"] == state.agents["A1"].svr
    assert list(agents["answer"]) == [s.answer for s in state.agents.values()]
    assert list(zip(links["challenger"], links["receiver"], strict=True)) == [
        (x.challenger, x.receiver) for x in state.links
    ]
    assert list(links["outcome"]) == ["retained", "changed"]
    assert len(tables.links(events, 1)) == 0


async def test_a_spreadsheet_runs_nothing_that_a_model_wrote():
    with zipfile.ZipFile(io.BytesIO(export.csv_zip(await case()))) as archive:
        assert sorted(archive.namelist()) == ["agents.csv", "links.csv", "scores.csv", "turns.csv"]
        text = archive.read("agents.csv").decode("utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["first_answer"] == "'=1+1"
    assert rows[0]["svr"] == "0.0"


async def test_graphml_can_be_read_again():
    events = await case()
    found = nx.read_graphml(io.BytesIO(export.graphml(events)))
    assert set(found.edges) == {("A2", "A1"), ("A3", "A1")}
    assert found.edges["A3", "A1"]["outcome"] == "changed"
    assert found.nodes["A1"]["answer"] == "3"
    assert nx.read_graphml(io.BytesIO(export.graphml(events, 1))).number_of_edges() == 0


async def test_control_characters_do_not_break_graphml():
    _, events = await debate([("a\x00b\x1b", 0.9), ("2", 0.8)], kind="text")
    assert nx.read_graphml(io.BytesIO(export.graphml(events))).nodes["A1"]["answer"] == "ab"


@pytest.fixture
async def recording(tmp_path):
    with Recorder(tmp_path / "sim.jsonl") as recorder:
        panel = SimulatedPanel("simulated/hard")
        async for _ in run("Which?", "svr_mad", panel, Settings(seed=2), recorder=recorder, run_id="sim"):
            pass
    return tmp_path / "sim.jsonl"


async def test_the_html_file_is_whole_and_says_that_it_is_simulated(recording):
    page = takeaway.html(load(recording)).decode()
    assert "%" not in "".join(re.findall(r"%[A-Z]{3,}%", page))
    assert "simulated run" in page
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", page.split("<script>")[0])
    assert page.count("</script>") == 4


async def test_a_hostile_reply_cannot_end_the_html_files_script():
    _, events = await debate([("</script><script>alert(1)</script>", 0.9), ("2", 0.8)], kind="text")
    from svrmad_core.recording import Recording

    page = takeaway.html(Recording(events)).decode()
    assert "<script>alert(1)" not in page


async def test_the_command_writes_what_is_asked_for(recording, tmp_path, capsys):
    for to, out in (("html", "run.html"), ("graphml", "run.graphml"), ("csv", "tables"), ("csv", "tables.zip")):
        assert main(["export", str(recording), "--to", to, str(tmp_path / out)]) == 0
        assert (tmp_path / out).exists()
        assert "wrote" in capsys.readouterr().out
    assert (tmp_path / "tables" / "turns.csv").exists()
    assert main(["export", str(recording), "--to", "graphml", str(tmp_path / "x"), "--step", "999"]) == 2
    assert "has steps 1 to" in capsys.readouterr().err
    assert main(["export", str(recording), "--to", "html", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err


def test_without_a_browser_the_command_says_what_to_install(recording, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    assert main(["export", str(recording), "--to", "png", str(tmp_path / "x.png")]) == 2
    assert "apt install chromium" in capsys.readouterr().err
    assert not (tmp_path / "x.png").exists()


@NEEDS_BROWSER
@pytest.mark.parametrize(("fmt", "begins"), [("png", b"\x89PNG"), ("svg", b"<svg")])
def test_a_picture_is_drawn_by_the_browser_of_this_machine(recording, tmp_path, fmt, begins):
    out = tmp_path / f"x.{fmt}"
    assert main(["export", str(recording), "--to", fmt, str(out), "--picture", "slope", "--dark"]) == 0
    data = out.read_bytes()
    assert data.startswith(begins)
    if fmt == "svg":
        assert b"A1" in data


def test_the_browser_can_be_named(monkeypatch, tmp_path):
    named = tmp_path / "mybrowser"
    shutil.copy("/bin/sh", named)
    monkeypatch.setenv("BROWSER_PATH", str(named))
    assert export.browser() == str(named)
