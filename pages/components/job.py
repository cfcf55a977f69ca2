"""One run that goes on in a thread of the server: a new one, or one that was interrupted."""

from __future__ import annotations

import asyncio
import os
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from svrmad_core import Control, PanelError, Problem, Recorder, Recording, RecordingError, Turn, Verdict, load
from svrmad_core import resume as resume_run
from svrmad_core import run as new_run
from svrmad_core.panels import Panel, Request, panel_for
from svrmad_core.protocols import variant_of
from svrmad_core.records import Agent, Settings
from svrmad_core.secrets import redact

_CAN_BE_PUT_RIGHT = {"auth", "connection", "credit", "not_found"}


@dataclass(frozen=True)
class Asking:
    """One call under way.

    Attributes
    ----------
    agent, heard, round
        Who is asked, having heard whom, in which round (0: the initial answer).
    since
        When it was asked, in seconds since the epoch (``time.time()``).
    waits_until, why
        While the panel waits before it tries again: until when, and the kind of fault; else None.
    """

    agent: str
    heard: tuple[str, ...]
    round: int
    since: float
    waits_until: float | None = None
    why: str | None = None
    tokens: int = 0
    """Pieces of the reply that have come so far; 0 where replies are not streamed."""


class Job(ABC):
    """One run that goes on in a thread of its own.

    Attributes
    ----------
    run_id, path, question
        The run's name and its recording, both known at once, and what it asks; no question until it is known.
    owner
        Whose it is, as the page names its visitors, or None.
    parent_id, method
        Of a new run: whose initial answers it takes over, or None, and what it is a run of.
    steps
        Events in the recording so far, those from before included; 0 until it is read.
    verdict
        How the run ended, or None.
    error
        One sentence on why it got no further, without secrets, or None. The run can then be resumed again.
    done
        True once nothing more will be written.
    """

    def __init__(self, path: Path, owner: str | None = None, paused: bool = False) -> None:
        self.path, self.run_id, self.owner = path, path.stem, owner
        self.question = ""
        self.parent_id: str | None = None
        self.method = ""
        self.reserve = 0.0
        """US dollars that it may spend at most; 0 where no cap is set."""
        self.verdict: Verdict | None = None
        self.error: str | None = None
        self.done = False
        self._events: list[Any] = []
        self._asking: dict[int, Asking] = {}
        self._control = Control(paused)

    # -- looked at from any thread ---------------------------------------------------------------------------------

    @property
    def steps(self) -> int:
        return len(self._events)

    @property
    def events(self) -> list[Any]:
        """The events so far, a copy."""
        return list(self._events)

    def recording(self) -> Recording | None:
        """The run so far as a recording, or None if it has not begun."""
        events = self.events
        return Recording(events, path=self.path) if events else None

    @property
    def asking(self) -> list[Asking]:
        """The calls under way, the oldest first."""
        return sorted(self._asking.copy().values(), key=lambda asking: asking.since)

    @property
    def paused(self) -> bool:
        return self._control.paused

    @property
    def stopping(self) -> bool:
        return self._control.stopped

    @property
    def advice(self) -> str | None:
        """What to do if no agent is left that could be asked: the most frequent of their faults, which says it."""
        events = self.events
        if self.verdict is None or not events:
            return None
        faults = {e.agent: e.message for e in events if e.event == "turn_failed"}
        if len(faults) < len(events[0].agents):
            return None
        return Counter(faults.values()).most_common(1)[0][0]

    # -- steered from any thread -----------------------------------------------------------------------------------

    def pause(self) -> None:
        """Hold before the next step; calls under way finish."""
        self._control.pause()

    def step(self) -> None:
        """Make one step, then hold."""
        self._control.step()

    def go_on(self) -> None:
        """Run on after a pause."""
        self._control.go_on()

    def stop(self) -> None:
        """End the run now, with a vote over the answers so far as its verdict."""
        self._control.stop()

    # -- the job's own thread --------------------------------------------------------------------------------------

    def work(self) -> None:
        """Go on with the run to its end; for the job's thread."""
        try:
            panel, recorder = self._open()
            with recorder:
                asyncio.run(self._drive(panel, recorder))
        except (RecordingError, PanelError, ValueError) as error:
            self.error = redact(str(error))
        except OSError as error:
            self.error = f"The recording cannot be read or written: {error.strerror or type(error).__name__}."
        except Exception as error:
            # its text may hold anything, a key too
            self.error = f"The run broke off with {type(error).__name__}; what was recorded is kept."
        finally:
            self._asking.clear()
            self.done = True

    @abstractmethod
    def _open(self) -> tuple[Panel, Recorder]:
        """The panel that is asked and the file that is written."""

    @abstractmethod
    def _stream(self, panel: Panel, recorder: Recorder) -> AsyncIterator[Any]:
        """The run's events."""

    async def _drive(self, panel: Panel, recorder: Recorder) -> None:
        watched = _Watched(panel, self._asking, getattr(self, "pace", 0.0))
        try:
            await self._follow(watched, recorder)
        finally:
            await watched.aclose()

    async def _follow(self, panel: Panel, recorder: Recorder) -> None:
        events: Any = self._stream(panel, recorder)
        async with aclosing(events) as stream:
            async for event in stream:
                self._events.append(event)
                if event.event == "run_finished":
                    self.verdict = event.verdict


