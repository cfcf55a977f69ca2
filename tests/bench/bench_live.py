"""What watching costs: ``python -m tests.bench.bench_live``.

Prints the delay from a reply's arrival at the server (the time of its event) to its step standing drawn in a browser
that follows the run, and the wall clock of live runs against the same runs without a page, in a process that has loaded
everything and from the command line, taking turns. The provider is the tests' own, over HTTP; agents disagree in three
groups and keep their answers.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from svrmad_core import LiteLLMPanel, Settings, load
from svrmad_core import run as engine_run
from tests.bench.bench_page import serve
from tests.browser.conftest import CHROMIUM, FLAGS, ROOT
from tests.browser.test_live import QUESTION, ask, stubborn
from tests.fakes.provider import FakeProvider

RUNS = 5
LATENCY = 0.8

# Keeps for each step the time at which the graph was first drawn with it or a later one.
WATCH = """() => {
  window.drawn = {};
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      const k = Number(target.dataset.step);
      if (k) window.drawn[k] ??= Date.now();
    }
  }).observe(document, { subtree: true, attributes: true, attributeFilter: ["data-step"] });
}"""


def up(address: str) -> str:
    """The address, once its server answers."""
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
            return address
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("Streamlit did not start")


def watch(page: Page, address: str, provider: FakeProvider, folder: Path) -> tuple[float, list[float]]:
    """One live run in the browser; its seconds, and the delay of each event in milliseconds."""
    provider._reply = stubborn()
    run = ask(page, f"{address}/live", provider)
    page.evaluate(WATCH)
    page.locator(".svr-verdict .a").wait_for(timeout=120_000)
    page.wait_for_timeout(500)
    drawn = {int(k): at for k, at in page.evaluate("() => window.drawn").items()}
    recording = load(folder / f"{run}.jsonl")
    delays = []
    for event in recording.events[1:]:
        shown = min((at for k, at in drawn.items() if k >= event.seq + 1), default=None)
        if getattr(event, "turn", None) is not None and shown is not None:
            delays.append(shown - datetime.fromisoformat(event.at).timestamp() * 1000)
    return recording.events[-1].totals.seconds, delays


def from_the_command_line(provider: FakeProvider, folder: Path) -> float:
    """The same run without a page; its seconds."""
    provider._reply = stubborn()
    before = set(folder.glob("*.jsonl"))
    command = [sys.executable, "-m", "svrmad_core", "run", QUESTION, "--model", "openai/fake-ok"]
    command += ["--api-base", provider.base_url, "--max-tokens-total", "100000", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, env=dict(os.environ))
    (made,) = set(folder.glob("*.jsonl")) - before
    return load(made).events[-1].totals.seconds


def without_a_page(provider: FakeProvider) -> float:
    """The same run in this process, where all that is loaded once is loaded; its seconds."""
    provider._reply = stubborn()

    async def go() -> float:
        panel = LiteLLMPanel("openai/fake-ok", api_base=provider.base_url)
        settings = Settings(api_base=provider.base_url, max_tokens_total=100_000)
        events = [event async for event in engine_run(QUESTION, "svr_mad", panel, settings)]
        await panel.aclose()
        return events[-1].totals.seconds

    # Playwright's own loop runs in this thread
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, go()).result()


def main() -> None:
    """Run everything and print it."""
    live, alone, warm, delays = [], [], [], []
    with tempfile.TemporaryDirectory() as name, FakeProvider(latency=LATENCY) as provider, sync_playwright() as p:
        folder = Path(name)
        server, address = serve(ROOT / "app.py", name)
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            page.goto(up(address))
            page.locator(".svr-plot[data-step]").first.wait_for(timeout=60_000)
            # the first of each pays for what is loaded once
            watch(page, address, provider, folder)
            without_a_page(provider)
            for _ in range(RUNS):
                seconds, found = watch(page, address, provider, folder)
                live.append(seconds)
                delays += found
                warm.append(without_a_page(provider))
                alone.append(from_the_command_line(provider, folder))
        finally:
            browser.close()
            server.terminate()
            server.wait(10)
    worst = sorted(delays)[int(0.95 * (len(delays) - 1))]
    print(f"reply -> picture   median {statistics.median(delays):.0f} ms, 95% {worst:.0f} ms, {len(delays)} replies")
    one, bare, other = (statistics.median(found) for found in (live, warm, alone))
    print(f"a run, median of {RUNS}: live {one:.2f} s, without a page {bare:.2f} s, ratio {one / bare:.3f}")
    print(
        f"from the command line {other:.2f} s (its first call loads what LiteLLM loads late), ratio {one / other:.3f}"
    )


if __name__ == "__main__":
    main()
