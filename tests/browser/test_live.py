"""The Live page in a real Chromium: start, pause, step, stop, reload, leave, watch, and a killed server."""

from __future__ import annotations

import itertools
import os
import re
import signal
import time

import pytest

from svrmad_core import load, verify
from tests.fakes.provider import FakeProvider

KEY = "sk-live-0123456789abcdefghijkl"
QUESTION = "How many sides has a cube?"


def stubborn():
    """Replies of agents that disagree at first and keep their answers."""
    count = itertools.count()

    def reply(body):
        own = [m["content"] for m in body["messages"][3:] if m["role"] == "assistant"]
        return own[-1] if own else f"So it is.\nAnswer: \\boxed{{{next(count) % 3 + 40}}}\nConfidence: 80"

    return reply


@pytest.fixture
def asked():
    """A provider that takes its time."""
    with FakeProvider(stubborn(), latency=2.0) as provider:
        yield provider


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def address(serve, runs):
    return f"{serve(SVRMAD_RUNS_DIR=str(runs), SVRMAD_MOST_RUNS='8')}/live"


def choose_server(page, provider, model="fake-ok", key=None):
    """Let a server that the user names answer, as a user would."""
    page.get_by_role("button", name="Key, server").click()
    if key:
        page.get_by_role("textbox", name="A key of your own").fill(key)
        page.get_by_role("textbox", name="A key of your own").press("Enter")
        page.wait_for_timeout(500)
    page.get_by_role("textbox", name="An OpenAI-compatible server").fill(provider.base_url)
    page.get_by_role("textbox", name="An OpenAI-compatible server").press("Enter")
    page.get_by_role("button", name="Ask for its models").click()
    page.get_by_text(re.compile(f"^fake-ok @ {provider.base_url}")).first.wait_for()
    if model != "fake-ok":
        box = page.get_by_role("combobox", name=re.compile("Who answers"))
        page.get_by_role("button", name=re.compile("Clear all")).first.click()
        box.fill(f"{model} @ {provider.base_url}")
        box.press("Enter")
        page.get_by_text(re.compile(f"^{model} @ ")).first.wait_for()
    page.keyboard.press("Escape")


def ask(page, address, provider=None, question=QUESTION, stepwise=False, **server):
    """Fill the form and press the button; returns the run's name."""
    page.goto(address)
    page.get_by_role("textbox", name="Question").fill(question)
    page.get_by_role("textbox", name="Question").press("Control+Enter")
    if provider is not None:
        choose_server(page, provider, **server)
    page.get_by_role("radio", name="As in the paper").click()
    if stepwise:
        page.get_by_text("Step by step").click()
        page.wait_for_timeout(500)
    page.get_by_role("button", name="Start the debate").click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.wait_for_function("() => new URL(location.href).searchParams.get('run')")
    return page.evaluate("() => new URL(location.href).searchParams.get('run')")


def verdict(page):
    """The verdict that the page shows once the run is done."""
    page.locator(".svr-verdict .a").wait_for(timeout=60_000)
    return page.locator(".svr-verdict .a").inner_text()


def step(page):
    return page.locator(".where").inner_text()


def test_a_question_is_asked_the_debate_grows_and_ends_with_a_recording(page, address, runs, asked):
    run = ask(page, address, asked, key=KEY)
    page.get_by_text("thinks").first.wait_for()
    page.get_by_text("running …").wait_for()
    seen = set()
    while not page.locator(".svr-verdict").count():
        if page.locator(".where").count():
            seen.add(page.locator(".where").first.inner_text())
        page.wait_for_timeout(100)
    assert len(seen) > 2
    assert verdict(page)
    recording = load(runs / f"{run}.jsonl")
    assert verify(recording) is None
    assert recording.notices == []
    assert len([r for r in asked.requests if r.method == "POST"]) == recording.events[-1].totals.calls
    # at its end, which it followed
    page.get_by_text(f"step {len(recording.events)} of {len(recording.events)}").wait_for()
    assert KEY not in page.content()
    assert KEY not in page.url
    page.get_by_role("button", name="Measure all-to-all").click()
    page.get_by_text("all-to-all, measured").wait_for()
    (paired,) = [p for p in runs.glob("*all_to_all*") if load(p).started.parent == run]
    assert verify(load(paired)) is None
    for path in runs.rglob("*"):
        assert KEY.encode() not in path.read_bytes()


