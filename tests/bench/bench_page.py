"""What a step costs on the Replay page: ``python -m tests.bench.bench_page``.

Prints the time from a key press to both charts standing redrawn and to the step's words following, the same for a
bare fragment with one line of text in the same browser, taking turns, and their ratio; the first view; and a step of
the charts in a run of 6 agents and about 40 steps and in one of 50 agents and about 500, in each view.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from svrmad_core import Recorder, Settings, SimulatedPanel, run
from tests.browser.conftest import CHROMIUM, FLAGS, ROOT, free_port

STEPS = 12


RUNS = {
    "bench": Settings(seed=3, tau=1.0, max_rounds=4),
    "six": Settings(seed=1, tau=1.0, max_rounds=9, quorum=6),
    "fifty": Settings(seed=1, tau=1.0, max_rounds=126, quorum=50, agents=50),
}
VIEWS = ("Scores", "Prior → now", "Beliefs")


async def record(folder: Path) -> None:
    """Runs of 6 agents and about 20 steps, of 6 and about 40, of 50 and about 500."""
    for name, settings in RUNS.items():
        with Recorder(folder / f"{name}.jsonl") as recorder:
            panel = SimulatedPanel("simulated/hard")
            async for _ in run("Which number?", "svr_mad", panel, settings, recorder=recorder, run_id=name):
                pass


def serve(script: Path, folder: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start a script; returns the process and its address."""
    port = free_port()
    command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
    command += ["--server.headless", "true", "--server.address", "127.0.0.1", "--server.fileWatcherType", "none"]
    env = {**os.environ, "SVRMAD_RUNS_DIR": folder, "PYTHONPATH": str(ROOT), "SVRMAD_LOCAL_PORTS": "none"}
    return subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL), f"http://127.0.0.1:{port}"


# Resolves with the milliseconds from the key press until both charts have been redrawn (on the page), and until the
# words have changed too.
PRESS = """([key]) => new Promise((done) => {
  const words = document.querySelector('.svr-words .t'), before = words.innerText;
  const plots = [...document.querySelectorAll('.svr-plot')], steps = plots.map(p => p.dataset.step);
  const begun = performance.now();
  let charts = null;
  const look = () => {
    const past = performance.now() - begun;
    if (charts === null && plots.every((p, i) => p.dataset.step !== steps[i])) charts = past;
    const now = document.querySelector('.svr-words .t');
    if (charts !== null && now && now.innerText !== before) done([charts, past]);
    else if (past > 5000) done([NaN, NaN]);
    else requestAnimationFrame(look);
  };
  document.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, composed: true }));
  requestAnimationFrame(look);
})"""


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as p:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, record(Path(folder))).result()
        servers = [serve(ROOT / "app.py", folder), serve(Path(__file__).with_name("bare_page.py"), folder)]
        try:
            time.sleep(6)
            browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
            context = browser.new_context(viewport={"width": 1280, "height": 1000})
            print_first_view(context, f"{servers[0][1]}/?run=bench&step=8", f"{servers[1][1]}")
            print_steps(context, servers)
            print_scrubbing(context, servers[0][1])
            browser.close()
        finally:
            for process, _ in servers:
                process.terminate()
                process.wait(10)


def print_first_view(context: Any, page_address: str, bare_address: str) -> None:
    """First view with a warm server and a warm browser cache, page and bare in turn."""
    found: dict[str, list[float]] = {"words": [], "charts": [], "bare": []}
    for _ in range(4):
        for address in (page_address, bare_address):
            window = context.new_page()
            begun = time.perf_counter()
            window.goto(address)
            window.wait_for_selector(".svr-words .t")
            found["words" if address == page_address else "bare"].append(time.perf_counter() - begun)
            if address == page_address:
                window.wait_for_function("() => document.querySelectorAll('.svr-plot .main-svg').length >= 2")
                found["charts"].append(time.perf_counter() - begun)
            window.close()
    words, charts, bare = (statistics.median(times[1:]) for times in found.values())
    print(f"first view, warm: timeline and words {words:.2f} s, charts {charts:.2f} s; bare page {bare:.2f} s")


def print_steps(context: Any, servers: list[tuple[Any, str]]) -> None:
    """Steps on the page and on the bare page in turn, and the ratio of their medians."""
    page, bare = context.new_page(), context.new_page()
    page.goto(f"{servers[0][1]}/?run=bench&step=2")
    bare.goto(servers[1][1])
    for window in (page, bare):
        window.wait_for_selector(".where")
    page.wait_for_selector(".svr-plot .main-svg")
    page.wait_for_timeout(2000)
    found: dict[str, list[tuple[float, float]]] = {"page": [], "bare": []}
    for _ in range(STEPS):
        for name, window in (("page", page), ("bare", bare)):
            window.bring_to_front()
            found[name].append(window.evaluate(PRESS, ["ArrowRight"]))
            window.wait_for_timeout(500)
    charts = statistics.median(c for c, _ in found["page"][2:])
    words, bare_words = (statistics.median(w for _, w in found[name][2:]) for name in ("page", "bare"))
    print(f"a step, charts: {charts:.0f} ms; ratio to a bare fragment's rerun {charts / bare_words:.2f}")
    print(
        f"a step, all of the page: {words:.0f} ms, bare fragment {bare_words:.0f} ms, "
        f"ratio {words / bare_words:.2f} (aim 1.5)"
    )


# The milliseconds of eight steps of the charts, each until the browser has drawn it, with time to rest between them.
STEPS_OF_CHARTS = """async () => {
  const found = [];
  for (let i = 0; i < 8; i++) {
    const begun = performance.now();
    document.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true, composed: true }));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    found.push(performance.now() - begun);
    await new Promise((done) => setTimeout(done, 700));
  }
  return found;
}"""


# The same for two bare charts of one line of ten points in Plotly: the least that a step of two charts can cost.
STEPS_OF_BARE_CHARTS = """async () => {
  const places = [1, 2].map(() => { const div = document.createElement('div'); div.style.height = '300px'; document.body.append(div); return div; });
  const draw = (i) => places.forEach((div) => Plotly.react(div, [{ x: [...Array(10).keys()], y: Array.from({ length: 10 }, (_, j) => (i * j) % 7) }], {}));
  const found = [];
  for (let i = 0; i < 8; i++) {
    const begun = performance.now();
    draw(i);
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
    found.push(performance.now() - begun);
    await new Promise((done) => setTimeout(done, 300));
  }
  places.forEach((div) => { Plotly.purge(div); div.remove(); });
  return found;
}"""  # noqa: E501


def print_scrubbing(context: Any, address: str) -> None:
    """A step of the charts in a short and in a long run, in each view, late in the run."""
    page = context.new_page()
    for name, aim in (("six", 100), ("fifty", 200)):
        page.goto(f"{address}/?run={name}&step=12")
        page.wait_for_selector(".svr-plot .main-svg")
        steps = int(page.locator(".where").inner_text().split()[-1])
        found = []
        for view in VIEWS:
            page.get_by_text(view, exact=True).click()
            page.get_by_label("Step of the run").fill(str(int(steps * 0.7)))
            page.wait_for_timeout(3000)
            found.append(f"{view} {statistics.median(page.evaluate(STEPS_OF_CHARTS)):.0f} ms")
        bare = statistics.median(page.evaluate(STEPS_OF_BARE_CHARTS))
        found.append(f"two bare charts {bare:.0f} ms")
        agents = RUNS[name].agents
        print(f"a step of the charts, {agents} agents, {steps} steps: {', '.join(found)} (aim under {aim} ms)")


if __name__ == "__main__":
    main()
