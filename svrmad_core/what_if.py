"""What a recorded run of SVR-MAD would have become with other settings, as far as the recording can tell.

Nothing is invented. A recorded reply is taken over only where its agent would have been sent the very same messages:
what it said and heard before is the same, and so is what it hears now (``prompts.messages`` depends on nothing else).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pydantic import ValidationError

from .debate import Ask, Debate, fold
from .protocols import Answer, Challenge, Choose, Finish, describe
from .protocols.svr_mad import next_step
from .records import ReceiverChosen, RunFinished, Settings, Totals, Verdict
from .signals import prior_of

CHANGEABLE = (
    *("tau", "challengers", "quorum", "accept_after", "prior", "prior_scale", "score", "round_mode", "memory"),
    *("max_rounds", "max_links", "max_tokens_total", "max_cost"),
)
"""Settings that leave a model's replies as they are."""


@dataclass(frozen=True)
class WhatIf:
    """A recorded run under other settings.

    Attributes
    ----------
    events
        The imagined run, as far as the recording can tell; it ends in ``run_finished`` if a verdict was reached.
        Without the recording's pauses: what came after one is earlier by as long as it lasted.
    same
        The step up to which it is the recorded run: so many recorded events, all of them if nothing departs.
    departs
        What it does instead there, in a sentence; None if nothing departs.
    verdict, totals
        What came of it and what it cost; None where the recording cannot tell.
    missing
        The calls whose replies the recording does not hold, where it cannot tell.
    """

    events: list[Any]
    same: int
    departs: str | None
    verdict: Verdict | None
    totals: Totals | None
    missing: tuple[Ask, ...]


def what_if(events: Sequence[Any], **changes: Any) -> WhatIf:
    """Decide a recorded run again with changed settings.

    Parameters
    ----------
    events
        The events of a run of SVR-MAD, finished or not.
    changes
        Fields of ``Settings``, of those in ``CHANGEABLE``.

    Returns
    -------
    WhatIf

    Raises
    ------
    ValueError
        If the events are no run or another protocol's, or a setting is unknown, cannot be changed or has no such
        value; one sentence.
    """
    end = fold(events)
    started = end.started
    if started.protocol != "svr_mad":
        raise ValueError(f"what-if is for runs of svr_mad, and this one is of {started.protocol}")
    if unknown := sorted(set(changes) - set(Settings.model_fields)):
        raise ValueError(f"there is no setting {', '.join(unknown)}; what can be changed is {', '.join(CHANGEABLE)}")
    if fixed := sorted(set(changes) - set(CHANGEABLE)):
        raise ValueError(f"{', '.join(fixed)} cannot be changed afterwards: the replies depend on it")
    try:
        settings = Settings.model_validate(started.settings.model_dump() | changes)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
    replay = _Replay(_without_pauses(events), started.model_copy(update={"settings": settings}))
    missing = replay.run()
    same, departs = replay.compare(missing, end)
    finished = replay.debate.finished
    return WhatIf(
        replay.made,
        same,
        departs,
        finished.verdict if finished is not None else None,
        finished.totals if finished is not None else None,
        missing,
    )


def _without_pauses(events: Sequence[Any]) -> list[Any]:
    """The events but for pauses, each earlier by the time spent paused before it, which no total counts."""
    kept: list[Any] = []
    idle, last = timedelta(), events[0].at
    for event in events:
        if event.event == "resumed":
            idle += max(timedelta(), _between(last, event.at))
        elif event.event != "paused":
            kept.append(event.model_copy(update={"at": _earlier(event.at, idle)}) if idle else event)
        last = event.at
    return kept


def _between(start: str, end: str) -> timedelta:
    try:
        return datetime.fromisoformat(end) - datetime.fromisoformat(start)
    except (ValueError, TypeError):
        return timedelta()


def _earlier(at: str, idle: timedelta) -> str:
    try:
        return (datetime.fromisoformat(at) - idle).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        return at


def _key(debate: Debate, ask: Ask, number: int) -> tuple[Any, ...]:
    """What the messages of a call depend on, and whom it hears.

    ``prompts.messages`` takes the problem, the agent, its conversation, what it hears now and the memory. Problem and
    agents are the recording's; of what was heard only name, reply and answer are sent; memory ``last`` sends the last
    own reply alone. So equal keys are equal messages. The challenger is named because a blank reply is not heard: two
    calls could be sent the same and still be two links.
    """

    def told(heard: Sequence[Any]) -> tuple[Any, ...]:
        return tuple((s.agent, s.reply, s.answer) for s in heard)

    conversation = debate.agents[ask.agent].conversation
    if debate.settings.memory == "last" and conversation:
        past: tuple[Any, ...] = (((), conversation[-1].reply),)
    else:
        past = tuple((told(x.heard), x.reply) for x in conversation)
    return ask, past, told(debate.heard_by(ask, number))


