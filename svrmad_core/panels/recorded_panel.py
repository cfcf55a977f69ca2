"""A panel that plays a recording: its initial answers, or every turn it holds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from ..records import Agent, Settings, Turn
from .base import Panel, PanelError, Request

Key = tuple[str, int, tuple[str, ...], str]
"""(agent, round, heard, task)"""


class RecordedPanel:
    """Plays the turns of a recording and hands what it does not hold to another panel.

    Parameters
    ----------
    events
        The recording's events.
    then
        Who answers where the recording has no such turn; None: such a turn fails with kind
        ``not_recorded``.
    only_initial
        Play the initial answers and nothing else.
    """

    def __init__(self, events: Sequence[Any], then: Panel | None = None, only_initial: bool = False) -> None:
        self._started = events[0]
        self.simulated = self._started.simulated or (then is not None and then.simulated)
        self._then = then
        self._turns: dict[Key, tuple[int, Any]] = {}
        for event in events:
            key = _key(event)
            if key is not None and not (only_initial and key[1] > 0):
                self._turns[key] = (len(self._turns), event)

    def agents(self, settings: Settings) -> list[Agent]:
        return list(self._started.agents)

    async def ask(self, request: Request) -> Turn:
        found = self._turns.get((request.ask.agent, request.round, request.ask.heard, request.task))
        if found is None:
            if self._then is None:
                raise PanelError("not_recorded", "The recording does not hold this turn.")
            return await self._then.ask(request)
        place, event = found
        # calls that run at the same time come back in the recorded order: the n-th waits n turns of the loop
        for _ in range(place):
            await asyncio.sleep(0)
        if event.event == "turn_failed":
            raise PanelError(event.kind, event.message, event.attempts)
        return event.turn


def _key(event: Any) -> Key | None:
    """The call that an event answers, if it is a turn."""
    match event.event:
        case "answered":
            return event.agent, 0, (), "reply"
        case "debated":
            return event.receiver, event.round, (event.challenger,), "reply"
        case "revised":
            return event.agent, event.round, tuple(event.heard), "reply"
        case "summarized":
            return event.agent, event.round, tuple(event.heard), "summary"
        case "turn_failed":
            return event.agent, event.round, tuple(event.heard), "summary" if event.summary else "reply"
    return None
