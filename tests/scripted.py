"""A scripted panel, so that a test reads as a debate does: who answered what, who replied what to whom."""

from __future__ import annotations

from typing import Any

from svrmad_core import Agent, Debate, PanelError, Settings, Turn, fold, run
from svrmad_core.panels import Request

VOID = None
"""A reply with no readable answer."""
FAILS = PanelError("timeout", "No answer within 120 s.", 2)

Initial = str | tuple[str | None, float] | PanelError | None
Reply = str | PanelError | None


class ScriptedPanel:
    """Says what the script says.

    ``initial`` holds an answer an agent, or (answer, confidence); ``replies`` the answer of a receiver
    having heard a challenger, by ("A1", "A2"), or of an agent in a round of the other protocols, by
    ("A1", 2). A list is used up from the front. What is not in the script is kept.
    """

    simulated = False

    def __init__(self, initial: list[Initial], replies: dict[tuple[str, Any], Any] | None = None) -> None:
        self.initial = initial
        self.replies = {k: list(v) if isinstance(v, list) else v for k, v in (replies or {}).items()}
        self.requests: list[Request] = []

    def agents(self, settings: Settings) -> list[Agent]:
        return [Agent(name=f"A{i + 1}", model="scripted") for i in range(len(self.initial))]

    async def ask(self, request: Request) -> Turn:
        self.requests.append(request)
        name, heard = request.ask.agent, request.ask.heard
        confidence = None
        if request.task == "summary":
            said = self.replies.get((name, f"summary {request.round}"), "summary")
        elif request.round == 0:
            said: Any = self.initial[int(name[1:]) - 1]
            if isinstance(said, tuple):
                said, confidence = said
        else:
            said = request.debate.agents[name].answer
            for key in ((name, heard[0]) if len(heard) == 1 else None, (name, request.round)):
                if key in self.replies:
                    said = self.replies[key]
                    said = said.pop(0) if isinstance(said, list) else said
                    break
        if isinstance(said, PanelError):
            raise said
        return Turn(
            reply=f"I say {said}",
            answer=said,
            confidence=confidence,
            prompt_tokens=100,
            completion_tokens=50,
            cost=0.01,
            latency=1.0,
            model="scripted",
        )


async def debate(
    initial: list[Initial],
    replies: dict[tuple[str, Any], Any] | None = None,
    protocol: str = "svr_mad",
    **settings: Any,
) -> tuple[Debate, list[Any]]:
    """Run a scripted debate; returns its last state and its events."""
    made = Settings(**{"agents": len(initial)} | settings)
    events = [e async for e in run("Q?", protocol, ScriptedPanel(initial, replies), made)]
    return fold(events), events


def rounds(events: list[Any]) -> list[tuple[str, list[str]]]:
    """(receiver, challengers) of each round as it was chosen."""
    return [(e.receiver, e.challengers) for e in events if e.event == "receiver_chosen"]


def heard(events: list[Any]) -> list[tuple[str, str, str]]:
    """(receiver, challenger, outcome) of each debate, in order."""
    names = {True: "retained", False: "changed", None: "void"}
    return [(e.receiver, e.challenger, names[e.retained]) for e in events if e.event == "debated"]


def verdict(events: list[Any]) -> tuple[str | None, str, str | None]:
    """(answer, reason, agent) at the end."""
    v = events[-1].verdict
    return v.answer, v.reason, v.agent


def without_time(events: list[Any]) -> list[dict[str, Any]]:
    """The events without what differs between two runs: times and the run's name."""
    result = []
    for event in events:
        data = event.model_dump(exclude={"at", "run_id"})
        if "totals" in data:
            data["totals"].pop("seconds")
        result.append(data)
    return result