class _Replay:
    """The imagined run while it is made."""

    def __init__(self, recorded: Sequence[Any], started: Any) -> None:
        self.recorded = recorded
        self.replies = _replies(recorded)
        self.debate = Debate(started)
        self.made: list[Any] = [started]
        self.decided: list[Any] = [None]
        self.beliefs: dict[int, int] = {}

    def run(self) -> tuple[Ask, ...]:
        """Decide step after step; returns the calls whose replies are missing."""
        for event in self.recorded:
            if event.event == "answered":
                self._take(self._answered(event), Answer((event.agent,)))
            elif event.event == "turn_failed" and event.round == 0:
                self._take(event.model_copy(update={"seq": self.debate.k}), Answer((event.agent,)))
        while self.debate.finished is None:
            step = next_step(self.debate)
            if isinstance(step, Choose):
                self._take(self._choice(step), step)
            elif isinstance(step, Finish):
                end = RunFinished(
                    seq=self.debate.k, at=self.made[-1].at, verdict=step.verdict, totals=self.debate.totals()
                )
                self._take(end, step)
            elif missing := self._turns(step):
                self.decided.append(step)
                return missing
        return ()

    def _take(self, event: Any, step: Any) -> None:
        self.debate.apply(event)
        self.made.append(event)
        self.decided.append(step)

    def _belief(self, recorded: int | None) -> int | None:
        """A recorded belief's number in the imagined run: by order of appearance there."""
        if recorded is None:
            return None
        return self.beliefs.setdefault(recorded, len(self.beliefs))

    def _answered(self, event: Any) -> Any:
        prior, signal = prior_of(event.turn, self.debate.settings.prior)
        update = {"belief": self._belief(event.belief), "prior": prior, "prior_signal": signal}
        return event.model_copy(update={"seq": self.debate.k, **update})

    def _choice(self, step: Choose) -> ReceiverChosen:
        return ReceiverChosen(
            seq=self.debate.k,
            at=self.made[-1].at,
            round=step.round,
            receiver=step.receiver,
            challengers=list(step.challengers),
            ranking=list(step.ranking),
        )

    def _turns(self, step: Any) -> tuple[Ask, ...]:
        """Take the recorded turns of a step over, or return the calls that are not recorded and take none."""
        if isinstance(step, Answer):
            return tuple(Ask(name) for name in step.agents)
        assert isinstance(step, Challenge)
        asks = [Ask(step.receiver, (c,)) for c in step.challengers]
        found = {ask: self.replies.get(_key(self.debate, ask, step.round), ()) for ask in asks}
        if missing := tuple(ask for ask in asks if not found[ask]):
            return missing
        # in the order in which they arrived
        for ask in sorted(asks, key=lambda a: found[a][0].seq):
            event = found[ask].pop(0)
            self._take(self._turn(event, step.round), step)
        return ()

    def _turn(self, event: Any, number: int) -> Any:
        update: dict[str, Any] = {"seq": self.debate.k, "round": number}
        if event.event == "debated":
            before, after = self.debate.agents[event.receiver].belief, self._belief(event.after)
            update |= {"before": before, "after": after, "retained": None if after is None else after == before}
        return event.model_copy(update=update)

    def compare(self, missing: Sequence[Ask], recorded: Debate) -> tuple[int, str | None]:
        """Up to which recorded step both runs are the same, and what the imagined one does then."""
        waiting = self.decided[-1] if missing else None
        for i, event in enumerate(self.recorded):
            if i < len(self.made) and _alike(event, self.made[i]):
                continue
            if i >= len(self.made) and (ask := _asked_for(event, waiting)):
                if ask not in missing:  # a round sent at once, recorded in part
                    continue
                return event.seq, f"After step {event.seq} {ask.agent} would be sent other messages."
            # past the end of the imagined run, what it waits for
            step = self.decided[min(i, len(self.made))]
            return event.seq, f"After step {event.seq} the protocol would {describe(step)}."
        if len(self.decided) > len(self.recorded) and not _asked_for(self.recorded[-1], waiting):
            # the recording was interrupted; it may have gone on the same way
            step = describe(self.decided[len(self.recorded)])
            if step != describe(next_step(recorded)):
                return recorded.k, f"After step {recorded.k} the protocol would {step}."
        return recorded.k, None


def _asked_for(event: Any, step: Any) -> Ask | None:
    """The call of a step that an event answers, if it is one of its."""
    if not isinstance(step, Challenge):
        return None
    match event.event:
        case "debated":
            ask = Ask(event.receiver, (event.challenger,))
        case "turn_failed":
            ask = Ask(event.agent, tuple(event.heard))
        case _:
            return None
    return ask if event.round == step.round and ask in [Ask(step.receiver, (c,)) for c in step.challengers] else None


def _replies(events: Sequence[Any]) -> dict[tuple[Any, ...], list[Any]]:
    """The recorded turns of the debates, and failures, by what was sent."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    debate = Debate(events[0])
    for event in events[1:]:
        if event.event == "debated":
            ask = Ask(event.receiver, (event.challenger,))
            found.setdefault(_key(debate, ask, event.round), []).append(event)
        elif event.event == "turn_failed" and event.round > 0 and debate.agents.keys() >= set(event.heard):
            found.setdefault(_key(debate, Ask(event.agent, tuple(event.heard)), event.round), []).append(event)
        debate.apply(event)
    return found


def _alike(recorded: Any, made: Any) -> bool:
    """Whether two events are the same decision; other priors may give another ranking and yet the same choice."""
    if recorded.event != made.event:
        return False
    match recorded.event:
        case "receiver_chosen":
            return (recorded.receiver, recorded.challengers) == (made.receiver, made.challengers)
        case "debated":
            return (recorded.receiver, recorded.challenger) == (made.receiver, made.challenger)
        case "answered" | "turn_failed":
            return recorded.agent == made.agent
        case "run_finished":
            a, b = recorded.verdict, made.verdict
            return (a.reason, a.answer, a.agent) == (b.reason, b.answer, b.agent)
    return True
