"""The state of a run after k events, and the fold that makes it.

Every screen, protocol and check reads a ``Debate``; only ``Debate.apply`` changes one. The fold trusts the
events (what was decided once is recorded) and refuses those that cannot be, with a ``ValueError``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

from . import scoring
from .records import (
    Agent,
    Answered,
    Debated,
    Problem,
    ReceiverChosen,
    Revised,
    RunFinished,
    RunStarted,
    Settings,
    Summarized,
    Totals,
    Turn,
    TurnFailed,
    Verdict,
)
from .signals import prior_of

CHARS_PER_TOKEN = 4
"""A usual estimate, used only to hold a token budget where a provider tells no usage."""


class Said(NamedTuple):
    """What an agent said last, as others hear it."""

    agent: str
    reply: str
    answer: str | None
    belief: int | None
    round: int
    group: tuple[str, ...] = ()
    """Not empty: this is not the agent's own reply but its summary of what these said."""


class Exchange(NamedTuple):
    """One step of an agent's conversation: what it heard, and what it replied."""

    heard: tuple[Said, ...]
    reply: str


class Ask(NamedTuple):
    """One call to be made: who is asked, having heard whom. Nobody heard: the initial answer."""

    agent: str
    heard: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    """Agents whose summaries of their groups are heard too."""


class Link(NamedTuple):
    """One directed communication challenger -> receiver, and what came of it."""

    seq: int
    round: int
    challenger: str
    receiver: str
    before: int | None
    after: int | None
    challenger_belief: int | None
    retained: bool | None


@dataclass
class AgentState:
    """One agent after k events."""

    agent: Agent
    index: int
    turns: list[tuple[int, Turn]] = field(default_factory=list)
    """(round, turn) in order; round 0 is the initial answer."""
    said: list[Said] = field(default_factory=list)
    conversation: list[Exchange] = field(default_factory=list)
    answer: str | None = None
    belief: int | None = None
    initial_belief: int | None = None
    prior: float = 0.0
    """On the scale of the settings (``prior_scale``)."""
    prior_probability: float = 0.0
    prior_signal: str | None = None
    retained: int = 0
    changed: int = 0
    void: int = 0
    failure: TurnFailed | None = None
    """The failed turn after which the agent is not asked again."""

    @property
    def name(self) -> str:
        return self.agent.name

    @property
    def answered(self) -> bool:
        """True once the initial turn has come (with or without a readable answer) or failed."""
        return bool(self.turns) or self.failure is not None

    @property
    def debates(self) -> int:
        """D = r + c; void debates are not counted."""
        return self.retained + self.changed

    @property
    def svr(self) -> float | None:
        """Survival rate, or None before the first debate."""
        return scoring.svr(self.retained, self.changed) if self.debates else None


@dataclass
class Round:
    """A round of SVR-MAD: one choice of receiver, with its challengers."""

    number: int
    receiver: str
    challengers: tuple[str, ...]
    start_belief: int
    outcomes: dict[str, tuple[int | None, Turn | None]] = field(default_factory=dict)
    """challenger -> (belief after, turn); (None, None) where the turn failed."""
    heard: dict[str, Said] = field(default_factory=dict)

    @property
    def waiting(self) -> list[str]:
        """Challengers that have not been heard, in order."""
        return [c for c in self.challengers if c not in self.outcomes]


