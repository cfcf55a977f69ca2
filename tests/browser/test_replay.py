"""The Replay page in a real Chromium: scrubbing with keys, links, reload, back, and hostile replies."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from svrmad_core import Problem, Recorder, Settings, fold, load, run
from svrmad_core.words import tell
from tests.scripted import ScriptedPanel

HOSTILE = (
    '![x](http://127.0.0.1:9/track.png) <img src=x onerror="window.hacked=1"> '
    "<script>window.hacked=1</script> $1 and $2"
)


PLOTS_AT = "k => [...document.querySelectorAll('.svr-plot')].every(x => x.dataset.step === String(k))"
DRAWN = """() => {
  const plots = [...document.querySelectorAll('.svr-plot')];
  return plots.length === 2 && plots.every(x => x.dataset.step);
}"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with one debate: A1 is changed by A3, then A2 survives."""
    folder = tmp_path_factory.mktemp("runs")

    async def record():
        panel = ScriptedPanel([("1", 0.9), ("2", 0.8), ("3", 0.7), ("2", 0.6)], {("A1", "A3"): "3"})
        plain = panel.ask

        async def ask(request):
            turn = await plain(request)
            return turn.model_copy(update={"reply": f"{HOSTILE} {turn.reply}"})

        panel.ask = ask
        with Recorder(folder / "debate.jsonl") as recorder:
            problem = Problem(question="Which number?", reference="2")
            async for _ in run(
                problem, "svr_mad", panel, Settings(agents=4, quorum=4), recorder=recorder, run_id="debate"
            ):
                pass

    # Playwright's own loop runs in this thread
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, record()).result()
    return folder


@pytest.fixture(scope="module")
def address(serve, runs):
    return serve(SVRMAD_RUNS_DIR=str(runs))


@pytest.fixture
def events(runs):
    return load(runs / "debate.jsonl").events


def told(events, k):
    """What the page must say at step k."""
    return tell(fold(events, k - 1) if k > 1 else None, events[k - 1], fold(events, k)).title


def drawn(page):
    """What the two charts hold, as Plotly keeps it: names, points and colours of the traces."""
    return page.evaluate(
        """() => [...document.querySelectorAll('.svr-plot')].map(plot => plot.data.map(t => ({
            name: t.name, x: [...(t.x || [])], colour: t.marker && t.marker.color, dash: t.line && t.line.dash})))"""
    )


def at_step(page, events, k):
    """Wait until the page shows step k, in words, in the timeline, and in the link."""
    page.wait_for_function("t => document.querySelector('.svr-words .t')?.innerText === t", arg=told(events, k))
    page.wait_for_function("k => new URL(location.href).searchParams.get('step') === String(k)", arg=k)
    page.locator(".where", has_text=f"step {k} of {len(events)}").wait_for()


def open_at(page, address, events, k):
    page.goto(f"{address}/?run=debate&step={k}")
    page.locator(".where").wait_for()
    at_step(page, events, k)


def count_edges(page):
    """Edges drawn by outcome: each is a run of points that ends in a gap."""
    graph = drawn(page)[0]
    return {
        t["name"]: sum(x is None for x in t["x"])
        for t in graph
        if t["name"] in ("retained", "changed", "retained now", "changed now")
    }


def test_scrubbing_with_keys_draws_each_step(page, address, events):
    first = next(e.seq for e in events if e.event == "debated") + 1
    open_at(page, address, events, first)
    page.wait_for_function(DRAWN)
    page.wait_for_function(PLOTS_AT, arg=first)
    assert count_edges(page) == {"retained now": 1}
    page.keyboard.press("ArrowRight")
    at_step(page, events, first + 1)
    page.wait_for_function(PLOTS_AT, arg=first + 1)
    assert count_edges(page) == {"retained": 1, "changed now": 1}
    nodes = next(t for t in drawn(page)[0] if t["name"] == "agents")
    assert nodes["colour"][0] == nodes["colour"][2], "A1 took over the belief of A3, and its colour"
    page.keyboard.press("ArrowLeft")
    at_step(page, events, first)
    page.keyboard.press("Home")
    at_step(page, events, 1)
    page.keyboard.press("End")
    at_step(page, events, len(events))


