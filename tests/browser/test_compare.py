"""The Compare page in a real Chromium: two runs under one cursor, and what is missing run from the page."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from svrmad_core import Problem, Recorder, Settings, SimulatedPanel, load, run
from svrmad_core.comparison import at_round, at_tokens, course
from svrmad_core.protocols import VARIANTS

HOSTILE = '<img src=x onerror="window.hacked=1"> ![x](http://127.0.0.1:9/track.png) **Which** number is it?'
DRAWN = "() => document.querySelectorAll('.svr-plot[data-step] .main-svg').length >= 8"

DRAWN_STEPS = "() => [...document.querySelectorAll('.svr-plot[data-step]')].slice(0, 4).map(p => +p.dataset.step)"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run with its all-to-all replay, and a run on another question."""
    folder = tmp_path_factory.mktemp("runs")

    async def record(name, question, protocol, parent=None):
        with Recorder(folder / f"{name}.jsonl") as recorder:
            problem, panel = Problem(question=question, reference="42"), SimulatedPanel("simulated/hard")
            settings = Settings(seed=3, quorum=6)
            async for _ in run(problem, protocol, panel, settings, recorder=recorder, run_id=name, parent=parent):
                pass

    async def all_of_them():
        await record("root", HOSTILE, "svr_mad")
        await record("beside", HOSTILE, "all_to_all", load(folder / "root.jsonl"))
        await record("stranger", "How many sides has a cube?", "svr_mad")

    # Playwright's own loop runs in this thread
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, all_of_them()).result()
    return folder


@pytest.fixture(scope="module")
def address(serve, runs):
    return f"{serve(SVRMAD_RUNS_DIR=str(runs))}/compare"


@pytest.fixture(scope="module")
def points(runs):
    return [course(load(runs / f"{name}.jsonl").events) for name in ("root", "beside")]


def open_pair(page, address, **link):
    query = "&".join(f"{k}={v}" for k, v in {"one": "root", "two": "beside", **link}.items())
    page.goto(f"{address}?{query}")
    page.wait_for_function(DRAWN)


def steps(page):
    """The step that each of the two stands at, in its words and in its pictures, which must be the same."""
    sides = [int(s.get_attribute("data-step")) for s in page.locator(".twins .side").all()]
    drawn = page.evaluate(
        "() => [...document.querySelectorAll('.svr-plot[data-step]')].slice(0, 4).map(p => +p.dataset.step)"
    )
    assert drawn == [sides[0], sides[0], sides[1], sides[1]]
    return sides


def test_both_are_scrubbed_together_by_round(page, address, points):
    open_pair(page, address)
    assert steps(page) == [len(p) for p in points], "at first both stand at their ends"
    page.keyboard.press("Home")
    page.locator(".twins .where", has_text="initial answers").wait_for()
    assert steps(page) == [at_round(p, 0) for p in points]
    page.keyboard.press("ArrowRight")
    page.locator(".twins .where", has_text="round 1").wait_for()
    assert steps(page) == [at_round(p, 1) for p in points]
    page.wait_for_url(re.compile("at=round-1"))
    page.reload()
    page.wait_for_function(DRAWN)
    assert steps(page) == [at_round(p, 1) for p in points], "the link brings back the place"


def test_both_are_scrubbed_together_by_tokens(page, address, points):
    open_pair(page, address)
    page.get_by_text("By tokens spent").click()
    page.locator(".twins .where", has_text="with ").wait_for()
    slider = page.locator(".twins input[type=range]")
    for share in (0.3, 0.6, 1.0):
        place = int(int(slider.get_attribute("max")) * share)
        slider.evaluate("(s, at) => { s.value = at; s.dispatchEvent(new Event('input', { bubbles: true })); }", place)
        budget = int(page.locator(".twins .where").inner_text().split()[1].replace(",", ""))
        assert steps(page) == [at_tokens(p, budget) for p in points]
        used = [int(u.inner_text().split()[0].replace(",", "")) for u in page.locator(".twins .used").all()]
        assert all(u <= budget for u in used)
        assert budget in used, "a stop is where one of them has just spent that much"


def test_the_cursor_stands_in_the_curves_too(page, address):
    open_pair(page, address)
    page.keyboard.press("Home")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.svr-plot[data-step]')].filter(p => p.dataset.step === '1').length >= 3"
    )


def test_a_pair_with_different_questions_is_refused_in_a_sentence(page, address):
    page.goto(f"{address}?one=root&two=stranger")
    page.get_by_text("These runs answer different questions").wait_for()
    assert page.locator(".twins").count() == 0


def test_a_run_that_is_not_there_is_said_in_a_sentence(page, address):
    page.goto(f"{address}?one=../../etc/passwd&two=beside")
    page.get_by_text("The link does not name a run").wait_for()


def test_what_is_missing_is_run_from_the_page(page, address, runs):
    page.goto(f"{address}?one=root")
    page.wait_for_function(DRAWN)
    page.get_by_text("Not run yet on these initial answers").click()
    page.get_by_role("button", name="Run", exact=True).first.wait_for()
    before = {p.stem for p in runs.iterdir()}
    page.get_by_role("button", name="Run", exact=True).nth(2).click()
    page.get_by_role("rowheader", name="Self-consistency", exact=True).wait_for()
    made = {p.stem for p in runs.iterdir()} - before
    assert [load(runs / f"{name}.jsonl").started.parent for name in made] == ["root"]
    assert [load(runs / f"{name}.jsonl").started.protocol for name in made] == ["self_consistency"]


def test_right_and_wrong_are_told_only_once_the_reference_is_revealed(page, address):
    open_pair(page, address)
    table = page.locator(".svr-rows")
    assert not re.search("[✓✕]", table.inner_text())
    page.get_by_text("Reveal the reference answer").click()
    page.wait_for_function("() => /[✓✕]/.test(document.querySelector('.svr-rows').textContent)")


def test_growth_is_moved_with_n_and_t(page, address):
    open_pair(page, address)
    page.get_by_text("Why it saves").click()
    page.get_by_text("at N = 6, T = 2").wait_for()
    page.get_by_role("slider", name="Rounds T").focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("at N = 6, T = 3").wait_for()
    row = page.locator("tr", has=page.get_by_text("N(N − 1)·T", exact=True))
    assert "90" in row.inner_text()


def test_hostile_text_is_text(page, address):
    open_pair(page, address)
    assert HOSTILE.split("<")[1] in page.locator(".svr-head .q").inner_text()
    assert page.evaluate("() => window.hacked") is None


def test_on_a_phone_nothing_is_wider_than_the_page(chromium, address):
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    phone = context.new_page()
    open_pair(phone, address)
    assert phone.evaluate("() => document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth")
    context.close()


def test_every_method_can_stand_on_a_side(page, address, runs):
    page.goto(f"{address}?one=root&two=beside")
    page.wait_for_function(DRAWN)
    page.get_by_role("combobox", name="On the right").click()
    page.get_by_role("option", name=VARIANTS["svr_mad"].title, exact=True).click()
    page.wait_for_url(re.compile("two=root"))
