"""The one small interface of a panel: whatever answers for the agents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from ..debate import Ask, Debate
from ..prompts import Message, messages_for, summary_messages
from ..records import Agent, Settings, Turn


class PanelError(Exception):
    """A turn that failed for good, after any retries.

    Parameters
    ----------
    kind
        A word for what went wrong: auth, not_found, bad_request, context_length, content_filter, credit,
        rate_limit, timeout, connection, server, bad_reply, not_recorded, internal.
    message
        One sentence that says what is wrong and what to do, with no secret in it.
    attempts
        How often it was tried.
    """

    def __init__(self, kind: str, message: str, attempts: int = 1) -> None:
        super().__init__(message)
        self.kind, self.message, self.attempts = kind, message, attempts


@dataclass(frozen=True)
class Request:
    """One call that a panel is to answer, with the debate as it stands when it is sent.

    ``on_wait`` is told the kind of fault and the seconds a panel waits before it tries again.
    """

    debate: Debate
    ask: Ask
    round: int
    task: Literal["reply", "summary"] = "reply"
    on_wait: Callable[[str, float], None] | None = field(default=None, compare=False)
    on_tokens: Callable[[int], None] | None = field(default=None, compare=False)
    """Told how many pieces (tokens, for most providers) of the reply have come, where that loses nothing."""

    @property
    def agent(self) -> Agent:
        return self.debate.agents[self.ask.agent].agent

    def messages(self) -> list[Message]:
        """The chat messages to send."""
        if self.task == "summary":
            return summary_messages(self.debate, self.ask, self.round)
        return messages_for(self.debate, self.ask, self.round)


class Panel(Protocol):
    """Answers for the agents."""

    simulated: bool

    def agents(self, settings: Settings) -> list[Agent]:
        """The N agents of a run with these settings, A1 ... AN."""
        ...

    async def ask(self, request: Request) -> Turn:
        """One turn, its answer read out of the reply.

        Raises
        ------
        PanelError
            If the turn failed for good.
        """
        ...


def deal_agents(models: list[str], settings: Settings) -> list[Agent]:
    """N agents with the models dealt round-robin, agent i (from 0) seeded with seed + i."""
    return [
        Agent(
            name=f"A{i + 1}",
            model=models[i % len(models)],
            temperature=settings.temperature,
            seed=None if settings.seed is None else settings.seed + i,
        )
        for i in range(settings.agents)
    ]
