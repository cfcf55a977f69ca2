"""The inspector in a real Chromium: dragging, views, agents, formulas, hostile replies, what-if, taking along."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pages.components import takeaway
from svrmad_core import Problem, Recorder, Settings, load, run
from tests.browser.test_replay import at_step, drawn, open_at
from tests.scripted import ScriptedPanel

HOSTILE = r"""We use \(a^2+b^2=c^2\). It costs $5 and $10. ![x](http://127.0.0.1:9/t.png)
<img src=x onerror="window.hacked=1"> <script>window.hacked=1</script> [a](javascript:alert(1))
<a href="http://127.0.0.1:9/">b</a> </script><svg onload=alert(1)>
\[ \sum_{k=1}^{n} k = \frac{n(n+1)}{2} \]
\(\href{javascript:alert(1)}{x}\) \(\includegraphics{http://127.0.0.1:9/i.png}\) \(\def\x{\x\x}\x\) \( \frac{1}{ \)
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A debate in which every reply is hostile, and the same with 6 agents and many steps."""
    folder = tmp_path_factory.mktemp("inspected")

    async def record():
        panel = ScriptedPanel([("1", 0.9), ("2", 0.8), ("3", 0.7), ("2", 0.6)], {("A1", "A3"): "3"})
        plain = panel.ask

        async def ask(request):
            turn = await plain(request)
            return turn.model_copy(update={"reply": f"{HOSTILE} {turn.reply}"})

        panel.ask = ask
        chosen = Settings(agents=4, quorum=4)
        with Recorder(folder / "debate.jsonl") as recorder:
            problem = Problem(question="Which number?", reference="2")
            async for _ in run(problem, "svr_mad", panel, chosen, recorder=recorder, run_id="debate"):
                pass

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, record()).result()
    return folder


REPLIES = [
    json.loads(line)["reply"] or ""
    for line in (Path(__file__).parents[1] / "data" / "replies.jsonl").open(encoding="utf-8")
]


@pytest.fixture(scope="module")
def all_replies(runs):
    """A run in which each agent answers with one of the replies that break such programs, or with a long one."""
    told = [*REPLIES, HOSTILE, f"{HOSTILE} {'word ' * 900}"]

    async def record():
        panel = ScriptedPanel([(str(i), 0.5) for i in range(len(told))])
        plain = panel.ask

        async def ask(request):
            turn = await plain(request)
            return turn.model_copy(update={"reply": told[int(request.ask.agent[1:]) - 1]})

        panel.ask = ask
        chosen = Settings(agents=len(told), max_rounds=0)
        with Recorder(runs / "replies.jsonl") as recorder:
            async for _ in run("Which?", "svr_mad", panel, chosen, recorder=recorder, run_id="replies"):
                pass

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, record()).result()
    return load(runs / "replies.jsonl")


@pytest.fixture(scope="module")
def address(serve, runs):
    return serve(SVRMAD_RUNS_DIR=str(runs))


@pytest.fixture
def events(runs):
    return load(runs / "debate.jsonl").events


def charts_at(page, k):
    page.wait_for_function(
        "k => [...document.querySelectorAll('.svr-plot')].filter(x => x.dataset.step === String(k)).length === 2", arg=k
    )


def changed_step(events):
    return next(e.seq for e in events if e.event == "debated" and e.retained is False) + 1


def test_the_slider_and_dragging_over_the_ticks_move_everything(page, address, events):
    open_at(page, address, events, 2)
    charts_at(page, 2)
    page.get_by_label("Step of the run").fill("7")
    charts_at(page, 7)
    at_step(page, events, 7)
    ticks = page.locator(".tick")
    start, end = ticks.nth(1).bounding_box(), ticks.nth(3).bounding_box()
    page.mouse.move(start["x"] + 8, start["y"] + 8)
    page.mouse.down()
    page.mouse.move(end["x"] + 8, end["y"] + 8, steps=6)
    page.mouse.up()
    at_step(page, events, 5)
    charts_at(page, 5)


def test_the_charts_follow_while_the_server_is_silent(page, address, events):
    open_at(page, address, events, 2)
    charts_at(page, 2)
    page.evaluate("() => { window.svrmadTimeline.asked = { id: -1 }; }")  # no move is told while another is under way
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    charts_at(page, 4)
    assert "step=2" in page.url


def test_the_three_views_stand_at_the_same_step(page, address, events):
    k = changed_step(events)
    open_at(page, address, events, k)
    charts_at(page, k)
    assert "cursor" in [t["name"] for t in drawn(page)[1]]
    page.get_by_text("Prior → now").click()
    page.wait_for_function("() => document.querySelectorAll('.svr-plot')[1]?.data?.some(t => t.name === 'names left')")
    charts_at(page, k)
    page.get_by_text("Beliefs", exact=True).click()
    page.wait_for_function("() => document.querySelectorAll('.svr-plot')[1]?.data?.some(t => t.name === 'held')")
    charts_at(page, k)
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("ArrowRight")
    charts_at(page, k + 1)


def test_a_clicked_agent_is_brought_forward_everywhere(page, address, events):
    k = changed_step(events)
    open_at(page, address, events, k)
    charts_at(page, k)
    node = page.evaluate(
        """() => { const p = document.querySelector('.svr-plot'), b = p.getBoundingClientRect(), l = p._fullLayout;
            const t = p.data.find(t => t.name === 'agents'), i = t.customdata.indexOf('A1');
            return [b.x + l.xaxis.l2p(t.x[i]) + l._size.l, b.y + l.yaxis.l2p(t.y[i]) + l._size.t]; }"""
    )
    page.mouse.move(*node)
    page.wait_for_timeout(300)
    page.mouse.click(*node)
    page.wait_for_function("() => new URL(location.href).searchParams.get('agent') === 'A1'")
    page.get_by_text("The turns of A1").wait_for()
    page.wait_for_function("() => document.querySelectorAll('.svr-plot')[1].data.some(t => t.opacity === 0.18)")
    page.get_by_role("button", name="A1 hears A2: keeps").click()
    at_step(page, events, k - 1)
    page.get_by_role("button", name="Let go").click()
    page.wait_for_function("() => !new URL(location.href).searchParams.get('agent')")


def test_formulas_are_set_and_hostile_replies_do_nothing(page, address, events):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_at(page, address, events, changed_step(events))
    page.locator(".svr-say .katex").first.wait_for()
    said = page.locator(".svr-said").first
    assert page.locator(".svr-say .display .katex-display").count() >= 1
    assert "It costs $5 and $10." in said.inner_text()
    assert "<script>window.hacked=1</script>" in said.inner_text()
    assert "\\frac{1}{" in said.inner_text(), "what is no LaTeX is shown as it was written"
    for tag in ("a", "img", "script", "iframe", "object", "svg[onload]"):
        assert page.locator(f".svr-say {tag}").count() == 0
    page.get_by_text("The exact messages sent").click()
    page.locator(".svr-messages pre").first.wait_for()
    assert page.locator(".svr-messages img, .svr-messages a, .svr-messages script").count() == 0
    page.wait_for_timeout(500)
    assert page.evaluate("() => window.hacked") is None
    assert [
        url for url in asked if not url.startswith((address, address.replace("http", "ws"), "blob:", "data:"))
    ] == []


def test_every_reply_that_breaks_programs_is_shown_harmlessly(page, all_replies, tmp_path):
    """In the file that scrubs offline, whose transcript is the page's own and asks no server between steps."""
    saved = tmp_path / "replies.html"
    saved.write_bytes(takeaway.html(all_replies))
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(saved.as_uri())
    page.keyboard.press("Home")
    for k, reply in enumerate((e.turn.reply for e in all_replies.events if e.event == "answered"), 2):
        page.keyboard.press("ArrowRight")
        page.locator(".where", has_text=f"step {k} of").wait_for()
        said = page.locator(".svr-said")
        if reply.strip():
            words = re.findall(r"[A-Za-z]{4,}", re.sub(r"\\[A-Za-z]+|\$.*?\$", " ", reply))[:3]
            shown = said.inner_text()
            assert all(word in shown for word in words if "\\" not in reply), reply
        else:
            assert "(an empty reply)" in said.inner_text()
        assert said.locator("a, img, script, iframe, object, form, input, style, link, video").count() == 0
    assert page.evaluate("() => window.hacked") is None
    assert asked == [saved.as_uri()]


def test_a_long_reply_is_folded_until_it_is_asked_for(page, address, all_replies):
    page.goto(f"{address}/?run=replies&step={len(all_replies.events) - 1}")
    more = page.get_by_role("button", name="Show all")
    more.wait_for()
    folded = page.locator(".svr-say .body").bounding_box()["height"]
    more.click()
    page.get_by_role("button", name="Show less").wait_for()
    assert page.locator(".svr-say .body").bounding_box()["height"] > 2 * folded


def test_what_is_new_in_a_reply_is_marked(page, address, events):
    open_at(page, address, events, changed_step(events))
    page.locator(".svr-say mark.new").wait_for()
    assert [t.strip() for t in page.locator(".svr-say mark.new").all_inner_texts()] == ["I say 3"]
    assert [t.strip() for t in page.locator(".svr-say mark.gone").all_inner_texts()] == ["I say 1"]


def test_the_search_goes_to_the_step(page, address, events):
    open_at(page, address, events, 2)
    page.get_by_text("Search what was said").first.click()
    page.get_by_placeholder("a word or a number").fill("I SAY 3")
    page.keyboard.press("Enter")
    k = next(e.seq for e in events if e.event == "answered" and e.agent == "A3") + 1
    page.get_by_role("button", name=f"step {k} · A3").click()
    at_step(page, events, k)
    charts_at(page, k)


def test_what_if_says_where_the_run_would_depart(page, address, events):
    open_at(page, address, events, len(events))
    page.get_by_text("What if the settings had been others?").click()
    page.get_by_text("Move a setting").wait_for()
    page.get_by_role("radio", name="debate").click()
    page.get_by_text("would stop with").wait_for()
    page.get_by_role("button", name="See step").click()
    first = next(e.seq for e in events if e.event == "debated") + 1
    at_step(page, events, first)


def test_the_html_file_scrubs_offline_from_disk(page, chromium, address, events, tmp_path):
    open_at(page, address, events, 2)
    page.get_by_text("Take it along").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="One HTML file").click()
    saved = tmp_path / "run.html"
    download.value.save_as(saved)
    context = chromium.new_context(offline=True)
    alone = context.new_page()
    errors, asked = [], []
    alone.on("pageerror", lambda error: errors.append(str(error)))
    alone.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    alone.on("request", lambda request: asked.append(request.url))
    alone.goto(saved.as_uri())
    charts_at(alone, len(events))
    alone.keyboard.press("Home")
    charts_at(alone, 1)
    for _ in range(changed_step(events) - 1):
        alone.keyboard.press("ArrowRight")
    charts_at(alone, changed_step(events))
    assert alone.locator(".svr-words .t").inner_text().startswith("A1 changed from 1 to 3")
    alone.locator(".svr-say math").first.wait_for()
    alone.get_by_role("button", name="Beliefs").click()
    charts_at(alone, changed_step(events))
    alone.get_by_text("Predict: hide what comes").click()
    assert alone.locator(".where").inner_text().endswith("of ?")
    assert alone.evaluate("() => window.hacked") is None
    assert errors == []
    assert asked == [saved.as_uri()]
    context.close()


@pytest.mark.parametrize(("kind", "begins"), [("PNG", b"\x89PNG"), ("SVG", b"<svg")])
def test_a_picture_is_saved_by_the_browser_one_looks_with(page, address, events, kind, begins):
    open_at(page, address, events, 6)
    charts_at(page, 6)
    page.locator(".svr-picture").first.hover()
    with page.expect_download() as download:
        page.get_by_role("button", name=kind, exact=True).first.click()
    assert download.value.suggested_filename == f"debate-graph-step-6.{kind.lower()}"
    assert download.value.path().read_bytes().startswith(begins)


def test_everything_can_be_reached_by_keyboard(page, address, events):
    open_at(page, address, events, 3)
    charts_at(page, 3)
    reached = []
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate(
                """() => { let e = document.activeElement;
                    while (e?.shadowRoot?.activeElement) e = e.shadowRoot.activeElement;
                    return e?.getAttribute('aria-label') || e?.innerText || e?.id || ''; }"""
            )
        )
        if reached[-1] == "Step of the run":
            page.keyboard.press("End")
            at_step(page, events, len(events))
    told = "\n".join(reached)
    for name in ("Step of the run", "step 2: A1 answers", "Next step", "Play or pause", "PNG", "Beliefs", "Predict"):
        assert name in told, name
    for name in ("Group by belief", "Projector", "tables", "Search", "What if", "Take it along"):
        assert name in told, name


def test_projected_type_is_large_and_nothing_but_the_run_is_shown(page, address, events):
    page.goto(f"{address}/?run=debate&step=6&projector=1")
    at_step(page, events, 6)
    assert page.evaluate("() => parseFloat(getComputedStyle(document.documentElement).fontSize)") > 20
    assert not page.get_by_test_id("stHeader").is_visible()
    page.get_by_role("button", name="Leave projector").click()
    page.wait_for_function("() => parseFloat(getComputedStyle(document.documentElement).fontSize) < 18")
    at_step(page, events, 6)


@pytest.mark.parametrize("width", [390, 1280, 1920])
def test_nothing_is_wider_than_the_page(page, address, events, width):
    page.set_viewport_size({"width": width, "height": 900})
    open_at(page, address, events, 6)
    charts_at(page, 6)
    assert page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollWidth <= window.innerWidth")


def test_the_reference_is_told_only_when_revealed(page, address, events):
    open_at(page, address, events, 6)
    assert page.get_by_text("✓ right").count() == 0
    page.get_by_text("Reveal the reference answer").click()
    page.get_by_text("✓ right").wait_for()
    page.get_by_text("Beliefs", exact=True).click()
    told = "t => t.name === 'held' && t.text.some(x => x.endsWith('✓'))"
    page.wait_for_function(f"() => document.querySelectorAll('.svr-plot')[1].data?.some({told})")
