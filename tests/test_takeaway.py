"""A run as one HTML file, and pictures of a step."""

from __future__ import annotations

import re

import pytest

from pages.components import figures, takeaway
from svrmad_core import Recorder, Recording, Settings, SimulatedPanel, load, run
from svrmad_core.export import find_browser
from tests.scripted import debate

NEEDS_BROWSER = pytest.mark.skipif(find_browser() is None, reason="Chromium is missing: apt install chromium")


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
    page = takeaway.html(Recording(events)).decode()
    assert "<script>alert(1)" not in page


@NEEDS_BROWSER
@pytest.mark.parametrize("name", figures.PICTURES)
async def test_every_picture_is_drawn_by_the_browser_of_this_machine(recording, name):
    found = load(recording)
    data = takeaway.picture(found, name, len(found.events), "svg", dark=True)
    assert data.startswith(b"<svg")
    assert (b"A1" in data) == (name != "scores"), "nobody has debated, so no score is named"
