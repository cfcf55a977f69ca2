"""What a run will take, before it is begun: calls, links, tokens, money and time, as ranges.

The low end is a debate that ends as soon as it can, with short replies; the high end one that uses all of its
rounds, with long ones. Known initial answers (a paired run) narrow both: lengths and speed are then measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from .debate import CHARS_PER_TOKEN, Debate, fold
from .panels.simulated_panel import PREFIX
from .prompts import messages
from .protocols.steps import consensus
from .records import Agent, Problem, Settings

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
_SHORT, _LONG = 120, 900
"""Tokens of a reply whose model is not known."""
_HEARING = 110
"""Tokens of the words around what an agent hears."""
_CONCURRENCY = 8
"""Calls under way at a time, as ``LiteLLMPanel`` has it."""

Prices = Mapping[str, tuple[float, float] | None]
"""model -> (US dollars a prompt token, a completion token); None: unknown."""


class Pace(NamedTuple):
    """How fast replies come: tokens a second written (slow, fast) and read, and calls answered at a time."""

    writes: tuple[float, float]
    reads: float
    at_once: int
    delay: float = 0.5
    """Seconds before the first token."""


AT_A_PROVIDER = Pace((25.0, 120.0), 5000.0, _CONCURRENCY)
ON_THIS_COMPUTER = Pace((6.0, 30.0), 60.0, 1, 0.1)
"""A small model on a few cores, which answers one call after the other."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take; each range is (low, high).

    Attributes
    ----------
    calls, links, rounds, tokens
        Of the whole debate that is still to be asked for. Tokens are prompt and completion tokens.
    cost
        US dollars, or None if a model has no known price.
    seconds
        Wall clock.
    taken_over_calls, taken_over_tokens
        What a paired run takes over and does not ask for again; 0 for a new run.
    """

    calls: tuple[int, int]
    links: tuple[int, int]
    rounds: tuple[int, int]
    tokens: tuple[int, int]
    cost: tuple[float, float] | None
    seconds: tuple[float, float]
    taken_over_calls: int = 0
    taken_over_tokens: int = 0


class _Call(NamedTuple):
    """One call: in which round which agent (from 0) hears how many others."""

    round: int
    agent: int
    heard: int
    counts: bool = True
    """Whether what is heard counts as links."""


_Plan = list[list[_Call]]
"""Steps after the initial answers; the calls of a step are made at the same time."""


class _Outlay(NamedTuple):
    calls: int
    links: int
    tokens: int
    dollars: float | None
    seconds: float


def estimate(
    protocol: str,
    settings: Settings,
    models: Sequence[str],
    problem: Problem,
    *,
    parent: Any = None,
    prices: Prices | None = None,
    pace: Pace | None = None,
) -> Estimate:
    """What a run of a protocol will take.

    Parameters
    ----------
    protocol
        A name of the registry. One that is not known here is taken for all-to-all.
    settings
        Of the run; its rounds, links, tokens and money bound the high end.
    models
        LiteLLM ids or simulated agents, dealt to the agents in turn.
    problem
        The question, whose length counts.
    parent
        A recording (or its events) whose initial answers are taken over: they are not asked for again, and
        lengths and speed are measured from it. None: a new run.
    prices
        For each model; None: looked up in LiteLLM's own price list, which imports LiteLLM unless all are simulated.
    pace
        How fast replies come; None: as the parent measured, else as is usual.

    Returns
    -------
    Estimate

    Raises
    ------
    ValueError
        If there is no model.
    """
    if not models:
        raise ValueError("No model is given: name one, such as openai/gpt-4o.")
    known = _known(parent)
    if known is not None:
        settings = settings.model_copy(update={"agents": len(known.agents)})
    n = settings.agents
    dealt = [models[i % len(models)] for i in range(n)]
    if prices is None:
        prices = prices_of(list(dict.fromkeys(dealt)), settings.api_base)
    pace = pace or _pace(known, dealt, settings)
    short, long = _lengths(known, dealt, settings)
    ends = []
    # an agent that is sure of its answer may end the debate before the others are asked
    gate = int(protocol == "sid_et" and settings.exit_variant == "gate_first")
    for length, speed, plan, alone in (
        (short, max(pace.writes), _shortest(protocol, settings, known), gate),
        (long, min(pace.writes), _longest(protocol, settings, known), 0),
    ):
        rounds = max((call.round for step in plan for call in step), default=0)
        ends.append((_outlay(plan, length, speed, pace, dealt, prices, problem, settings, known, alone), rounds))
    (low, few), (high, many) = ends
    tokens = _within(low.tokens, high.tokens, settings.max_tokens_total)
    cost = None
    if low.dollars is not None and high.dollars is not None:
        cost = _within(low.dollars, high.dollars, settings.max_cost)
    initial = [t for s in known.agents.values() for _, t in s.turns[:1]] if known is not None else []
    return Estimate(
        calls=(low.calls, high.calls),
        links=(low.links, high.links),
        rounds=(few, many),
        tokens=tokens,
        cost=cost,
        seconds=(round(low.seconds, 1), round(high.seconds, 1)),
        taken_over_calls=len(initial),
        taken_over_tokens=sum(t.tokens or 0 for t in initial),
    )


def prices_of(models: Sequence[str], api_base: str | None = None) -> dict[str, tuple[float, float] | None]:
    """What each model's tokens cost, by LiteLLM's own price list: (prompt, completion) in US dollars a token.

    Simulated agents cost nothing. None where no price is known, also at somebody's own server. LiteLLM is imported
    if one of the models is not simulated.
    """
    from .panels.base import PanelError
    from .panels.litellm_panel import LiteLLMPanel

    found: dict[str, tuple[float, float] | None] = {}
    for model in models:
        if model.startswith(PREFIX):
            found[model] = (0.0, 0.0)
            continue
        try:
            found[model] = LiteLLMPanel(model, api_base=api_base).price(model)
        except (PanelError, ValueError):
            found[model] = None
    return found


# -- who will hear whom ------------------------------------------------------------------------------------------------


def _known(parent: Any) -> Debate | None:
    """The debate after a parent's initial answers."""
    if parent is None:
        return None
    events = getattr(parent, "events", parent)
    first = [e for e in events[1:] if e.event == "answered" or (e.event == "turn_failed" and e.round == 0)]
    debate = fold(events[:1])
    for event in first:
        debate.apply(event)
    return debate


