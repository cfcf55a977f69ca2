"""Runs that go on in the server, whatever page is open: one job a run, a few at a time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import aclosing
from pathlib import Path
from typing import Any

from svrmad_core import Control, PanelError, Recorder, Recording, RecordingError, Turn, Verdict, load, resume
from svrmad_core.panels import Panel, Request, panel_for
from svrmad_core.records import Agent, Settings
from svrmad_core.secrets import redact

MOST_AT_ONCE = 4
MOST_REMEMBERED = 12
"""Jobs that are done and whose outcome is still shown."""
QUIET_SECONDS = 10.0
QUIET_SECONDS_OF_A_MODEL = 120.0
"""After so long without a new event a run is taken to be dead; a model may take its time for one reply."""

_CAN_BE_PUT_RIGHT = {"auth", "connection", "credit", "not_found"}


class CannotStart(RuntimeError):
    """Why a job was not begun; one sentence."""


class Job:
    """One interrupted run that goes on in a thread of its own.

    Attributes
    ----------
    run_id, question
        The run's name, and what it asks; no question until the recording is read.
    steps
        Events in the recording so far, those from before included; 0 until it is read.
    verdict
        How the run ended, or None.
    error
        One sentence on why it got no further, without secrets, or None. The run can then be resumed again.
    done
        True once nothing more will be written.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.run_id = path, path.stem
        self.question, self.steps = "", 0
        self.verdict: Verdict | None = None
        self.error: str | None = None
        self.done = False
        self._control = Control()

    def stop(self) -> None:
        """End the run now, with a vote over the answers so far as its verdict."""
        self._control.stop()

    @property
    def stopping(self) -> bool:
        return self._control.stopped

    def work(self) -> None:
        """Go on with the run to its end; for the job's thread."""
        try:
            self._resume()
        except (RecordingError, PanelError, ValueError) as error:
            self.error = redact(str(error))
        except OSError as error:
            self.error = f"The recording cannot be read or written: {error.strerror or type(error).__name__}."
        except Exception as error:
            # its text may hold anything, a key too
            self.error = f"The run broke off with {type(error).__name__}; what was recorded is kept."
        finally:
            self.done = True

    def _resume(self) -> None:
        stamp = _stamp(self.path)
        recording = load(self.path)
        if not recording.interrupted:
            raise RecordingError("The run is finished; there is nothing to resume.")
        started = recording.started
        self.question, self.steps = started.problem.question, len(recording.events)
        panel = panel_for(list(dict.fromkeys(a.model for a in started.agents)), started.settings)
        if _stamp(self.path) != stamp:
            raise RecordingError("The run is still being written by another program: wait until that has ended.")
        with Recorder(self.path, keep=recording.good_bytes) as recorder:
            asyncio.run(self._drive(recording, _Fuse(panel), recorder))

    async def _drive(self, recording: Recording, panel: _Fuse, recorder: Recorder) -> None:
        running = asyncio.create_task(self._follow(recording, panel, recorder))
        blowing = asyncio.create_task(panel.blown.wait())
        try:
            await asyncio.wait({running, blowing}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.cancel()
                # calls are cancelled too, but one that meets its reply misses that (asyncio.wait_for, Python 3.11)
                panel.let_go.set()
            await asyncio.gather(running, return_exceptions=True)
        finally:
            blowing.cancel()
            await panel.aclose()
        if panel.fault is not None and self.verdict is None:
            raise panel.fault
        running.result()

    async def _follow(self, recording: Recording, panel: Panel, recorder: Recorder) -> None:
        events: Any = resume(recording, panel, recorder=recorder, control=self._control)
        async with aclosing(events) as stream:
            async for event in stream:
                self.steps = event.seq + 1
                if event.event == "run_finished":
                    self.verdict = event.verdict


class _Fuse:
    """A panel that ends the job at a fault its user can put right: a key, credit, a name, a server that is down.

    Recorded, such faults would silence one agent after the other and close the run with no answer for good; so the
    run stays interrupted instead, and can be resumed once it is put right.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel, self.simulated = panel, panel.simulated
        self.fault: PanelError | None = None
        self.blown, self.let_go = asyncio.Event(), asyncio.Event()

    def agents(self, settings: Settings) -> list[Agent]:
        return self.panel.agents(settings)

    async def ask(self, request: Request) -> Turn:
        try:
            return await self.panel.ask(request)
        except PanelError as error:
            if error.kind not in _CAN_BE_PUT_RIGHT:
                raise
            self.fault = self.fault or error
            # the engine must not hear of the fault before it is cancelled, or it would record it
            self.blown.set()
            await self.let_go.wait()
            raise

    async def aclose(self) -> None:
        close = getattr(self.panel, "aclose", None)
        if close is not None:
            await close()


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


def may_be_running_elsewhere(path: Path, simulated: bool) -> float | None:
    """Seconds since a run that no job here writes was last written to, if that is not long ago; else None."""
    try:
        quiet = max(0.0, time.time() - path.stat().st_mtime)
    except OSError:
        return None
    return quiet if quiet < (QUIET_SECONDS if simulated else QUIET_SECONDS_OF_A_MODEL) else None


# Not in Streamlit's cache: whoever clears that must not make the server forget which files it is writing.
_jobs: dict[str, Job] = {}
_lock = threading.Lock()


def start(path: Path) -> Job:
    """Go on with an interrupted run, unless a job here does so already.

    Parameters
    ----------
    path
        Its recording, which is appended to.

    Returns
    -------
    Job
        The run's job; the one under way if there is one.

    Raises
    ------
    CannotStart
        If as many jobs as may run are running.
    """
    key = str(path.resolve())
    with _lock:
        job = _jobs.get(key)
        if job is not None and not job.done:
            return job
        if sum(not j.done for j in _jobs.values()) >= MOST_AT_ONCE:
            raise CannotStart(f"{MOST_AT_ONCE} runs are under way already: wait for one to end, or stop one.")
        _jobs.pop(key, None)
        job = _jobs[key] = Job(path)
        for old in [k for k, j in _jobs.items() if j.done][:-MOST_REMEMBERED]:
            del _jobs[old]
    threading.Thread(target=job.work, daemon=True, name=f"run-{job.run_id}").start()
    return job


def jobs() -> list[Job]:
    """All jobs that run or whose outcome is still to be shown, oldest first."""
    with _lock:
        return list(_jobs.values())


def job_of(path: Path) -> Job | None:
    """The job that goes on with a run now, or None."""
    with _lock:
        job = _jobs.get(str(path.resolve()))
    return job if job is not None and not job.done else None


def forget(job: Job) -> None:
    """Show the outcome of a job no longer."""
    with _lock:
        if job.done:
            _jobs.pop(str(job.path.resolve()), None)


__all__ = ["CannotStart", "Job", "forget", "job_of", "jobs", "may_be_running_elsewhere", "start"]
