"""What a folder of 5,000 recordings costs: ``python -m tests.bench.bench_library``.

Prints the seconds of the first list of them, of a list after one of them has changed, and of the pages Runs and Replay
in a process that has shown both before, without those runs.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from svrmad_core import Problem, Recorder, Settings, SimulatedPanel, run
from svrmad_core.recording import list_runs

ROOT = Path(__file__).parents[2]
RUNS, KINDS = 5_000, 20


async def record(path: Path, seed: int) -> None:
    """A simulated run of 6 agents."""
    with Recorder(path) as recorder:
        problem, panel = Problem(question=f"Which number is {seed}?", reference="42"), SimulatedPanel("simulated/hard")
        async for _ in run(problem, "svr_mad", panel, Settings(seed=seed), recorder=recorder, run_id=path.stem):
            pass


def fill(folder: Path) -> None:
    """Make the recordings: copies of a few runs, by other names."""
    made = []
    for seed in range(KINDS):
        path = folder / f"kind-{seed}.jsonl"
        asyncio.run(record(path, seed))
        made.append((f'"{path.stem}"'.encode(), path.read_bytes()))
        path.unlink()
    for i in range(RUNS):
        name, data = made[i % KINDS]
        (folder / f"run-{i:05d}.jsonl").write_bytes(data.replace(name, f'"run-{i:05d}"'.encode()))


def seconds(do: Callable[[], object]) -> float:
    """How long it takes."""
    begun = time.perf_counter()
    do()
    return time.perf_counter() - begun


def view(app: AppTest, page: str) -> float:
    """Seconds that the server works for a view of a page."""
    app.switch_page(page)
    took = seconds(app.run)
    assert not app.exception
    return took


def main() -> None:
    """Measure and print."""
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder, empty = Path(name, "runs"), Path(name, "empty")
        folder.mkdir()
        empty.mkdir()
        fill(folder)
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=60)
        os.environ["SVRMAD_RUNS_DIR"] = str(empty)
        for page in ("pages/replay.py", "pages/runs.py"):
            view(app, page)
        os.environ["SVRMAD_RUNS_DIR"] = str(folder)
        print(f"page Runs, {RUNS:,} runs, none read before: {view(app, 'pages/runs.py'):.2f} s (aim 2)")
        print(f"page Runs, again: {view(app, 'pages/runs.py'):.2f} s")
        print(f"page Replay: {view(app, 'pages/replay.py'):.2f} s")
        elsewhere = folder.rename(Path(name, "elsewhere"))
        print(f"first list: {seconds(lambda: list_runs(elsewhere)):.2f} s")
        changed = elsewhere / "run-00042.jsonl"
        changed.write_bytes(b"".join(changed.read_bytes().splitlines(keepends=True)[:-1]))
        print(f"list after one of them changed: {seconds(lambda: list_runs(elsewhere)):.3f} s")


if __name__ == "__main__":
    main()
