"""The engine: runs a protocol against a panel and yields events. The only place that awaits."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from .answers import same_answer, same_answer_fast
from .debate import Ask, Debate, fold
from .panels.base import Panel, PanelError, Request
from .prompts import PROMPT_VERSION
from .protocols import Answer, Challenge, Choose, Finish, Revise, Summarize, vote
from .protocols import protocol as find_protocol
from .recording import Recorder, Recording, new_run_id
from .records import (
    Answered,
    Debated,
    Paused,
    Problem,
    ReceiverChosen,
    Resumed,
    Revised,
    RunFinished,
    RunStarted,
    Settings,
    Summarized,
    Turn,
    TurnFailed,
)
from .signals import prior_of


class Control:
    """Pause, step, go on and stop a run, from any thread.

    Pausing takes effect before the next step: calls under way finish and are recorded. Stopping cancels the
    calls under way and closes the recording with the verdict ``stopped``.

    Parameters
    ----------
    paused
        Begin paused: nothing is asked before ``step`` or ``go_on``.
    """

    def __init__(self, paused: bool = False) -> None:
        self._lock = threading.Lock()
        self._paused = paused
        self._steps = 0
        self._stopped = False
        self._wakers: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def stopped(self) -> bool:
        return self._stopped

    def pause(self) -> None:
        """Hold before the next step."""
        self._change(paused=True)

    def go_on(self) -> None:
        """Run on after a pause."""
        self._change(paused=False)

    def step(self) -> None:
        """Make one step (an answer round, a choice, a debate, a verdict), then hold again."""
        self._change(paused=True, steps=1)

    def stop(self) -> None:
        """End the run now, keeping all that was recorded."""
        self._change(stopped=True)

    def _change(self, paused: bool | None = None, steps: int = 0, stopped: bool = False) -> None:
        with self._lock:
            self._paused = self._paused if paused is None else paused
            self._steps = self._steps + steps if self._paused else 0
            self._stopped = self._stopped or stopped
            wakers = list(self._wakers)
        for loop, waker in wakers:
            if not loop.is_closed():
                loop.call_soon_threadsafe(waker.set)

    def _may_step(self) -> bool:
        """Take the permission for one step, if there is one."""
        with self._lock:
            if self._stopped or not self._paused:
                return True
            if self._steps:
                self._steps -= 1
                return True
            return False

    def _waker(self) -> asyncio.Event:
        waker = asyncio.Event()
        with self._lock:
            self._wakers.append((asyncio.get_running_loop(), waker))
        return waker

    def _forget(self, waker: asyncio.Event) -> None:
        with self._lock:
            self._wakers = [w for w in self._wakers if w[1] is not waker]


def run(
    problem: Problem | str,
    protocol: str,
    panel: Panel,
    settings: Settings | None = None,
    *,
    recorder: Recorder | None = None,
    control: Control | None = None,
    run_id: str | None = None,
    parent: Recording | Sequence[Any] | None = None,
    note: str | None = None,
) -> AsyncIterator[Any]:
    """Run a debate and yield its events as they happen.

    Parameters
    ----------
    problem
        The question, or its text alone.
    protocol
        A name of the registry, ``PROTOCOLS``.
    panel
        Who answers for the agents.
    settings
        METHOD.md's defaults if None.
    recorder
        Appends each event to a file before it is yielded.
    control
        To pause, step and stop.
    run_id
        The run's name; made from time and protocol if None.
    parent
        A recorded run whose initial answers are taken over as they are asked for, so that a comparison is paired.
    note
        A sentence kept in the record.

    Yields
    ------
    Event
        ``run_started`` first, ``run_finished`` last. Closing the generator earlier cancels the calls under
        way and leaves an interrupted recording that ``resume`` goes on from.

    Raises
    ------
    ValueError
        If there is no such protocol, or the parent's agents do not fit.
    """
    find_protocol(protocol)
    if isinstance(problem, str):
        problem = Problem(question=problem)
    source: Sequence[Any] = parent.events if isinstance(parent, Recording) else (parent or ())
    if source:
        settings = (settings or source[0].settings).model_copy(update={"agents": len(source[0].agents)})
    settings = settings or Settings()
    agents = panel.agents(settings)
    if len(agents) != settings.agents:
        raise ValueError(f"the panel has {len(agents)} agents and the settings ask for {settings.agents}")
    started = RunStarted(
        seq=0,
        schema=1,
        run_id=run_id or new_run_id(protocol),
        protocol=protocol,
        settings=settings,
        problem=problem,
        agents=agents,
        prompt_version=PROMPT_VERSION,
        simulated=panel.simulated or (bool(source) and source[0].simulated),
        parent=source[0].run_id if source else None,
        note=note,
    )
    given = [e for e in source if e.event == "answered" or (e.event == "turn_failed" and e.round == 0)]
    return _Engine(fold([started]), panel, recorder, control or Control()).events([started], given)


def resume(
    recording: Recording | Sequence[Any],
    panel: Panel,
    *,
    recorder: Recorder | None = None,
    control: Control | None = None,
) -> AsyncIterator[Any]:
    """Go on with an interrupted run from the events already recorded, paying for none of them again.

    Yields
    ------
    Event
        ``resumed`` first, then what is new.

    Raises
    ------
    ValueError
        If the run is already finished.
    """
    events = recording.events if isinstance(recording, Recording) else list(recording)
    debate = fold(events)
    if debate.finished is not None:
        raise ValueError(f"the run {debate.started.run_id} is already finished")
    find_protocol(debate.protocol)
    first = Resumed(seq=debate.k)
    debate.apply(first)
    return _Engine(debate, panel, recorder, control or Control()).events([first], [])


class _Engine:
    """One run under way."""

    def __init__(self, debate: Debate, panel: Panel, recorder: Recorder | None, control: Control) -> None:
        self.debate, self.panel, self.recorder, self.control = debate, panel, recorder, control
        self.next_step = find_protocol(debate.protocol).next_step
        self.given: list[Any] = []
        self._renumbered: dict[int, int] = {}

    async def events(self, first: list[Any], given: list[Any]) -> AsyncIterator[Any]:
        """Yield the first events, then the protocol's, to the end; initial answers that are given are not asked for."""
        waker = self.control._waker()
        self.given = given
        try:
            for event in first:
                self._write(event)
                yield event
            while self.debate.finished is None:
                async for event in self._hold(waker):
                    yield event
                if self.control.stopped:
                    yield self._finish(vote(self.debate).verdict.model_copy(update={"reason": "stopped"}))
                    return
                step = self.next_step(self.debate)
                async with aclosing(self._carry_out(step, waker)) as made:
                    async for event in made:
                        yield event
        finally:
            self.control._forget(waker)

    async def _hold(self, waker: asyncio.Event) -> AsyncIterator[Any]:
        """Wait while paused; the pause and its end are recorded."""
        if self.control._may_step():
            return
        if not self.debate.paused:
            yield self._take(Paused(seq=self.debate.k))
        while True:
            await waker.wait()
            waker.clear()
            if self.control._may_step():
                break
        yield self._take(Resumed(seq=self.debate.k))

    async def _carry_out(self, step: Any, waker: asyncio.Event) -> AsyncIterator[Any]:
        """Do one step and yield its events."""
        match step:
            case Answer() if taken := [e for e in self.given if e.agent in step.agents]:
                self.given = [e for e in self.given if e.agent not in step.agents]
                for event in taken:
                    yield self._take(self._taken_over(event))
            case Choose():
                yield self._take(
                    ReceiverChosen(
                        seq=self.debate.k,
                        round=step.round,
                        receiver=step.receiver,
                        challengers=list(step.challengers),
                        ranking=list(step.ranking),
                    )
                )
            case Finish():
                yield self._finish(step.verdict)
            case _:
                async with aclosing(self._ask_all(self._requests(step), waker)) as made:
                    async for event in made:
                        yield event

    def _requests(self, step: Any) -> list[Request]:
        """The calls of a step, which do not wait for each other."""
        match step:
            case Answer():
                return [Request(self.debate, Ask(name), 0) for name in step.agents]
            case Challenge():
                return [Request(self.debate, Ask(step.receiver, (c,)), step.round) for c in step.challengers]
            case Revise():
                return [Request(self.debate, ask, step.round) for ask in step.asks]
            case Summarize():
                return [Request(self.debate, ask, step.round, "summary") for ask in step.asks]
        raise TypeError(f"the protocol returned {step!r}")

    async def _ask_all(self, requests: list[Request], waker: asyncio.Event) -> AsyncIterator[Any]:
        """Ask at the same time, yield each event as its reply arrives; a stop cancels what is under way."""
        arrived: asyncio.Queue[tuple[Request, Turn | PanelError]] = asyncio.Queue()
        tasks = [asyncio.create_task(self._ask(request, arrived)) for request in requests]
        try:
            for _ in requests:
                reply = await self._next_arrival(arrived, waker)
                if reply is None:
                    return
                request, outcome = reply
                yield self._take(await self._event(request, outcome))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _next_arrival(self, arrived: asyncio.Queue[Any], waker: asyncio.Event) -> Any:
        """The next reply, or None if the run is stopped first."""
        getting = asyncio.ensure_future(arrived.get())
        waking = asyncio.ensure_future(waker.wait())
        try:
            while not self.control.stopped:
                await asyncio.wait({getting, waking}, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    return getting.result()
                # woken by a pause or a step: it takes effect after this step
                waker.clear()
                waking = asyncio.ensure_future(waker.wait())
            return None
        finally:
            getting.cancel()
            waking.cancel()

    async def _ask(self, request: Request, arrived: asyncio.Queue[Any]) -> None:
        try:
            outcome: Turn | PanelError = await self.panel.ask(request)
        except PanelError as error:
            outcome = error
        except Exception as error:
            # a fault of a panel must not kill the run; its text may hold anything, so only its name is kept
            outcome = PanelError("internal", f"The panel failed with {type(error).__name__}.")
        await arrived.put((request, outcome))

    async def _event(self, request: Request, outcome: Turn | PanelError) -> Any:
        """The event of a reply, with the belief of its answer decided once and for all."""
        ask, seq = request.ask, self.debate.k
        if isinstance(outcome, PanelError):
            return TurnFailed(
                seq=seq,
                agent=ask.agent,
                kind=outcome.kind,
                message=outcome.message,
                attempts=outcome.attempts,
                round=request.round,
                heard=list(ask.heard),
                summary=request.task == "summary",
            )
        if request.task == "summary":
            # what a summary tells of answers is nobody's own
            turn = outcome.model_copy(update={"answer": None, "confidence": None})
            return Summarized(seq=seq, round=request.round, agent=ask.agent, heard=list(ask.heard), turn=turn)
        belief = await self._belief(outcome.answer)
        if request.round == 0:
            prior, signal = prior_of(outcome, self.debate.settings.prior)
            return Answered(seq=seq, agent=ask.agent, turn=outcome, belief=belief, prior=prior, prior_signal=signal)
        before = self.debate.agents[ask.agent].belief
        current = self.debate.round
        if current is not None and current.number == request.round:
            assert before is not None
            return Debated(
                seq=seq,
                round=request.round,
                receiver=ask.agent,
                challenger=ask.heard[0],
                turn=outcome,
                before=before,
                after=belief,
                retained=None if belief is None else belief == before,
            )
        return Revised(
            seq=seq,
            round=request.round,
            agent=ask.agent,
            heard=list(ask.heard),
            turn=outcome,
            before=before,
            after=belief,
            summaries=list(ask.summaries),
        )

    async def _belief(self, answer: str | None) -> int | None:
        """The number of an answer's belief: the first whose introducing answer is the same, else a new one."""
        if answer is None:
            return None
        kind = self.debate.problem.kind
        unsure: list[int] = []
        for number, known in enumerate(self.debate.beliefs):
            same = same_answer_fast(answer, known, kind)
            if same:
                return number
            if same is None:
                unsure.append(number)
        for number in unsure:
            if await asyncio.to_thread(same_answer, answer, self.debate.beliefs[number], kind):
                return number
        return len(self.debate.beliefs)

    def _taken_over(self, event: Any) -> Any:
        """An initial answer of the parent as an event of this run; its prior by this run's settings."""
        update: dict[str, Any] = {"seq": self.debate.k, "at": self.debate.started.at}
        if event.event == "answered":
            prior, signal = prior_of(event.turn, self.debate.settings.prior)
            # beliefs are numbered in order of appearance, and not all need be taken over
            if (known := event.belief) is not None:
                known = self._renumbered.setdefault(event.belief, len(self.debate.beliefs))
            update |= {"prior": prior, "prior_signal": signal, "belief": known}
        return event.model_copy(update=update)

    def _finish(self, verdict: Any) -> Any:
        event = RunFinished(seq=self.debate.k, verdict=verdict, totals=self.debate.totals())
        self.debate._last_at = event.at
        return self._take(event.model_copy(update={"totals": self.debate.totals()}))

    def _take(self, event: Any) -> Any:
        self.debate.apply(event)
        self._write(event)
        return event

    def _write(self, event: Any) -> None:
        if self.recorder is not None:
            self.recorder.append(event)