def test_clicking_a_tick_and_playing(page, address, events):
    open_at(page, address, events, 1)
    page.locator(".tick").nth(2).click()
    at_step(page, events, 4)
    page.locator(".controls select").select_option("4×")
    page.get_by_role("button", name="Play or pause (space)").click()
    at_step(page, events, len(events))
    page.wait_for_function("() => true")
    assert page.locator(".play").inner_text() == "▷ play"


def test_keys_faster_than_the_server_never_throw_the_cursor_back(page, address, events):
    open_at(page, address, events, 1)
    seen = []
    for _ in range(len(events) - 1):
        page.keyboard.press("ArrowRight")
        seen.append(int(page.locator(".where").inner_text().split()[1]))
    assert seen == list(range(2, len(events) + 1))
    at_step(page, events, len(events))
    page.wait_for_timeout(1500)  # what the server still answers changes nothing
    at_step(page, events, len(events))


def test_reload_and_back_keep_the_step(page, address, events):
    open_at(page, address, events, 3)
    page.keyboard.press("ArrowRight")
    at_step(page, events, 4)
    page.keyboard.press("ArrowRight")
    at_step(page, events, 5)
    page.reload()
    page.locator(".where").wait_for()
    at_step(page, events, 5)
    page.go_back()
    at_step(page, events, 4)


def test_keys_in_a_text_box_do_not_move_the_timeline(page, address, events):
    open_at(page, address, events, 3)
    box = page.locator("input[role=combobox]").first
    box.click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    page.wait_for_timeout(500)
    at_step(page, events, 3)


def test_predicting_hides_what_comes(page, address, events):
    open_at(page, address, events, 2)
    page.get_by_text("Predict: hide what comes").click()
    page.wait_for_function("() => true")
    page.get_by_text("verdict ?").wait_for()
    assert page.locator(".tick:visible").count() == 1
    assert "A1 challenged" not in page.locator(".strip").inner_text()


def test_the_reference_is_revealed_only_on_demand(page, address, events):
    open_at(page, address, events, 2)
    assert page.get_by_text("reference answer:").count() == 0
    page.get_by_text("Reveal the reference answer").click()
    page.get_by_text("reference answer:").wait_for()


def test_hostile_replies_are_shown_and_do_nothing(page, address, events):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    first = next(e.seq for e in events if e.event == "debated") + 1
    open_at(page, address, events, first)
    page.locator(".svr-say").first.wait_for()
    assert "<script>window.hacked=1</script> $1 and $2" in page.locator(".svr-say").first.inner_text()
    assert page.evaluate("() => window.hacked") is None
    assert page.locator(".svr-say img").count() == 0
    assert [url for url in asked if not url.startswith((address, "ws://", "data:", "blob:"))] == []


def test_a_link_to_no_run_is_refused(page, address):
    page.goto(f"{address}/?run=..%2F..%2Fetc%2Fpasswd")
    page.get_by_text("does not name a run").wait_for()


def test_an_uploaded_file_is_shown_and_a_broken_one_refused(page, address, runs, events, tmp_path):
    page.goto(address)
    page.locator(".where").wait_for()
    page.get_by_role("button", name=re.compile("Open a file")).click()
    broken = tmp_path / "broken.jsonl"
    broken.write_text("hello\n")
    page.locator("input[type=file]").set_input_files(broken)
    page.get_by_text("Line 1 is not JSON").wait_for()
    changed = [json.loads(line) for line in (runs / "debate.jsonl").read_text().splitlines()]
    changed[0]["problem"]["question"] = "Which uploaded number?"
    good = tmp_path / "good.jsonl"
    good.write_text("\n".join(json.dumps(e) for e in changed))
    page.locator("input[type=file]").set_input_files(good)
    page.get_by_text("Which uploaded number?").first.wait_for()
    page.wait_for_function("() => new URL(location.href).searchParams.get('run').startsWith('upload-')")
    page.keyboard.press("Escape")
    page.reload()
    page.get_by_text("Which uploaded number?").first.wait_for()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hangs_over_the_edge(chromium, address, events, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    window = context.new_page()
    open_at(window, address, events, len(events) - 1)
    window.wait_for_function(DRAWN)
    assert window.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
    context.close()
