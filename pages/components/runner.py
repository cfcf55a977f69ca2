"""Runs that go on in the server, whatever page is open: one job a run, a few at a time."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from svrmad_core import Problem, Recording
from svrmad_core.recording import new_run_id, runs_folder
from svrmad_core.records import Settings

from .job import Asking, Job, NewRun, Resumption

MOST_AT_ONCE = 4
MOST_EACH = 2
MOST_REMEMBERED = 12
"""Jobs that are done and whose outcome is still shown."""
QUIET_SECONDS = 10.0
QUIET_SECONDS_OF_A_MODEL = 120.0
"""After so long without a new event a run is taken to be dead; a model may take its time for one reply."""


class CannotStart(RuntimeError):
    """Why a job was not begun; one sentence."""


class Limits(NamedTuple):
    """How much may go on: runs at a time of all and of one owner, and an owner's US dollars since the server started.

    No purse: no limit. What a run under way may still spend counts as spent.
    """

    most_runs: int = MOST_AT_ONCE
    most_each: int = MOST_EACH
    purse: float | None = None


# Not in Streamlit's cache: whoever clears that must not make the server forget which files it is writing.
_jobs: dict[str, Job] = {}
_spent: dict[str, float] = {}
"""Owner -> US dollars of runs that are done."""
_owners: dict[str, str] = {}
"""Run -> its owner, as long as the server runs."""
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
    limits: Limits | None = None,
    hidden: bool = False,
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
        Whose run it is; None: nobody's, and only the limit of all holds.
    note
        A sentence kept in the record.
    paused
        Ask nothing before ``step`` or ``go_on``.
    folder
        Where its recording goes; None: to the own runs.
    pace
        Share of the seconds that simulated agents say they took which they really take; 0: they answer at once.
    limits
        None: the usual ones.
    hidden
        Give the run a name that cannot be guessed: its link alone then leads to it.

    Returns
    -------
    Job
        Its ``run_id`` and ``path`` are known at once; what goes wrong later is its ``error``.

    Raises
    ------
    CannotStart
        If as many jobs as may run are running, or the owner's purse does not hold what the run may cost.
    """
    name = new_run_id(protocol) + (f"-{secrets.token_hex(12)}" if hidden else "")
    path = (folder or runs_folder()) / f"{name}.jsonl"
    return _launch(
        path,
        owner,
        limits or Limits(),
        settings.max_cost or 0.0,
        lambda: NewRun(path, problem, protocol, models, settings, api_key, parent, owner, note, paused, pace),
    )


def start(path: Path, owner: str | None = None, limits: Limits | None = None, cost: float = 0.0) -> Job:
    """Go on with an interrupted run, unless a job here does so already.

    Parameters
    ----------
    path
        Its recording, which is appended to.
    owner, limits
        As in ``begin``.
    cost
        US dollars that it may cost at most; 0 where no cap is set.

    Returns
    -------
    Job
        The run's job; the one under way if there is one.

    Raises
    ------
    CannotStart
        If as many jobs as may run are running.
    """
    return _launch(path, owner, limits or Limits(), cost, lambda: Resumption(path, owner))


def _launch(path: Path, owner: str | None, limits: Limits, cost: float, make: Callable[[], Job]) -> Job:
    key = str(path.resolve())
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.done:
            return job
        running = [j for j in _jobs.values() if not j.done]
        if len(running) >= limits.most_runs:
            raise CannotStart(f"{limits.most_runs} runs are under way already: wait for one to end, or stop one.")
        if owner is not None:
            mine = [j for j in running if j.owner == owner]
            if len(mine) >= limits.most_each:
                raise CannotStart(
                    f"You have {limits.most_each} runs under way already: wait for one to end, or stop one."
                )
            left = (
                None if limits.purse is None else limits.purse - _spent.get(owner, 0.0) - sum(j.reserve for j in mine)
            )
            if left is not None and cost > max(0.0, left):
                raise CannotStart(
                    f"Your runs here may cost {limits.purse:g} USD in all, and {max(0.0, left):.2f} are left: "
                    "lower the cap on money."
                )
        _jobs.pop(key, None)
        job = _jobs[key] = make()
        job.reserve = cost
        if owner is not None:
            _owners[job.run_id] = owner
        for old in [k for k, j in _jobs.items() if j.done][:-MOST_REMEMBERED]:
            del _jobs[old]
    threading.Thread(target=_work, args=(job,), daemon=True, name=f"run-{job.run_id}").start()
    return job


def _work(job: Job) -> None:
    before = len(job.events)
    job.work()
    if job.owner is not None:
        with _lock:
            _spent[job.owner] = _spent.get(job.owner, 0.0) + _paid(job, before)


def _paid(job: Job, before: int) -> float:
    """US dollars of the calls that this job made; those of a parent or of an earlier part were paid before."""
    events = job.events
    parent = events[0].parent if events else None
    turns = (e for e in events[before:] if not (parent and e.event == "answered"))
    return sum(e.turn.cost or 0.0 for e in turns if getattr(e, "turn", None) is not None)


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


def owner_of(run_id: str) -> str | None:
    """Who began a run since the server started, or None."""
    return _owners.get(run_id)


def forget(job: Job) -> None:
    """Show the outcome of a job no longer."""
    with _lock:
        if job.done:
            _jobs.pop(str(job.path.resolve()), None)


__all__ = [
    "Asking",
    "CannotStart",
    "Job",
    "Limits",
    "begin",
    "forget",
    "job_of",
    "jobs",
    "may_be_running_elsewhere",
    "named",
    "owner_of",
    "start",
]
