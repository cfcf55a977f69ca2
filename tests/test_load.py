"""Many live runs at once: nothing lost, nothing mixed, nothing left running, and no key anywhere."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time

from pages.components import runner
from svrmad_core import Problem, Settings, load, verify
from svrmad_core.panels.litellm_panel import warm_up
from tests.fakes.provider import FakeProvider

RUNS, AGENTS = 10, 8
KEY = "sk-load-0123456789abcdefghijkl"


def sockets() -> int:
    """Sockets that this process holds open."""
    folder = f"/proc/{os.getpid()}/fd"
    found = 0
    for name in os.listdir(folder):
        try:
            found += os.readlink(f"{folder}/{name}").startswith("socket:")
        except OSError:
            continue
    return found


def ours() -> list[str]:
    """Threads of runs that are under way."""
    return [t.name for t in threading.enumerate() if t.name.startswith("run-")]


def tasks() -> int:
    """Tasks that are not done, on whatever loop: of this test's own there is none."""
    gc.collect()
    return sum(not task.done() for task in gc.get_objects() if isinstance(task, asyncio.Task))


def go(folder, provider, seed):
    settings = Settings(agents=AGENTS, api_base=provider.base_url, seed=seed, round_mode="parallel")
    problem = Problem(question=f"Question number {seed}: which number?", reference="42")
    limits = runner.Limits(most_runs=RUNS, most_each=RUNS)
    return runner.begin(
        problem,
        "svr_mad",
        ["openai/fake-ok"],
        settings,
        folder=folder,
        api_key=KEY,
        owner=f"visitor-{seed}",
        limits=limits,
    )


def wait(jobs, seconds=90):
    end = time.time() + seconds
    while not all(job.done for job in jobs):
        assert time.time() < end, [job.steps for job in jobs]
        time.sleep(0.05)


def test_ten_runs_of_eight_agents_at_once(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    warm_up()
    with FakeProvider(latency=0.2) as provider:
        # the first run makes what stays for good: executors, the process that compares answers
        wait([go(tmp_path / "first", provider, 100)])
        time.sleep(0.5)
        before = threading.active_count(), sockets(), tasks()
        provider.most_in_flight = 0
        jobs = [go(tmp_path, provider, seed) for seed in range(RUNS)]
        wait(jobs)
        assert provider.most_in_flight >= 3 * AGENTS
        for seed, job in enumerate(jobs):
            assert job.error is None
            recording = load(job.path)
            assert recording.notices == []
            assert verify(recording) is None
            assert recording.started.problem.question.startswith(f"Question number {seed}:")
            assert [e.seq for e in job.events] == [e.seq for e in recording.events]
            mine = [r for r in provider.requests if f"Question number {seed}:" in str(r.body)]
            assert len(mine) == recording.events[-1].totals.calls
        deadline = time.time() + 20
        while time.time() < deadline and (provider.open_connections or ours() or sockets() > before[1]):
            time.sleep(0.1)
            gc.collect()
        assert ours() == []
        assert provider.open_connections == 0
        assert sockets() <= before[1]
        assert threading.active_count() <= before[0]
        assert tasks() <= before[2]
    for path in tmp_path.rglob("*.jsonl"):
        assert KEY.encode() not in path.read_bytes()
    assert KEY not in caplog.text
    for job in runner.jobs():
        assert KEY not in repr(vars(job))
        runner.forget(job)


def test_stopping_lets_all_calls_go(tmp_path):
    with FakeProvider(latency=30) as provider:
        jobs = [go(tmp_path, provider, seed) for seed in range(4)]
        while provider.in_flight < 4 * AGENTS:
            time.sleep(0.05)
        for job in jobs:
            job.stop()
        wait(jobs, 15)
        assert all(job.verdict.reason == "stopped" for job in jobs)
        assert all(verify(load(job.path)) is None for job in jobs)
        assert ours() == []
    for job in jobs:
        runner.forget(job)
