"""The recorded format, schema 1: problems, agents, turns, settings and the events of a run.

A run is a list of events. Each is one JSON object with the literal tag ``event``, a number ``seq``
(0, 1, 2, ...) and a UTC time ``at``. Unknown fields are kept; an unknown event or a newer schema is an error.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

SCHEMA = 1
APP_VERSION = "0.1.0"
MAX_AGENTS = 200

Kind = Literal["math", "choice", "text"]
PriorSignal = Literal["confidence", "perplexity", "min_logprob", "uniform"]
Reason = Literal["accepted", "consensus", "vote", "no_answer", "stopped", "early_exit", "trajectory"]
ExitSignal = Literal["max", "mean", "q90", "q95", "q99"]


def utc_now() -> str:
    """The time now, ISO 8601 in UTC with milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Record(BaseModel):
    """What all records share: unknown fields are kept, not-a-number is refused."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False)


class Problem(Record):
    """A question with an optional reference answer."""

    question: str = Field(min_length=1, max_length=50_000)
    kind: Kind = "math"
    """How answers are read and compared."""
    choices: list[str] = Field(default_factory=list, max_length=26)
    """The options' texts, lettered A, B, C ...; only for kind ``choice``."""
    reference: str | None = None
    """The right answer, if known; no agent ever sees it."""
    id: str | None = None

    @model_validator(mode="after")
    def _choices_fit(self) -> Problem:
        if self.kind == "choice" and len(self.choices) == 1:
            raise ValueError("a choice needs at least two options")
        return self


class Agent(Record):
    """One participant: a name (A1 ... AN) and the model that answers for it."""

    name: str = Field(pattern=r"^A[1-9][0-9]{0,2}$")
    model: str
    persona: str | None = None
    temperature: float | None = None
    seed: int | None = None


