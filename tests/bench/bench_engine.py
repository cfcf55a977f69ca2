"""What the engine costs beside bare LiteLLM calls: ``python -m tests.bench.bench_engine``.

Prints, measured in one run against a real HTTP server in a process of its own:

- wall clock of a 6-agent SVR-MAD run and of all-to-all (T = 2) as a ratio to bare ``litellm.acompletion`` calls
  with the same messages in the same order of waiting, at 200 ms latency;
- CPU time of engine, panel and recording per call beside a bare call, in milliseconds;
- simulated pairwise debates and whole runs a second on one core.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from svrmad_core import LiteLLMPanel, Recorder, Settings, SimulatedPanel, run
from svrmad_core.panels import Request
from svrmad_core.panels.litellm_panel import warm_up
from tests.browser.conftest import free_port

LATENCY = 0.2
REPEATS = 5
MODEL = "openai/fake-ok"
SETTINGS = Settings(agents=6, seed=7, max_tokens=500, tau=1.0, max_rounds=2)
"""tau = 1 is never passed, so that every run makes its two rounds."""


class Noting(LiteLLMPanel):
    """Notes the messages of every call, by the step it belongs to."""

    def __init__(self, base: str) -> None:
        super().__init__([MODEL], api_base=base, api_key="none")
        self.groups: dict[tuple[int, str], list[tuple[list[dict[str, str]], int | None]]] = {}

    async def ask(self, request: Request) -> Any:
        # calls of one step run at once: all answers, one debate, or a whole round of all-to-all
        step = request.ask.heard[0] if len(request.ask.heard) == 1 else ""
        self.groups.setdefault((request.round, step), []).append((request.messages(), request.agent.seed))
        return await super().ask(request)


async def through_the_engine(protocol: str, base: str, folder: Path) -> tuple[float, float, Noting]:
    """Wall and CPU seconds of one recorded run."""
    panel = Noting(base)
    path = folder / f"{protocol}-{time.monotonic_ns()}.jsonl"
    wall, cpu = time.perf_counter(), time.process_time()
    with Recorder(path) as recorder:
        async for _ in run("Which number?", protocol, panel, SETTINGS, recorder=recorder):
            pass
    return time.perf_counter() - wall, time.process_time() - cpu, panel


async def bare(panel: Noting, base: str) -> tuple[float, float]:
    """Wall and CPU seconds of the same calls without the engine."""
    litellm = warm_up()
    wall, cpu = time.perf_counter(), time.process_time()
    for group in panel.groups.values():
        await asyncio.gather(
            *(
                litellm.acompletion(
                    model=MODEL,
                    api_base=base,
                    api_key="none",
                    messages=messages,
                    seed=seed,
                    max_tokens=SETTINGS.max_tokens,
                    logprobs=True,
                    timeout=SETTINGS.timeout,
                )
                for messages, seed in group
            )
        )
    return time.perf_counter() - wall, time.process_time() - cpu


async def beside_bare_calls(base: str, folder: Path) -> None:
    """Print wall-clock ratios and the CPU overhead per call; runs and bare calls take turns."""
    for protocol in ("svr_mad", "all_to_all"):
        await bare((await through_the_engine(protocol, base, folder))[2], base)
        walls: list[tuple[float, float]] = []
        cpus: list[float] = []
        calls = 0
        for _ in range(REPEATS):
            wall, cpu, panel = await through_the_engine(protocol, base, folder)
            bare_wall, bare_cpu = await bare(panel, base)
            calls = sum(map(len, panel.groups.values()))
            walls.append((wall, bare_wall))
            cpus.append((cpu - bare_cpu) / calls * 1000)
        ratio = statistics.median(a / b for a, b in walls)
        print(
            f"{protocol}: {calls} calls in {len(panel.groups)} steps at {LATENCY * 1000:.0f} ms: engine "
            f"{statistics.median(a for a, _ in walls):.3f} s, bare {statistics.median(b for _, b in walls):.3f} s, "
            f"ratio {ratio:.3f} (median of {REPEATS} pairs; aim 1.05)"
        )
        print(f"{protocol}: CPU over bare calls {statistics.median(cpus):+.2f} ms a call")


async def engine_alone(folder: Path) -> None:
    """Print what the engine and the recording cost per call, with a panel that costs nothing, and its rates."""
    runs, calls, debates = 0, 0, 0
    begun = time.process_time()
    while time.process_time() - begun < 3:
        last = None
        async for event in run("Q?", "svr_mad", SimulatedPanel("simulated/hard"), Settings(seed=runs)):
            last = event
        runs += 1
        debates += last.totals.links  # type: ignore[union-attr]
        calls += last.totals.calls  # type: ignore[union-attr]
    seconds = time.process_time() - begun
    print(
        f"simulated, 6 agents, one core: {debates / seconds:.0f} debates/s, {runs / seconds:.0f} whole runs/s (aim 500)"
    )
    recorded = 0
    begun = time.process_time()
    for seed in range(100):
        with Recorder(folder / f"sim-{seed}.jsonl") as recorder:
            async for event in run(
                "Q?", "svr_mad", SimulatedPanel("simulated/hard"), Settings(seed=seed), recorder=recorder
            ):
                last = event
        recorded += last.totals.calls  # type: ignore[union-attr]
    print(f"engine + simulated panel + recording: {(time.process_time() - begun) / recorded * 1000:.2f} ms CPU a call")


async def measure(base: str) -> None:
    """All figures, in one event loop."""
    with tempfile.TemporaryDirectory() as folder:
        parts: list[Callable[[], Awaitable[None]]] = [
            lambda: engine_alone(Path(folder)),
            lambda: beside_bare_calls(base, Path(folder)),
        ]
        for part in parts:
            await part()


def main() -> None:
    """Start the provider in its own process and measure."""
    port = free_port()
    command = [sys.executable, "-m", "tests.fakes.provider", "--port", str(port), "--latency", str(LATENCY)]
    provider = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        warm_up()
        time.sleep(1)
        asyncio.run(measure(f"http://127.0.0.1:{port}/v1"))
    finally:
        provider.terminate()
        provider.wait(10)


if __name__ == "__main__":
    main()