class Debate:
    """A run after its first ``k`` events.

    Parameters
    ----------
    started
        The first event of the run.
    """

    def __init__(self, started: RunStarted) -> None:
        self.started = started
        self.settings: Settings = started.settings
        self.problem: Problem = started.problem
        self.agents: dict[str, AgentState] = {a.name: AgentState(a, i) for i, a in enumerate(started.agents)}
        self.beliefs: list[str] = []
        """belief number -> the answer that introduced it."""
        self.rounds = 0
        self.round: Round | None = None
        """The round that SVR-MAD is in; it stays until the next one is chosen."""
        self.links: list[Link] = []
        self.summaries: dict[tuple[int, str], Said | None] = {}
        """(round, who wrote it) -> a summary heard in that round; None: writing it failed."""
        self.verdict: Verdict | None = None
        self.finished: RunFinished | None = None
        self.k = 1
        self.paused = False
        self.calls = self.failed = self.prompt_tokens = self.completion_tokens = 0
        self.calls_without_usage = 0
        self.known_cost = 0.0
        self.cost_unknown = False
        self.critical_path = 0.0
        self._budget_tokens = 0
        self._longest_completion = 0
        self._tried: set[tuple[str, str, int | None, int | None]] = set()
        self._step_latency: dict[int | str, float] = {}
        self._idle = 0.0
        self._last_at = started.at

    # -- reading ---------------------------------------------------------------------------------------

    @property
    def protocol(self) -> str:
        return self.started.protocol

    def score(self, name: str) -> float:
        """The score an agent is ranked by: SVR (or the Beta posterior) once debated, else its prior.

        With ``score="prior"`` it stays frozen at the prior (the ablation). The Beta score of an agent that
        has not debated is 2p - 1, so that it compares with the others.
        """
        state = self.agents[name]
        kind = self.settings.score
        if kind == "beta":
            return scoring.beta_score(state.prior, state.retained, state.changed)
        if kind == "prior" or not state.debates:
            return state.prior
        return scoring.svr(state.retained, state.changed)

    def acceptance_score(self, name: str) -> float | None:
        """What is held against tau: SVR, or the Beta score; None before any debate.

        A prior alone never accepts, so with the score frozen at the prior acceptance still asks for SVR.
        """
        state = self.agents[name]
        if not state.debates:
            return None
        return self.score(name) if self.settings.score == "beta" else state.svr

    def ranking(self) -> list[tuple[str, float, float]]:
        """Agents that have an answer as (name, score, prior), by (score, prior, lower index first)."""
        return scoring.ranking(
            (s.name, self.score(s.name), s.prior, s.index) for s in self.agents.values() if s.belief is not None
        )

    def challengers_left(self, receiver: str) -> list[str]:
        """Agents that may challenge the receiver now, by ranking.

        They hold another belief, have an answer, and have not challenged this receiver while both held
        the beliefs that they hold now.
        """
        mine = self.agents[receiver].belief
        return [
            name
            for name, _, _ in self.ranking()
            if name != receiver
            and self.agents[name].belief != mine
            and (receiver, name, mine, self.agents[name].belief) not in self._tried
        ]

    def votes(self) -> Counter[int]:
        """belief -> number of agents that hold it now."""
        return Counter(s.belief for s in self.agents.values() if s.belief is not None)

    def holders(self, belief: int) -> list[str]:
        """Agents that hold a belief now, by index."""
        return [s.name for s in self.agents.values() if s.belief == belief]

    def last_said(self, name: str, before_round: int) -> Said | None:
        """What an agent had said last when a round began, or None if there is nothing to hear."""
        for said in reversed(self.agents[name].said):
            if said.round < before_round:
                return said
        return None

    def done_in_round(self, number: int) -> set[str]:
        """Agents whose turn of that round has come or failed."""
        return {
            s.name
            for s in self.agents.values()
            if (s.failure is not None and s.failure.round == number) or any(r == number for r, _ in s.turns[-1:])
        }

    def in_round(self, number: int) -> list[str]:
        """Agents that could be asked when that round began: initial turn came, no failure before it."""

        def failed_before(failure: TurnFailed) -> bool:
            return failure.round < number or (failure.summary and failure.round == number)

        return [s.name for s in self.agents.values() if s.turns and not (s.failure and failed_before(s.failure))]

    def heard_by(self, ask: Ask, round_number: int) -> tuple[Said, ...]:
        """What the asked agent will hear, as it was when the round began."""
        said = [self.last_said(name, round_number) for name in ask.heard]
        said += [self.summaries.get((round_number, name)) for name in ask.summaries]
        return tuple(s for s in said if s is not None)

    def lacking(self, asks: Sequence[Ask], links: bool = True) -> str | None:
        """The budget that these calls would overrun: ``links``, ``tokens``, ``money``, or None.

        Calls that write summaries make no links: ``links=False``.

        Links are exact. Tokens and money are forecast: each call's prompt from what its context holds,
        its completion as long as the longest so far; so a cap is overrun by at most what the calls of one
        step write beyond that.
        """
        s = self.settings
        more = sum(len(a.heard) + len(a.summaries) for a in asks) if links else 0
        if s.max_links is not None and len(self.links) + more > s.max_links:
            return "links"
        if s.max_tokens_total is None and s.max_cost is None:
            return None
        tokens = sum(self._forecast(a) for a in asks)
        if s.max_tokens_total is not None and self._budget_tokens + tokens > s.max_tokens_total:
            return "tokens"
        if s.max_cost is not None and self._budget_tokens:
            price = self.known_cost / self._budget_tokens
            if self.known_cost + tokens * price > s.max_cost or self.known_cost >= s.max_cost > 0:
                return "money"
        return None

    def totals(self) -> Totals:
        """The accounting so far."""
        return Totals(
            links=len(self.links),
            calls=self.calls,
            failed=self.failed,
            rounds=self.rounds,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            tokens=self.prompt_tokens + self.completion_tokens,
            calls_without_usage=self.calls_without_usage,
            cost=None if self.cost_unknown else round(self.known_cost, 8),
            seconds=round(max(0.0, _seconds_between(self.started.at, self._last_at) - self._idle), 3),
            critical_path=round(self.critical_path, 3),
        )

    # -- folding ---------------------------------------------------------------------------------------

    def apply(self, event: Any) -> Debate:
        """Take one more event into the state and return it.

        Raises
        ------
        ValueError
            If the event cannot follow: an unknown agent, a belief out of order, anything after the end.
        """
        if self.finished is not None:
            raise ValueError("an event after run_finished")
        handler = _HANDLERS.get(event.event)
        if handler is None:
            raise ValueError(f"a second {event.event}")
        handler(self, event)
        self.k += 1
        self._last_at = event.at
        return self

    def _state(self, name: str) -> AgentState:
        try:
            return self.agents[name]
        except KeyError:
            raise ValueError(f"there is no agent {name!r}") from None

    def _learn(self, turn: Turn, belief: int | None) -> None:
        """Check and note the belief of a turn."""
        if (belief is None) != (turn.answer is None):
            raise ValueError("a turn has a belief exactly if it has an answer")
        if belief is None:
            return
        if belief == len(self.beliefs):
            self.beliefs.append(turn.answer or "")
        elif not 0 <= belief < len(self.beliefs):
            raise ValueError(f"belief {belief} is out of order")

    def _account(self, turn: Turn, step: int | str) -> None:
        self.calls += 1
        self.prompt_tokens += turn.prompt_tokens or 0
        self.completion_tokens += turn.completion_tokens or 0
        if turn.tokens is None:
            self.calls_without_usage += 1
        self._budget_tokens += turn.tokens if turn.tokens is not None else len(turn.reply) // CHARS_PER_TOKEN
        self._longest_completion = max(self._longest_completion, _completion_tokens(turn))
        if turn.cost is None:
            self.cost_unknown = True
        else:
            self.known_cost += turn.cost
        self._wait(turn.latency, step)

    def _wait(self, latency: float, step: int | str) -> None:
        """Calls of one step run at the same time: the step takes as long as its slowest call."""
        before = self._step_latency.get(step, 0.0)
        if latency > before:
            self.critical_path += latency - before
            self._step_latency[step] = latency

    def _forecast(self, ask: Ask) -> int:
        state = self.agents[ask.agent]
        heard = sum(_completion_tokens(self.agents[h].turns[-1][1]) for h in ask.heard if self.agents[h].turns)
        heard += len(ask.summaries) * self._longest_completion
        if not state.turns:
            return self._longest_completion
        own = state.turns[-1 if self.settings.memory == "full" else 0][1]
        context = own.tokens if own.tokens is not None else len(own.reply) // CHARS_PER_TOKEN
        return context + heard + self._longest_completion

    def _on_answered(self, event: Answered) -> None:
        state = self._state(event.agent)
        if state.answered:
            raise ValueError(f"{event.agent} answers twice")
        turn = event.turn
        self._learn(turn, event.belief)
        self._account(turn, 0)
        state.turns.append((0, turn))
        state.answer, state.belief, state.initial_belief = turn.answer, event.belief, event.belief
        state.prior_probability, state.prior_signal = prior_of(turn, self.settings.prior)
        if turn.reply.strip():
            state.said.append(Said(state.name, turn.reply, turn.answer, event.belief, 0))
            state.conversation.append(Exchange((), turn.reply))
        self._scale_priors()

    def _scale_priors(self) -> None:
        known = [s for s in self.agents.values() if s.turns]
        values = [s.prior_probability for s in known]
        if self.settings.prior_scale == "rank":
            values = scoring.rank_scale(values)
        for state, value in zip(known, values, strict=True):
            state.prior = value

    def _on_receiver_chosen(self, event: ReceiverChosen) -> None:
        receiver = self._state(event.receiver)
        if receiver.belief is None:
            raise ValueError(f"{event.receiver} has no answer to defend")
        for name in event.challengers:
            self._state(name)
        if event.round != self.rounds + 1:
            raise ValueError(f"round {event.round} follows round {self.rounds}")
        self.rounds = event.round
        self.round = Round(event.round, event.receiver, tuple(event.challengers), receiver.belief)

    def _on_debated(self, event: Debated) -> None:
        state, challenger = self._state(event.receiver), self._state(event.challenger)
        current = self._current_round(event.round, event.receiver, event.challenger)
        if event.before != state.belief:
            raise ValueError(f"{event.receiver} held belief {state.belief}, not {event.before}")
        retained = None if event.after is None else event.after == event.before
        if event.retained is not retained:
            raise ValueError("retained does not fit the beliefs before and after")
        self._learn(event.turn, event.after)
        parallel = self.settings.round_mode == "parallel"
        self._account(event.turn, event.round if parallel else -event.seq)
        state.turns.append((event.round, event.turn))
        self._tried.add((state.name, challenger.name, event.before, challenger.belief))
        self.links.append(
            Link(
                event.seq,
                event.round,
                challenger.name,
                state.name,
                event.before,
                event.after,
                challenger.belief,
                retained,
            )
        )
        if retained is None:
            state.void += 1
        elif retained:
            state.retained += 1
        else:
            state.changed += 1
        current.outcomes[challenger.name] = (event.after, event.turn)
        heard = self.last_said(challenger.name, event.round)
        if heard is not None:
            current.heard[challenger.name] = heard
        if not parallel:
            self._adopt(state, event.round, event.turn, event.after, (heard,) if heard else ())
        self._close_parallel_round()

    def _current_round(self, number: int, receiver: str, challenger: str) -> Round:
        current = self.round
        if current is None or (current.number, current.receiver) != (number, receiver):
            raise ValueError(f"{receiver} is not the receiver of round {number}")
        if challenger not in current.waiting:
            raise ValueError(f"{challenger} is not waiting to challenge {receiver}")
        return current

    def _close_parallel_round(self) -> None:
        """Take the plurality of a parallel round once its last outcome is in; a tie keeps the old belief."""
        current = self.round
        if self.settings.round_mode != "parallel" or current is None or current.waiting:
            return
        counts = Counter(after for after, _ in current.outcomes.values() if after is not None)
        if not counts:
            return
        most = max(counts.values())
        leaders = [belief for belief, n in counts.items() if n == most]
        outcome = leaders[0] if len(leaders) == 1 else current.start_belief
        for challenger in current.challengers:
            after, turn = current.outcomes[challenger]
            if turn is not None and after == outcome:
                heard = current.heard.get(challenger)
                state = self.agents[current.receiver]
                self._adopt(state, current.number, turn, outcome, (heard,) if heard else ())
                return

    def _adopt(self, state: AgentState, number: int, turn: Turn, belief: int | None, heard: tuple[Said, ...]) -> None:
        """Make a reply the agent's own; a void one leaves its belief, reasoning and conversation."""
        if belief is None:
            return
        state.belief, state.answer = belief, turn.answer
        state.said.append(Said(state.name, turn.reply, turn.answer, belief, number))
        state.conversation.append(Exchange(heard, turn.reply))

    def _on_revised(self, event: Revised) -> None:
        state = self._state(event.agent)
        for name in event.heard:
            self._state(name)
        if event.round not in (self.rounds, self.rounds + 1) or event.round < 1:
            raise ValueError(f"round {event.round} follows round {self.rounds}")
        if event.before != state.belief:
            raise ValueError(f"{event.agent} held belief {state.belief}, not {event.before}")
        self.rounds = event.round
        self._learn(event.turn, event.after)
        self._account(event.turn, event.round)
        heard = self.heard_by(Ask(event.agent, tuple(event.heard), tuple(event.summaries)), event.round)
        state.turns.append((event.round, event.turn))
        retained = None if event.after is None else event.after == event.before
        for said in heard:
            self.links.append(
                Link(
                    event.seq,
                    event.round,
                    said.agent,
                    state.name,
                    event.before,
                    event.after,
                    said.belief,
                    retained,
                )
            )
        self._adopt(state, event.round, event.turn, event.after, heard)

    def _on_summarized(self, event: Summarized) -> None:
        state = self._state(event.agent)
        for name in event.heard:
            self._state(name)
        if event.round != self.rounds + 1:
            raise ValueError(f"a summary for round {event.round} follows round {self.rounds}")
        if event.turn.answer is not None:
            raise ValueError("a summary is nobody's answer")
        self._account(event.turn, f"summaries of round {event.round}")
        text = event.turn.reply.strip()
        said = Said(state.name, event.turn.reply, None, None, event.round, tuple(event.heard)) if text else None
        self.summaries[event.round, state.name] = said

    def _on_turn_failed(self, event: TurnFailed) -> None:
        state = self._state(event.agent)
        state.failure = event
        self.failed += 1
        if event.summary:
            self.summaries[event.round, state.name] = None
            return
        if event.round == 0:
            return
        if self.round is not None and self.round.number == event.round:
            for challenger in event.heard:
                if challenger in self.round.waiting:
                    self.round.outcomes[challenger] = (None, None)
            self._close_parallel_round()
        else:
            self.rounds = max(self.rounds, event.round)

    def _on_paused(self, event: Any) -> None:
        self.paused = True

    def _on_resumed(self, event: Any) -> None:
        self.paused = False
        self._idle += max(0.0, _seconds_between(self._last_at, event.at))

    def _on_run_finished(self, event: RunFinished) -> None:
        self.verdict = event.verdict
        self.finished = event


