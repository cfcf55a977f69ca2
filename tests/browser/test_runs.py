"""The Runs page in a real Chromium: search, choose, open, delete, and a first visit that a link leads to."""

from __future__ import annotations

import asyncio
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from svrmad_core import Problem, Recorder, Settings, SimulatedPanel, load, run
from tests.browser.conftest import ROOT

HOSTILE = '<img src=x onerror="window.hacked=1"> ![x](http://127.0.0.1:9/track.png) **Which** number is it?'
HEADER = ROW = 35
"""Heights in the table, in pixels."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Six own runs; two of them broke off. What a test deletes or goes on with is no other test's."""
    folder = tmp_path_factory.mktemp("runs")
    asks = {"plain": "How many sides has a cube?", "hostile": HOSTILE, "doomed": "Delete me?", "whole": "Go on?"}

    async def record():
        for name, question in asks.items():
            with Recorder(folder / f"{name}.jsonl") as recorder:
                problem, panel = Problem(question=question, reference="42"), SimulatedPanel("simulated/hard")
                async for _ in run(problem, "svr_mad", panel, Settings(seed=3), recorder=recorder, run_id=name):
                    pass

    # Playwright's own loop runs in this thread
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, record()).result()
    for whole, part in (("plain", "broken-off"), ("whole", "to-go-on")):
        lines = (folder / f"{whole}.jsonl").read_bytes().replace(f'"{whole}"'.encode(), f'"{part}"'.encode())
        (folder / f"{part}.jsonl").write_bytes(b"".join(lines.splitlines(keepends=True)[:5]))
        os.utime(folder / f"{part}.jsonl", (time.time() - 600,) * 2)
    return folder


@pytest.fixture(scope="module")
def address(serve, runs):
    return f"{serve(SVRMAD_RUNS_DIR=str(runs))}/runs"


def open_page(page, address):
    page.goto(address)
    page.get_by_text(re.compile("of .* runs")).wait_for()
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()


def search(page, words, found):
    page.get_by_placeholder("Search question").fill(words)
    page.get_by_text(re.compile(f"^{found} of ")).wait_for()
    page.wait_for_timeout(500)


def choose(page, row):
    """Tick the box at the left of a row of the table; the page then says what can be done with it."""
    box = page.locator("[data-testid=stDataFrame]").bounding_box()
    page.mouse.click(box["x"] + 18, box["y"] + HEADER + ROW * row + ROW / 2)
    page.get_by_role("button", name="Open in Replay").wait_for()


def test_a_run_is_found_chosen_and_opened_in_replay(page, address, runs):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    # the first that anyone asks of this server is this page, not app.py's first one
    open_page(page, address)
    assert page.get_by_role("link", name="Replay").count() == 1
    assert page.evaluate("() => document.querySelector('.stMainBlockContainer').clientWidth") > 1200
    search(page, "which NUMBER", 1)
    choose(page, 0)
    assert HOSTILE in page.locator(".svr-run .q").inner_text()
    assert page.locator(".svr-run img").count() == 0
    assert page.evaluate("() => window.hacked") is None
    # the choice outlives a change of the list, and what is done is done to the run that was chosen
    search(page, "", len([*runs.glob("*.jsonl"), *(ROOT / "sample_runs").glob("*.jsonl")]))
    assert HOSTILE in page.locator(".svr-run .q").inner_text()
    page.get_by_role("button", name="Open in Replay").click()
    page.locator(".svr-words .t").wait_for()
    page.wait_for_function("() => new URL(location.href).searchParams.get('run') === 'hostile'")
    page.get_by_text("simulated: no model was asked").wait_for()
    page.get_by_role("link", name="Runs").click()
    page.get_by_text(re.compile("of .* runs")).wait_for()
    ours = (address.rsplit("/", 1)[0], "ws://", "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []


def test_the_filters_stay_set_on_the_way_to_replay_and_back(page, address):
    open_page(page, address)
    search(page, "cube", 2)
    page.get_by_role("button", name=re.compile("Filter")).click()
    page.get_by_role("button", name="interrupted").click()
    page.get_by_text(re.compile("^1 of ")).wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Replay").click()
    page.locator(".svr-words .t").wait_for()
    page.get_by_role("link", name="Runs").click()
    page.get_by_text(re.compile("^1 of ")).wait_for()
    assert page.get_by_placeholder("Search question").input_value() == "cube"
    page.get_by_role("button", name="Clear all").click()
    page.get_by_text(re.compile("^1 of ")).wait_for(state="detached")


def test_deleting_asks_first(page, address, runs):
    before = sorted(path.name for path in runs.iterdir())
    open_page(page, address)
    search(page, "delete me", 1)
    choose(page, 0)
    page.get_by_role("button", name="Delete").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_text("cannot be brought back").wait_for()
    assert "Delete me?" in dialog.inner_text()
    dialog.get_by_role("button", name="Keep it").click()
    dialog.wait_for(state="detached")
    assert sorted(path.name for path in runs.iterdir()) == before
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_text("No run matches").wait_for()
    assert sorted(path.name for path in runs.iterdir()) == [name for name in before if name != "doomed.jsonl"]


def test_an_interrupted_run_is_resumed_and_downloaded(page, address, runs):
    open_page(page, address)
    search(page, "to-go-on", 1)
    choose(page, 0)
    page.get_by_role("button", name="Resume").click()
    page.get_by_text(re.compile(r"Finished in \d+ steps")).wait_for()
    page.get_by_role("button", name="Resume").wait_for(state="detached")
    path = runs / "to-go-on.jsonl"
    assert load(path).events[-1].verdict == load(runs / "whole.jsonl").events[-1].verdict
    with page.expect_download() as download:
        page.get_by_test_id("stDownloadButton").get_by_role("button").click()
    assert download.value.suggested_filename == path.name
    with open(download.value.path(), "rb") as file:
        assert file.read() == path.read_bytes()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hangs_over_the_edge(chromium, address, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    window = context.new_page()
    open_page(window, address)
    window.wait_for_timeout(500)
    choose(window, 0)
    assert window.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    context.close()