def test_step_by_step_nothing_is_sent_before_a_press_and_the_page_says_what_will_be(page, address, asked):
    ask(page, address, asked, stepwise=True)
    page.get_by_text("Held. The next step: ask A1, A2, A3, A4, A5, A6 for an initial answer").wait_for()
    page.wait_for_timeout(700)
    assert [r for r in asked.requests if r.method == "POST"] == []
    page.get_by_role("button", name="Step", exact=True).click()
    page.get_by_text(re.compile("The next step: open round 1")).wait_for()
    assert len([r for r in asked.requests if r.method == "POST"]) == 6
    page.get_by_role("button", name="Go on", exact=True).click()
    assert verdict(page)


def test_pause_and_stop_keep_everything(page, address, runs, asked):
    asked.latency = 1.0
    run = ask(page, address, asked)
    page.get_by_role("button", name="Pause", exact=True).click()
    page.get_by_text("Held. The next step").wait_for()
    sent = len(asked.requests)
    page.wait_for_timeout(1500)
    assert len(asked.requests) == sent
    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text("Stopped by hand").first.wait_for()
    recording = load(runs / f"{run}.jsonl")
    assert recording.events[-1].verdict.reason == "stopped"
    assert verify(recording) is None


def test_scrubbing_back_while_it_runs_and_a_button_to_the_live_end(page, address, asked):
    # slow enough for a machine that is busy: what is scrubbed must still be under way
    asked.latency = 5.0
    ask(page, address, asked)
    page.get_by_text(re.compile(r"^step [7-9] of")).wait_for()
    page.keyboard.press("Home")
    page.get_by_text(re.compile("^step 1 of")).wait_for()
    page.get_by_role("button", name="Back to the live end").wait_for()
    page.wait_for_timeout(2500)
    assert step(page).startswith("step 1 of")
    page.get_by_role("button", name="Back to the live end").click()
    page.get_by_text(re.compile(r"^step (\d+) of \1$")).wait_for()
    assert page.get_by_role("button", name="Stop", exact=True).count() == 1
    assert verdict(page)


def test_leaving_reloading_and_a_second_window_neither_stop_nor_double_it(page, chromium, address, runs, asked):
    asked.latency = 3.0
    run = ask(page, address, asked)
    page.get_by_role("link", name="Runs").click()
    page.get_by_text(re.compile("of .* runs")).wait_for()
    page.get_by_role("link", name="Live").click()
    page.get_by_role("button", name=re.compile("Under way")).click()
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    page.reload()
    # after a reload it is still one's own
    page.get_by_role("button", name="Stop", exact=True).wait_for()
    other = chromium.new_context()
    window = other.new_page()
    window.goto(f"{address}?run={run}")
    window.get_by_text("You are watching somebody else's debate").wait_for()
    assert window.get_by_role("button", name="Stop", exact=True).count() == 0
    assert verdict(page) == verdict(window)
    other.close()
    recording = load(runs / f"{run}.jsonl")
    assert verify(recording) is None
    assert len([r for r in asked.requests if r.method == "POST"]) == recording.events[-1].totals.calls