_HANDLERS = {
    "answered": Debate._on_answered,
    "receiver_chosen": Debate._on_receiver_chosen,
    "debated": Debate._on_debated,
    "revised": Debate._on_revised,
    "summarized": Debate._on_summarized,
    "turn_failed": Debate._on_turn_failed,
    "paused": Debate._on_paused,
    "resumed": Debate._on_resumed,
    "run_finished": Debate._on_run_finished,
}


def fold(events: Iterable[Any], k: int | None = None) -> Debate:
    """The state of a run after its first ``k`` events.

    Parameters
    ----------
    events
        The events of a run, the first a ``run_started``.
    k
        How many to take, at least 1; None takes all.

    Returns
    -------
    Debate

    Raises
    ------
    ValueError
        If there is no first event, it is not ``run_started``, or an event cannot follow.
    """
    iterator = iter(events)
    first = next(iterator, None)
    if first is None or first.event != "run_started":
        raise ValueError("a run begins with run_started")
    debate = Debate(first)
    for event in islice(iterator, None if k is None else max(0, k - 1)):
        debate.apply(event)
    return debate


def _completion_tokens(turn: Turn) -> int:
    return turn.completion_tokens if turn.completion_tokens is not None else len(turn.reply) // CHARS_PER_TOKEN


def _seconds_between(start: str, end: str) -> float:
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
