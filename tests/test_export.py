"""Exports open in what they are for: CSV readers and spreadsheets, NetworkX, a viewer of pictures."""

from __future__ import annotations

import csv
import html
import io
import os
import socket
import struct
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest

from pages.components import figures
from pages.components.film import still
from pages.components.look import LIGHT
from pages.components.walk import walk
from svrmad_core import Turn, export, fold, load
from svrmad_core.cli import SAMPLES
from tests.scripted import VOID, debate

CASE = ([("1", 0.9), ("2", 0.8), ("3", 0.7), ("4", 0.6)], {("A1", "A3"): "3", ("A1", "A4"): VOID})
FILES = ["turns.csv", "scores.csv", "agents.csv", "links.csv"]
ROOT = Path(__file__).parents[1]


async def saying(*answers, reply=None):
    """A run whose agents gave these answers, all with this reply."""
    _, events = await debate([(answer, 0.5) for answer in answers], max_rounds=0)
    if reply is None:
        return events
    return [
        e.model_copy(update={"turn": Turn(**e.turn.model_dump() | {"reply": reply})}) if e.event == "answered" else e
        for e in events
    ]


def cells(data, column):
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))
    assert {len(row) for row in rows} == {len(rows[0])}, "no cell breaks out of its row"
    return [row[rows[0].index(column)] for row in rows[1:]]


def archive(events):
    with zipfile.ZipFile(io.BytesIO(export.csv_zip(events))) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


# -- tables --------------------------------------------------------------------------------------------


async def test_a_folder_and_a_zip_hold_the_same_four_tables(tmp_path):
    _, events = await debate(*CASE, max_rounds=1)
    folder = tmp_path / "new" / "tables"
    written = export.to_csv(events, folder)
    assert [path.name for path in written] == FILES
    (packed,) = export.to_csv(events, tmp_path / "tables.ZIP")
    with zipfile.ZipFile(packed) as opened:
        assert opened.namelist() == FILES
        assert [opened.read(name) for name in FILES] == [path.read_bytes() for path in written]


async def test_excel_is_told_that_it_is_utf_8():
    files = archive(await saying("½ → 😀", "2"))
    assert all(data.startswith(b"\xef\xbb\xbf") for data in files.values())
    assert "½ → 😀" in cells(files["agents.csv"], "answer")


@pytest.mark.parametrize(
    "text", ["=1+1", "+A1", "-x", "@SUM(A1)", "\t=1", "\r=1", '=HYPERLINK("x","y")', "-1/2", "＝1"]
)
async def test_a_models_text_is_no_formula(text):
    files = archive(await saying(text, "2", reply=text))
    assert f"'{text}" in cells(files["agents.csv"], "answer")
    assert set(cells(files["turns.csv"], "reply")) == {f"'{text}"}


@pytest.mark.parametrize(
    "text", ["-5", "+1.5", "-2e-3", "a=b", "", "1-2", "x\r\ny", 'say "hi", twice\n', "lone\rreturn"]
)
async def test_numbers_and_harmless_texts_stay_as_they_are(text):
    files = archive(await saying("1", "2", reply=text))
    assert set(cells(files["turns.csv"], "reply")) == {text}


async def test_negative_scores_stay_numbers():
    _, events = await debate([("1", 0.9), ("2", 0.8)], {("A1", "A2"): "2"}, max_rounds=1)
    frame = pd.read_csv(io.BytesIO(archive(events)["scores.csv"]))
    assert frame["svr"].min() == -1.0
    assert frame["k"].tolist()[-1] == len(events)


async def test_what_is_missing_is_an_empty_cell_and_whole_numbers_stay_whole():
    _, events = await debate(*CASE, max_rounds=1)
    data = archive(events)["turns.csv"]
    assert cells(data, "retained")[-3:] == ["True", "False", ""]
    assert cells(data, "before") == ["", "", "", "", "0", "0", "2"]


# -- the graph and the recording -----------------------------------------------------------------------


async def test_the_graph_comes_back_from_graphml():
    _, events = await debate(*CASE, max_rounds=1)
    graph = nx.read_graphml(io.BytesIO(export.graphml(events)))
    assert isinstance(graph, nx.DiGraph)
    assert graph.graph["protocol"] == "svr_mad"
    assert graph.graph["step"] == len(events)
    state = fold(events)
    for agent in state.agents.values():
        node = graph.nodes[agent.name]
        assert (node["answer"], node["belief"], node["retained"]) == (agent.answer, agent.belief, agent.retained)
        assert node["prior"] == pytest.approx(agent.prior)
        assert node["failed"] is False
    assert {edge: data["outcome"] for *edge, data in graph.edges(data=True) for edge in [tuple(edge)]} == {
        ("A2", "A1"): "retained",
        ("A3", "A1"): "changed",
        ("A4", "A1"): "void",
    }
    assert graph.edges["A3", "A1"] == {
        "links": 1,
        "rounds": "1",
        "outcome": "changed",
        "number": 2,
        "retained": 0,
        "changed": 1,
        "void": 0,
    }


async def test_a_pair_that_meets_again_is_one_edge():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)], {("A1", 2): "2"}, protocol="all_to_all")
    graph = nx.read_graphml(io.BytesIO(export.graphml(events)))
    edge = graph.edges["A2", "A1"]
    assert (edge["links"], edge["rounds"]) == (2, "1, 2")
    assert (edge["retained"], edge["changed"], edge["outcome"]) == (1, 1, "changed")
    assert sum(data["links"] for *_, data in graph.edges(data=True)) == len(fold(events).links)