def test_two_visitors_with_two_runs_see_only_their_own(page, chromium, address, asked):
    asked.latency = 4.0
    other = chromium.new_context()
    window = other.new_page()
    mine = ask(page, address, asked, question="Mine: how many?")
    theirs = ask(window, address, asked, question="Theirs: how many?")
    assert mine != theirs
    page.goto(address)
    page.get_by_role("button", name="Under way: Mine").wait_for()
    assert page.get_by_text("Theirs: how many?").count() == 0
    page.goto(f"{address}?run={mine}")
    assert verdict(page)
    assert verdict(window)
    other.close()


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("fake-401", "check the key you gave"),
        ("fake-404", "does not know"),
        ("fake-402", "no credit left"),
        ("fake-context", "too long"),
        ("fake-filter-400", "filter refused"),
        ("fake-reasoning", "spent all its tokens thinking"),
        ("fake-null", "reply was empty"),
        ("fake-filter", "filter took the reply away"),
        ("fake-echo-key-403", "refused the key"),
    ],
)
def test_a_fault_is_one_sentence_that_says_what_to_do(page, address, runs, asked, model, says):
    asked.latency = 0
    run = ask_and_end(page, address, asked, model)
    page.get_by_text(says).first.wait_for()
    text = page.inner_text("body")
    assert "Traceback" not in text
    assert KEY not in page.content()
    assert KEY.encode() not in (runs / f"{run}.jsonl").read_bytes()


def ask_and_end(page, address, provider, model):
    """Like ``ask``, where the run may be over before the page has shown it under way."""
    page.goto(address)
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("textbox", name="Question").press("Control+Enter")
    choose_server(page, provider, model=model, key=KEY)
    page.get_by_role("button", name="Start the debate").click()
    page.locator(".svr-verdict .a").wait_for()
    return page.evaluate("() => new URL(location.href).searchParams.get('run')")


def test_a_server_killed_in_mid_run_leaves_a_run_that_goes_on(page, serve, tmp_path, asked):
    asked.latency = 0.8
    address = serve(SVRMAD_RUNS_DIR=str(tmp_path))
    run = ask(page, f"{address}/live", asked)
    path = tmp_path / f"{run}.jsonl"
    while len(path.read_bytes().splitlines()) < 6:
        time.sleep(0.1)
    os.kill(serve.started[-1].pid, signal.SIGKILL)
    serve.started[-1].wait(10)
    assert load(path).interrupted
    os.utime(path, (time.time() - 600,) * 2)
    again = serve(SVRMAD_RUNS_DIR=str(tmp_path))
    page.goto(f"{again}/?run={run}")
    page.get_by_text("The run was interrupted").wait_for()
    page.goto(f"{again}/live?run={run}")
    page.get_by_role("button", name="Go on with it").click()
    assert verdict(page)
    recording = load(path)
    assert verify(recording) is None
    # none of the initial answers was asked for again
    assert len([e for e in recording.events if e.event == "answered"]) == 6


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_hangs_over_the_edge(chromium, address, width, scheme):
    context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    window = context.new_page()
    window.goto(address)
    window.get_by_role("button", name="Dice").click()
    window.get_by_text("Estimate", exact=True).wait_for()
    fits = "() => document.documentElement.scrollWidth <= window.innerWidth"
    assert window.evaluate(fits)
    window.get_by_role("button", name="Start the debate").click()
    window.get_by_role("button", name="Stop", exact=True).wait_for()
    assert window.evaluate(fits)
    window.locator(".svr-verdict .a").wait_for()
    window.wait_for_timeout(500)
    assert window.evaluate(fits)
    context.close()


def test_the_page_asks_nobody_but_its_server(page, address):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    ask(page, address, question="What is 6 * 7?")
    verdict(page)
    ours = (address.rsplit("/", 1)[0], "ws://", "data:", "blob:")
    assert [url for url in asked if not url.startswith(ours)] == []


def test_while_the_provider_limits_calls_a_countdown_says_so(page, address, asked):
    asked.latency, asked.retry_after = 0, "6"
    page.goto(address)
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("textbox", name="Question").press("Control+Enter")
    choose_server(page, asked, model="fake-429-once")
    page.get_by_role("button", name="Start the debate").click()
    page.get_by_text(re.compile("the provider limits the calls, tries again in [1-9] s")).first.wait_for()
    assert verdict(page)