def _most_rounds(protocol: str, settings: Settings) -> int:
    usual = {"svr_mad": settings.agents, "self_consistency": 0, "free_mad": 1}.get(protocol, 2)
    return usual if protocol == "self_consistency" or settings.max_rounds is None else settings.max_rounds


def _hears(protocol: str, settings: Settings, known: Debate | None) -> tuple[int, int]:
    """How many others each agent hears in a round, at least and at most."""
    others = settings.agents - 1
    beliefs = len(known.votes()) - 1 if known is not None else others
    match protocol:
        case "sparse":
            return (min(settings.neighbours, others),) * 2
        case "group_debate":
            groups = -(-settings.agents // settings.group_size)
            return settings.agents // groups - 1, -(-settings.agents // groups) - 1
        case "s2_mad":
            return min(1, others), max(min(1, others), beliefs)
        case "sid_et":
            return 0, others
    return others, others


def _round(protocol: str, settings: Settings, number: int, heard: int) -> list[list[_Call]]:
    """The steps of a round in which each agent hears so many others."""
    agents = range(settings.agents)
    if protocol != "group_debate" or not settings.summaries or number < 2:
        return [[_Call(number, a, heard) for a in agents]] if heard else []
    groups = -(-settings.agents // settings.group_size)
    # one call a group writes its summary, which the other groups hear
    return [
        [_Call(number, a, heard + 1, counts=False) for a in range(groups)],
        [_Call(number, a, heard + groups - 1) for a in agents],
    ]


def _agreed(known: Debate | None) -> bool:
    """Whether the debate ends before its first round; not known answers may agree."""
    return known is None or not known.votes() or consensus(known) is not None


def _shortest(protocol: str, settings: Settings, known: Debate | None) -> _Plan:
    if _agreed(known) or not _most_rounds(protocol, settings):
        return []
    assert known is not None
    if protocol == "svr_mad":
        return _challenges(settings, 1, max(1, len(known.agents) - max(known.votes().values())))
    heard = _hears(protocol, settings, known)[0]
    return _cut(_round(protocol, settings, 1, heard), settings)


def _longest(protocol: str, settings: Settings, known: Debate | None) -> _Plan:
    rounds = _most_rounds(protocol, settings)
    if known is not None and _agreed(known):
        return []
    if protocol == "svr_mad":
        return _challenges(settings, rounds, settings.agents - 1)
    heard = _hears(protocol, settings, known)[1]
    # which beliefs there are is known for the first round only
    later = _hears(protocol, settings, None)[1]
    plan = [step for r in range(1, rounds + 1) for step in _round(protocol, settings, r, heard if r == 1 else later)]
    return _cut(plan, settings)


def _challenges(settings: Settings, rounds: int, disagree: int) -> _Plan:
    """Rounds of SVR-MAD with all challengers there can be; the receiver is each agent in turn, by frozen priors one."""
    n, each = settings.agents, min(settings.challengers, disagree)
    if n == 1:
        return []
    plan: _Plan = []
    for number in range(1, rounds + 1):
        receiver = 0 if settings.score == "prior" else (number - 1) % n
        debates = [_Call(number, receiver, 1)] * each
        plan += [debates] if settings.round_mode == "parallel" else [[d] for d in debates]
    return _cut(plan, settings)


def _cut(plan: _Plan, settings: Settings) -> _Plan:
    """The steps that the budget of links lets through."""
    if settings.max_links is None:
        return plan
    kept, links = [], 0
    for step in plan:
        links += sum(call.heard for call in step if call.counts)
        if links > settings.max_links:
            break
        kept.append(step)
    return kept


# -- what that costs ---------------------------------------------------------------------------------------------------


def _lengths(known: Debate | None, dealt: Sequence[str], settings: Settings) -> tuple[float, float]:
    """Tokens of a reply, short and long."""
    if known is not None:
        written = [
            t.completion_tokens if t.completion_tokens is not None else len(t.reply) // CHARS_PER_TOKEN
            for s in known.agents.values()
            for _, t in s.turns
        ]
        if any(written):
            # replies to a challenge were up to 3.6 times as long as the longest initial answer
            return 0.6 * sum(written) / len(written), min(3.6 * max(written), float(settings.max_tokens))
    if all(m.startswith(PREFIX) for m in dealt):
        return _SHORT, 200
    return min(_SHORT, settings.max_tokens), min(_LONG, settings.max_tokens)


def _pace(known: Debate | None, dealt: Sequence[str], settings: Settings) -> Pace:
    if all(m.startswith(PREFIX) for m in dealt):
        return Pace((1e6, 1e6), 1e9, len(dealt), 0.0)
    local = settings.api_base is not None and urlsplit(settings.api_base).hostname in LOOPBACK
    usual = ON_THIS_COMPUTER if local else AT_A_PROVIDER
    if known is None:
        return usual
    turns = [t for s in known.agents.values() for _, t in s.turns if t.latency and t.completion_tokens]
    if not turns:
        return usual
    speeds = [t.completion_tokens / t.latency for t in turns if t.completion_tokens]
    return usual._replace(writes=(min(speeds), max(speeds)), delay=0.0)


def _outlay(
    plan: _Plan,
    reply: float,
    speed: float,
    pace: Pace,
    dealt: Sequence[str],
    prices: Prices,
    problem: Problem,
    settings: Settings,
    known: Debate | None,
    alone: int,
) -> _Outlay:
    """What a plan takes with replies so long, written so fast; at first so many agents answer ``alone``, 0: all."""
    asked = _initial_prompt(problem, known)
    context = [asked] * len(dealt)
    calls = links = 0
    tokens = seconds = 0.0
    dollars: float | None = 0.0

    def take(step: Sequence[_Call]) -> None:
        nonlocal calls, links, tokens, seconds, dollars
        slowest, grown = 0.0, {}
        for _, agent, heard, counts in step:
            more = heard * (reply + _HEARING / 2) + (_HEARING if heard else 0)
            before = context[agent] if settings.memory == "full" or not heard else asked + reply
            prompt = before + more
            calls, links, tokens = calls + 1, links + heard * counts, tokens + prompt + reply
            price = prices.get(dealt[agent])
            if dollars is not None:
                dollars = None if price is None else dollars + prompt * price[0] + reply * price[1]
            # what was read before is kept ready, so only what is new counts
            slowest = max(slowest, pace.delay + (more if heard else asked) / pace.reads + reply / speed)
            grown[agent] = prompt + reply
        for agent, tall in grown.items():
            context[agent] = tall
        seconds += slowest * -(-len(step) // pace.at_once)

    if known is None:
        take([_Call(0, agent, 0) for agent in range(alone or len(dealt))])
    else:
        context = [asked + reply] * len(dealt)
    for step in plan:
        take(step)
    return _Outlay(calls, links, round(tokens), dollars, seconds)


def _initial_prompt(problem: Problem, known: Debate | None) -> float:
    """Tokens of the first prompt: measured, else counted from its letters."""
    if known is not None:
        told = [t.prompt_tokens for s in known.agents.values() for _, t in s.turns[:1] if t.prompt_tokens]
        if told:
            return sum(told) / len(told)
    sent = messages(problem, Agent(name="A1", model="any"), (), ())
    return sum(len(m["content"]) for m in sent) / CHARS_PER_TOKEN + 4 * len(sent)


def _within(low: Any, high: Any, cap: Any) -> tuple[Any, Any]:
    """A range whose high end is the cap; a low end above it stays, since that much is asked for at once."""
    return (low, high) if cap is None else (low, max(low, min(high, cap)))
