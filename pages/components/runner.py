"""Runs that go on in the server, whatever page is open: one job a run, a few at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from svrmad_core import Problem, Recording
from svrmad_core.recording import new_run_id, runs_folder
from svrmad_core.records import Settings

from .job import Asking, Job, NewRun, Resumption

MOST_AT_ONCE = 4
MOST_EACH = 2
"""Runs of one visitor at a time."""
MOST_REMEMBERED = 12
"""Jobs that are done and whose outcome is still shown."""
QUIET_SECONDS = 10.0
QUIET_SECONDS_OF_A_MODEL = 120.0
"""After so long without a new event a run is taken to be dead; a model may take its time for one reply."""


class CannotStart(RuntimeError):
    """Why a job was not begun; one sentence."""


# Not in Streamlit's cache: whoever clears that must not make the server forget which files it is writing.
_jobs: dict[str, Job] = {}
_lock = threading.Lock()


def begin(
    problem: Problem,
    protocol: str,
    models: list[str],
    settings: Settings,
    *,
    api_key: str | None = None,
    parent: Recording | None = None,
    owner: str | None = None,
    note: str | None = None,
    paused: bool = False,
    folder: Path | None = None,
    pace: float = 0.0,
) -> Job:
    """Begin a new run, or a paired one from a parent's initial answers.

    Parameters
    ----------
    problem, protocol, models, settings
        What is asked, how, of whom; models are dealt to the agents in turn.
    api_key
        The key for all of the models, kept in memory only; None: from the environment.
    parent
        The run whose initial answers are taken over.
    owner
        Whose run it is: one owner has at most ``MOST_EACH`` at a time. None: nobody's.
    note
        A sentence kept in the record.
    paused
        Ask nothing before ``step`` or ``go_on``.
    folder
        Where its recording goes; None: to the own runs.
    pace
        Share of the seconds that simulated agents say they took which they really take; 0: they answer at once.

    Returns
    -------
    Job
        Its ``run_id`` and ``path`` are known at once; what goes wrong later is its ``error``.

    Raises
    ------
    CannotStart
        If as many jobs as may run are running.
    """
    path = (folder or runs_folder()) / f"{new_run_id(protocol)}.jsonl"
    return _launch(
        path,
        owner,
        lambda: NewRun(path, problem, protocol, models, settings, api_key, parent, owner, note, paused, pace),
    )


def start(path: Path, owner: str | None = None) -> Job:
    """Go on with an interrupted run, unless a job here does so already.

    Parameters
    ----------
    path
        Its recording, which is appended to.
    owner
        As in ``begin``.

    Returns
    -------
    Job
        The run's job; the one under way if there is one.

    Raises
    ------
    CannotStart
        If as many jobs as may run are running.
    """
    return _launch(path, owner, lambda: Resumption(path, owner))


def _launch(path: Path, owner: str | None, make: Callable[[], Job]) -> Job:
    key = str(path.resolve())
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.done:
            return job
        running = [j for j in _jobs.values() if not j.done]
        if len(running) >= MOST_AT_ONCE:
            raise CannotStart(f"{MOST_AT_ONCE} runs are under way already: wait for one to end, or stop one.")
        if owner is not None and sum(j.owner == owner for j in running) >= MOST_EACH:
            raise CannotStart(f"You have {MOST_EACH} runs under way already: wait for one to end, or stop one.")
        _jobs.pop(key, None)
        job = _jobs[key] = make()
        for old in [k for k, j in _jobs.items() if j.done][:-MOST_REMEMBERED]:
            del _jobs[old]
    threading.Thread(target=job.work, daemon=True, name=f"run-{job.run_id}").start()
    return job


def may_be_running_elsewhere(path: Path, simulated: bool) -> float | None:
    """Seconds since a run that no job here writes was last written to, if that is not long ago; else None."""
    try:
        quiet = max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None
    return quiet if quiet < (QUIET_SECONDS if simulated else QUIET_SECONDS_OF_A_MODEL) else None


def jobs() -> list[Job]:
    """All jobs that run or whose outcome is still to be shown, oldest first."""
    with _lock:
        return list(_jobs.values())


def job_of(path: Path) -> Job | None:
    """The job that goes on with a run now, or None."""
    with _lock:
        job = _jobs.get(str(path.resolve()))
    return job if job is not None and not job.done else None


def named(run_id: str) -> Job | None:
    """The job of a run by the run's name, under way or done, or None."""
    return next((job for job in jobs() if job.run_id == run_id), None)


def forget(job: Job) -> None:
    """Show the outcome of a job no longer."""
    with _lock:
        if job.done:
            _jobs.pop(str(job.path.resolve()), None)


__all__ = [
    "Asking",
    "CannotStart",
    "Job",
    "begin",
    "forget",
    "job_of",
    "jobs",
    "may_be_running_elsewhere",
    "named",
    "start",
]