async def test_the_graph_of_a_step_and_what_is_none_left_out():
    _, events = await debate(*CASE, max_rounds=1)
    graph = nx.read_graphml(io.BytesIO(export.graphml(events, 1)))
    assert graph.number_of_edges() == 0
    assert set(graph.nodes["A1"]) == {"index", "prior", "retained", "changed", "failed"}
    assert export.graphml(events, 8) != export.graphml(events, 9)


async def test_what_xml_forbids_is_left_out_of_answers():
    answer = "a\x00\x08\x0b\x1b\ud800\ufffeb<&>\"' ]]>\t½😀\r\nc"
    graph = nx.read_graphml(io.BytesIO(export.graphml(await saying(answer, "2"))))
    assert graph.nodes["A1"]["answer"] == "ab<&>\"' ]]>\t½😀\nc"


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_real_runs_export(path):
    recording = load(path)
    assert list(nx.read_graphml(io.BytesIO(export.graphml(recording.events)))) == list(recording.fold().agents)
    assert list(archive(recording.events)) == FILES
    assert export.jsonl(recording) == path.read_bytes()
    again = load(export.jsonl(load(path.read_bytes())))
    assert again.events == recording.events


# -- pictures ------------------------------------------------------------------------------------------


@pytest.fixture
def browser():
    """A browser to draw with; without one tests are skipped, never in CI."""
    found = export.find_browser()
    if found is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing: apt install chromium")
        pytest.skip(export.NO_BROWSER)
    return found


@pytest.fixture
async def figure():
    _, events = await debate([("12", 0.9), ("<b>&1/2", 0.8), ("3", 0.7)], max_rounds=1)
    return still(figures.graph(walk(events), LIGHT), len(events))


def fake_browser(tmp_path, monkeypatch, script):
    """A program in the browser's place."""
    path = tmp_path / "some-browser"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    monkeypatch.setenv("BROWSER_PATH", str(path))


def png_size(data):
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


async def test_a_png_has_its_size_even_within_an_event_loop_and_nothing_is_left(browser, figure, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert png_size(export.image(figure, "png", 320, 240)) == (640, 480)
    assert list(tmp_path.iterdir()) == []


def test_an_svg_holds_the_figures_text(browser, figure):
    text = export.image(figure, "svg", 640, 480, scale=1).decode()
    assert text.startswith("<svg")
    for said in ("A1", "A2", "A3", "12", "<b>&1/2"):
        assert f">{said}<" in html.unescape(text)
    assert "http" not in text.replace("http://www.w3.org/", "")


def test_the_browser_is_cut_off_from_the_network(browser):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, socket.socket() as server:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells this machine's own address
        except OSError:
            pytest.skip("this machine has no address but its own")
        server.bind((probe.getsockname()[0], 0))
        server.listen()
        server.setblocking(False)
        address, port = server.getsockname()
        picture = {"source": f"http://{address}:{port}/x.png", "x": 0, "y": 1, "sizex": 1, "sizey": 1}
        export.image({"data": [], "layout": {"images": [picture]}}, "svg", 320, 240)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_sandbox_that_is_forbidden_is_done_without(browser, figure, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)
    asked = tmp_path / "asked"
    fake_browser(
        tmp_path,
        monkeypatch,
        f'echo x >> "{asked}"\ncase "$*" in *--no-sandbox*) exec "{browser}" "$@";; esac\nexit 1',
    )
    assert export.image(figure, "svg", 320, 240).startswith(b"<svg")
    assert asked.read_text().count("x") == 2


def test_without_a_browser_the_sentence_says_what_to_install(figure, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    monkeypatch.delenv("CHROMIUM", raising=False)
    # a browser that Kaleido downloaded on this machine
    monkeypatch.setattr("choreographer.browsers.chromium.get_chrome_download_path", lambda **_: None)
    with pytest.raises(export.NoBrowser, match="apt install chromium"):
        export.image(figure, "png", 320, 240)


def test_an_empty_variable_names_nothing_and_hides_nothing(browser, tmp_path, monkeypatch):
    (tmp_path / "chromium").symlink_to(browser)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("BROWSER_PATH", "")
    monkeypatch.setenv("CHROMIUM", "")
    assert export.find_browser() == str(tmp_path / "chromium")


def test_a_variable_that_names_no_program(figure, tmp_path, monkeypatch):
    monkeypatch.setenv("BROWSER_PATH", str(tmp_path / "nothing"))
    with pytest.raises(export.NoBrowser, match="The variable BROWSER_PATH names no program"):
        export.image(figure, "png", 320, 240)


def test_a_browser_that_ends_at_once(figure, tmp_path, monkeypatch, capfd):
    fake_browser(tmp_path, monkeypatch, "exit 1")
    with pytest.raises(export.NoBrowser, match="some-browser did not start"):
        export.image(figure, "png", 320, 240)
    assert capfd.readouterr().err == ""


def test_a_browser_that_hangs_is_waited_for_and_ended(figure, tmp_path, monkeypatch):
    running = tmp_path / "running"
    fake_browser(tmp_path, monkeypatch, f'echo $$ > "{running}"\nexec sleep 600')
    monkeypatch.setattr(export, "TIMEOUT", 1.0)
    monkeypatch.setattr(export, "_CLOSING", 0.2)
    with pytest.raises(export.NoBrowser, match="within 1 s"):
        export.image(figure, "png", 320, 240)
    with pytest.raises(ProcessLookupError):
        os.kill(int(running.read_text()), 0)


def test_the_module_is_light_to_import():
    code = (
        "import sys, svrmad_core.export; "
        "print([m for m in ('pandas', 'networkx', 'kaleido', 'choreographer', 'plotly', 'streamlit') "
        "if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