def test_answers_that_cannot_be_read_are_marked_by_hand(page, address, runs):
    def mumbled(body):
        own = [m["content"] for m in body["messages"][3:] if m["role"] == "assistant"]
        return own[-1] if own else "It might be forty, or so they say"

    with FakeProvider(mumbled) as provider:
        run = ask_and_end(page, address, provider, "fake-ok")
        page.get_by_text("ends without an answer in the form asked for").first.wait_for()
        page.get_by_text("Mark by hand what").click()
        for number in (1, 2, 3, 4):
            box = page.get_by_role("textbox", name=f"The answer of A{number}")
            box.fill("40" if number < 4 else "41")
            box.press("Enter")
            page.wait_for_timeout(400)
        page.get_by_role("button", name="Debate from these answers").click()
        page.wait_for_function("(was) => new URL(location.href).searchParams.get('run') !== was", arg=run)
        page.locator(".svr-verdict .a").wait_for()
    (made,) = [load(p) for p in runs.glob("*.jsonl") if load(p).started.parent == run]
    assert made.started.note.startswith("The answers of A1, A2, A3, A4 were marked by hand")
    assert made.events[-1].verdict.answer in ("40", "41")


def test_a_run_is_saved_under_a_name_and_asked_again(page, address, runs):
    ask(page, address, question="What is 6 * 7?")
    verdict(page)
    page.get_by_role("button", name="Save under a name").click()
    page.get_by_role("textbox", name="Name").fill("my dice/../demo")
    page.get_by_role("textbox", name="Name").press("Enter")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_function("() => new URL(location.href).searchParams.get('run') === 'my-dice..demo'")
    assert load(runs / "my-dice..demo.jsonl").run_id == "my-dice..demo"
    page.get_by_role("button", name="Ask again with other settings").click()
    page.get_by_role("button", name="Start the debate").wait_for()
    assert page.get_by_role("textbox", name="Question").input_value() == "What is 6 * 7?"


def test_for_visitors_from_elsewhere_nothing_is_open(page, serve, tmp_path, asked):
    closed = serve(SVRMAD_RUNS_DIR=str(tmp_path), SVRMAD_OPEN="no", OPENAI_API_KEY=KEY)
    page.goto(f"{closed}/live")
    page.get_by_role("textbox", name="Question").fill(QUESTION)
    page.get_by_role("textbox", name="Question").press("Control+Enter")
    page.get_by_role("button", name="Key, server").click()
    page.get_by_text("Which servers can be asked is set by whoever runs this app").wait_for()
    page.keyboard.press("Escape")
    box = page.get_by_role("combobox", name=re.compile("Who answers"))
    page.get_by_role("button", name=re.compile("Clear all")).first.click()
    box.fill(f"fake-ok @ {asked.base_url}")
    box.press("Enter")
    page.get_by_text("This server does not ask models at").wait_for()
    # an open list hides the rest of the page from roles
    assert page.locator("button", has_text="Start the debate").is_disabled()
    page.keyboard.press("Escape")
    page.get_by_role("button", name=re.compile("Clear all")).first.click()
    box.fill("openai/gpt-4o-mini")
    box.press("Enter")
    page.get_by_text("This server does not ask openai/gpt-4o-mini for visitors").wait_for()
    assert asked.requests == []
    assert KEY not in page.content()


def test_tokens_are_counted_as_they_come_where_that_loses_nothing(page, address):
    said = f"{'step ' * 60}\nAnswer: \\boxed{{6}}\nConfidence: 80"
    with FakeProvider(lambda body: said, token_delay=0.1) as provider:
        ask(page, address, provider, model="fake-reject-logprobs")
        counted = page.locator(".svr-signs .chip", has_text=re.compile(r"· \d+ tokens"))
        counted.first.wait_for()
        assert verdict(page).endswith("6")
        assert any(r.body.get("stream") for r in provider.requests)