class NewRun(Job):
    """A run that begins; faults silence single agents, and it ends with what is there.

    Parameters
    ----------
    key
        For the models, kept until the panel has it; None: from the environment.
    pace
        Share of the time that simulated agents say they took which they really take; 0: none.
    """

    def __init__(
        self,
        path: Path,
        problem: Problem,
        protocol: str,
        models: list[str],
        settings: Settings,
        key: str | None = None,
        parent: Recording | None = None,
        owner: str | None = None,
        note: str | None = None,
        paused: bool = False,
        pace: float = 0.0,
    ) -> None:
        super().__init__(path, owner, paused)
        self.question, self.protocol, self.pace = problem.question, protocol, pace
        self._problem, self._models, self._settings = problem, models, settings
        self._key, self._parent, self._note = key, parent, note
        self.parent_id = parent.run_id if parent is not None else None
        self.method = variant_of(protocol, settings)

    def work(self) -> None:
        try:
            super().work()
        finally:
            if not self._events:
                self.path.unlink(missing_ok=True)

    def _open(self) -> tuple[Panel, Recorder]:
        panel, self._key = panel_for(self._models, self._settings, self._key), None
        return panel, Recorder(self.path)

    def _stream(self, panel: Panel, recorder: Recorder) -> AsyncIterator[Any]:
        return new_run(
            self._problem,
            self.protocol,
            panel,
            self._settings,
            recorder=recorder,
            control=self._control,
            run_id=self.run_id,
            parent=self._parent,
            note=self._note,
        )


class Resumption(Job):
    """An interrupted run that goes on; a fault its user can put right leaves it interrupted."""

    def _open(self) -> tuple[Panel, Recorder]:
        stamp = _stamp(self.path)
        recording = load(self.path)
        if not recording.interrupted:
            raise RecordingError("The run is finished; there is nothing to resume.")
        started = recording.started
        self.question, self._events, self._recording = started.problem.question, list(recording.events), recording
        panel = panel_for(list(dict.fromkeys(a.model for a in started.agents)), started.settings)
        if _stamp(self.path) != stamp:
            raise RecordingError("The run is still being written by another program: wait until that has ended.")
        return panel, Recorder(self.path, keep=recording.good_bytes)

    def _stream(self, panel: Panel, recorder: Recorder) -> AsyncIterator[Any]:
        return resume_run(self._recording, panel, recorder=recorder, control=self._control)

    async def _drive(self, panel: Panel, recorder: Recorder) -> None:
        fuse = _Fuse(_Watched(panel, self._asking))
        running = asyncio.create_task(self._follow(fuse, recorder))
        blowing = asyncio.create_task(fuse.blown.wait())
        try:
            await asyncio.wait({running, blowing}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                running.cancel()
                # calls are cancelled too, but one that meets its reply misses that (asyncio.wait_for, Python 3.11)
                fuse.let_go.set()
            await asyncio.gather(running, return_exceptions=True)
        finally:
            blowing.cancel()
            await fuse.panel.aclose()
        if fuse.fault is not None and self.verdict is None:
            raise fuse.fault
        running.result()


class _Watched:
    """A panel that notes who is being asked, and until when a call waits before it is tried again."""

    def __init__(self, panel: Panel, asking: dict[int, Asking], pace: float = 0.0) -> None:
        self.panel, self.simulated = panel, panel.simulated
        self._asking, self._pace = asking, pace if panel.simulated else 0.0
        self._count = 0

    def agents(self, settings: Settings) -> list[Agent]:
        return self.panel.agents(settings)

    async def ask(self, request: Request) -> Turn:
        self._count += 1
        number, ask = self._count, request.ask
        self._asking[number] = Asking(ask.agent, ask.heard, request.round, time.time())

        def waits(kind: str, seconds: float) -> None:
            if number in self._asking:
                until = time.time() + seconds
                self._asking[number] = replace(self._asking[number], waits_until=until, why=kind)

        def arrives(count: int) -> None:
            if number in self._asking:
                self._asking[number] = replace(self._asking[number], tokens=count, waits_until=None, why=None)

        try:
            turn = await self.panel.ask(replace(request, on_wait=waits, on_tokens=arrives))
            if self._pace:
                await asyncio.sleep(turn.latency * self._pace)
            return turn
        finally:
            self._asking.pop(number, None)

    async def aclose(self) -> None:
        close = getattr(self.panel, "aclose", None)
        if close is not None:
            await close()


class _Fuse:
    """A panel that ends the job at a fault its user can put right: a key, credit, a name, a server that is down.

    Recorded, such faults would silence one agent after the other and close the run with no answer for good; so the
    run stays interrupted instead, and can be resumed once it is put right.
    """

    def __init__(self, panel: _Watched) -> None:
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


def _stamp(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_mtime_ns, status.st_size


__all__ = ["Asking", "Job", "NewRun", "Resumption"]