class Settings(Record):
    """Every choice of METHOD.md that a run was made with. Defaults are the method's."""

    agents: int = Field(6, ge=1, le=MAX_AGENTS)
    """N, the number of agents."""
    challengers: int = Field(3, ge=1, le=MAX_AGENTS)
    """S, at most so many challengers a round."""
    tau: float = Field(0.5, ge=-1, le=1)
    """A receiver whose score after its round is above this is accepted."""
    quorum: int | None = Field(None, ge=1)
    """Agents that must hold one belief for consensus; None: ceil(0.8 N)."""
    prior: PriorSignal = "confidence"
    prior_scale: Literal["probability", "rank"] = "probability"
    score: Literal["svr", "prior", "beta"] = "svr"
    round_mode: Literal["sequential", "parallel"] = "sequential"
    memory: Literal["full", "last"] = "full"
    neighbours: int = Field(2, ge=1, le=MAX_AGENTS)
    """k of ``sparse``: each agent hears so many nearest on the ring."""
    group_size: int = Field(3, ge=2, le=MAX_AGENTS)
    """Of ``group_debate``."""
    summaries: bool = False
    """``group_debate``: groups stay, and from the second round on hear each other's summaries."""
    exit_variant: Literal["per_agent", "gate_first"] = "per_agent"
    """Who may leave ``sid_et`` early: each agent for itself, or the first agent for all."""
    exit_signal: ExitSignal = "max"
    """``sid_et``: the largest, the mean or a quantile of the token NLLs (minus log-probabilities) of the answer."""
    exit_threshold: float | None = Field(None, ge=0)
    """``sid_et``: leave at or below so many nats; None: ``protocols.sid_et.THRESHOLDS``."""
    exit_confidence: float = Field(0.9, ge=0, le=1)
    """``sid_et``: where a reply has no log-probabilities, leave at or above this stated confidence."""
    accept_after: Literal["round", "debate"] = "round"
    max_rounds: int | None = Field(None, ge=0)
    """None: N for SVR-MAD, 2 (the paper's T) for the other protocols."""
    max_links: int | None = Field(None, ge=0)
    max_tokens_total: int | None = Field(None, ge=1)
    """Prompt and completion tokens of the whole run; see ``Debate.affords``."""
    max_cost: float | None = Field(None, ge=0)
    """US dollars for the whole run; calls without a known price cannot be counted."""
    temperature: float | None = Field(None, ge=0, le=2)
    """None: the provider's default."""
    seed: int | None = None
    """Agent i is asked with seed + i; None: no seed is sent."""
    max_tokens: int = Field(4096, ge=1)
    """Completion tokens of one call."""
    timeout: float = Field(120.0, gt=0)
    """Seconds for one attempt of one call."""
    api_base: str | None = None
    """Where the models are served, without any credentials."""

    @property
    def needed_for_consensus(self) -> int:
        """Agents that must agree: ``quorum``, else ceil(0.8 N) in whole-number arithmetic."""
        return self.quorum if self.quorum is not None else -(-4 * self.agents // 5)


class Signals(Record):
    """What the token log-probabilities (natural logarithm) of a reply say."""

    min_logprob: float
    mean_logprob: float
    perplexity: float
    """exp(-mean log-probability), at least 1."""
    tokens: int
    nll_quantiles: dict[str, float] | None = None
    """``q90``, ``q95``, ``q99`` of the token NLLs in nats, by nearest rank; None in recordings made before these."""


class Turn(Record):
    """One model call of one agent. Tokens or cost that the provider did not tell are None, never 0."""

    reply: str = ""
    answer: str | None = None
    confidence: float | None = Field(None, ge=0, le=1)
    signals: Signals | None = None
    prompt_tokens: int | None = Field(None, ge=0)
    completion_tokens: int | None = Field(None, ge=0)
    cost: float | None = Field(None, ge=0)
    """US dollars."""
    latency: float = Field(0.0, ge=0)
    """Seconds from sending to the whole reply, retries included."""
    model: str = ""
    finish_reason: str | None = None
    reasoning: str | None = None
    """What a reasoning model thought, where the provider tells it; no agent hears it."""

    @property
    def tokens(self) -> int | None:
        """Prompt plus completion tokens, or None if the provider did not tell."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        return self.prompt_tokens + self.completion_tokens


class Verdict(Record):
    """The final answer and why the debate stopped."""

    answer: str | None
    belief: int | None
    reason: Reason
    agent: str | None = None
    """The accepted agent; None for the other reasons."""
    votes: dict[int, int] = Field(default_factory=dict)
    """belief -> number of agents that hold it at the end."""


class Totals(Record):
    """The accounting of METHOD.md. ``cost`` is None if the price of any call is unknown."""

    links: int = 0
    calls: int = 0
    failed: int = 0
    rounds: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    tokens: int = 0
    calls_without_usage: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    """Wall clock from the first event to the last, pauses included."""
    critical_path: float = 0.0
    """Seconds of the longest chain of calls that had to wait for each other."""


class EventBase(Record):
    seq: int = Field(ge=0)
    at: str = Field(default_factory=utc_now)


class RunStarted(EventBase):
    event: Literal["run_started"] = "run_started"
    schema_: int = Field(SCHEMA, alias="schema")
    run_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    protocol: str
    settings: Settings
    problem: Problem
    agents: list[Agent] = Field(min_length=1, max_length=MAX_AGENTS)
    prompt_version: int
    app_version: str = APP_VERSION
    simulated: bool = False
    """True if a simulated panel answers; shown wherever the run is."""
    parent: str | None = None
    """The run whose initial answers were taken over."""
    note: str | None = None

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, populate_by_name=True, serialize_by_alias=True)

    @model_validator(mode="after")
    def _agents_are_numbered(self) -> RunStarted:
        if [a.name for a in self.agents] != [f"A{i + 1}" for i in range(len(self.agents))]:
            raise ValueError("agents must be named A1, A2, ... in order")
        return self


class Answered(EventBase):
    event: Literal["answered"] = "answered"
    agent: str
    turn: Turn
    belief: int | None
    """The class of the answer; None where none could be read."""
    prior: float = Field(ge=0, le=1)
    """On the scale ``probability``."""
    prior_signal: PriorSignal
    """The signal the prior was really taken from, after the fallbacks."""


class ReceiverChosen(EventBase):
    event: Literal["receiver_chosen"] = "receiver_chosen"
    round: int = Field(ge=1)
    receiver: str
    challengers: list[str]
    ranking: list[tuple[str, float, float]]
    """(agent, score, prior), highest first; only agents that have an answer."""


class Debated(EventBase):
    event: Literal["debated"] = "debated"
    round: int = Field(ge=1)
    receiver: str
    challenger: str
    turn: Turn
    before: int
    after: int | None
    retained: bool | None
    """None: a void debate, no readable answer."""


class Revised(EventBase):
    event: Literal["revised"] = "revised"
    round: int = Field(ge=1)
    agent: str
    heard: list[str]
    turn: Turn
    before: int | None
    after: int | None
    summaries: list[str] = Field(default_factory=list)
    """Agents whose summaries of their groups were heard too."""


class Summarized(EventBase):
    """One call that sums up what a group said, for the other groups to hear in this round."""

    event: Literal["summarized"] = "summarized"
    round: int = Field(ge=1)
    agent: str
    """Who wrote it."""
    heard: list[str]
    """Whose last replies it sums up, its own among them."""
    turn: Turn


class TurnFailed(EventBase):
    event: Literal["turn_failed"] = "turn_failed"
    agent: str
    kind: str
    message: str
    """One sentence, secrets removed."""
    attempts: int = Field(1, ge=1)
    round: int = Field(0, ge=0)
    """0: the initial answer."""
    heard: list[str] = Field(default_factory=list)
    summary: bool = False
    """True if the call was to write a summary."""


class Paused(EventBase):
    event: Literal["paused"] = "paused"


class Resumed(EventBase):
    event: Literal["resumed"] = "resumed"


class RunFinished(EventBase):
    event: Literal["run_finished"] = "run_finished"
    verdict: Verdict
    totals: Totals


Event = Annotated[
    RunStarted
    | Answered
    | ReceiverChosen
    | Debated
    | Revised
    | Summarized
    | TurnFailed
    | Paused
    | Resumed
    | RunFinished,
    Field(discriminator="event"),
]
EVENTS: TypeAdapter[Any] = TypeAdapter(Event)
"""Validates one event: ``EVENTS.validate_json(line)``."""
