"""Runs from the same initial answers beside each other: one row a run, the ratio to all-to-all, where two part.

A difference between paired runs is their protocols', because the initial answers are the same. What those cost is
counted in every row, also where a replay took them over and paid nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from .answers import same_answer
from .debate import Debate, fold
from .protocols import VARIANTS, variant_of, variant_title
from .recording import RecordingError, RunInfo, list_runs, load
from .records import Problem

BASELINE = "all_to_all"


class NotPaired(ValueError):
    """Why runs cannot be compared; one sentence."""


@dataclass(frozen=True)
class Row:
    """One run of a comparison.

    Attributes
    ----------
    run_id, method, title
        The run, and what it is a run of: a key of ``VARIANTS`` and its title.
    simulated
        True if no model was asked.
    answer, reason
        Of the verdict; None for both: interrupted.
    right
        Whether the answer is the reference; None without a reference or a verdict.
    links, calls, rounds
        Counts; ``calls`` are those that came back, initial answers included.
    prompt_tokens, completion_tokens, tokens
        Of all calls, initial answers included.
    cost
        US dollars; None: unknown.
    seconds, critical_path
        Wall clock, the initial answers included, and the longest chain of calls that had to wait for each other.
    largest_prompt
        Tokens of the longest prompt; None if the provider told none.
    tokens_ratio, links_ratio
        Over those of all-to-all; None if there is no finished run of it, or it has none.
    """

    run_id: str
    method: str
    title: str
    simulated: bool
    answer: str | None
    reason: str | None
    right: bool | None
    links: int
    calls: int
    rounds: int
    prompt_tokens: int
    completion_tokens: int
    tokens: int
    cost: float | None
    seconds: float
    critical_path: float
    largest_prompt: int | None
    tokens_ratio: float | None = None
    links_ratio: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The row as plain data."""
        return asdict(self)


def compare(runs: Sequence[Sequence[Any]]) -> list[Row]:
    """One row for each run, in the order of ``VARIANTS``.

    Parameters
    ----------
    runs
        The events of each run; all from the same initial answers.

    Raises
    ------
    NotPaired
        If there is none, or two do not begin from the same initial answers.
    """
    if not runs:
        raise NotPaired("There is nothing to compare.")
    for other in runs[1:]:
        check_paired(runs[0], other)
    rows = [row(events) for events in runs]
    base = next((r for r in rows if r.method == BASELINE and r.reason not in (None, "stopped")), None)
    found = [_beside(r, base) for r in rows]
    order = list(VARIANTS)
    return sorted(found, key=lambda r: (order.index(r.method) if r.method in order else len(order), r.run_id))


def row(events: Sequence[Any]) -> Row:
    """The row of one run, without ratios."""
    debate = fold(events)
    started, totals, verdict = debate.started, debate.totals(), debate.verdict
    initial = [turn.latency for s in debate.agents.values() for number, turn in s.turns if number == 0]
    prompts = [e.turn.prompt_tokens for e in events if getattr(e, "turn", None) is not None]
    told = [p for p in prompts if p is not None]
    return Row(
        run_id=started.run_id,
        method=variant_of(started.protocol, started.settings),
        title=variant_title(started.protocol, started.settings),
        simulated=started.simulated,
        answer=verdict.answer if verdict else None,
        reason=verdict.reason if verdict else None,
        right=is_right(debate),
        links=totals.links,
        calls=totals.calls,
        rounds=totals.rounds,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        tokens=totals.tokens,
        cost=totals.cost,
        # a paired run took its initial answers over in no time: they are asked all at once, so the slowest counts
        seconds=round(totals.seconds + (max(initial, default=0.0) if started.parent else 0.0), 3),
        critical_path=totals.critical_path,
        largest_prompt=max(told, default=None),
    )


def is_right(debate: Debate) -> bool | None:
    """Whether the verdict is the reference answer; None without a reference or before the verdict."""
    problem, verdict = debate.problem, debate.verdict
    if problem.reference is None or verdict is None:
        return None
    if verdict.answer is None:
        return None if verdict.reason == "stopped" else False
    return same_answer(verdict.answer, problem.reference, problem.kind)


def _beside(r: Row, base: Row | None) -> Row:
    if base is None:
        return r

    def ratio(a: int, b: int) -> float | None:
        return round(a / b, 4) if b else None

    values = asdict(r) | {
        "tokens_ratio": ratio(r.tokens, base.tokens),
        "links_ratio": ratio(r.links, base.links),
    }
    return Row(**values)


# -- which runs are paired ---------------------------------------------------------------------------------------------


def check_paired(one: Sequence[Any], two: Sequence[Any]) -> None:
    """Refuse two runs that do not begin from the same initial answers.

    An agent that one of them never asked (the gate of ``sid_et``, an interrupted run) is no difference.

    Raises
    ------
    NotPaired
        If the questions or the answers differ, or they have no initial answer in common.
    """
    a, b = one[0], two[0]
    if (a.problem.question, a.problem.kind, a.problem.choices) != (
        b.problem.question,
        b.problem.kind,
        b.problem.choices,
    ):
        raise NotPaired(
            f"These runs answer different questions, so there is nothing to compare: {_short(a.problem.question)!r} "
            f"and {_short(b.problem.question)!r}."
        )
    first, second = _initial(one), _initial(two)
    common = first.keys() & second.keys()
    if len(a.agents) != len(b.agents) or any(first[name] != second[name] for name in common):
        raise NotPaired(
            "These runs ask the same question but begin from different initial answers, so a difference would not be "
            "their protocols'. Replay one of them with the other protocol."
        )
    if not common:
        raise NotPaired("These runs have no initial answer in common yet.")


def _asked(problem: Problem) -> tuple[Any, ...]:
    return problem.question, problem.kind, problem.choices


def _initial(events: Sequence[Any]) -> dict[str, Any]:
    """agent -> (answer, reply) of its initial turn, or what failed."""
    found: dict[str, Any] = {}
    for event in events:
        if event.event == "answered":
            found[event.agent] = (event.turn.answer, event.turn.reply)
        elif event.event == "turn_failed" and event.round == 0:
            found[event.agent] = event.kind
    return found


def _short(text: str, limit: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def root_of(info: RunInfo, known: dict[str, RunInfo]) -> str:
    """The run whose initial answers a run goes back to: its parent, that one's parent, and so on."""
    seen: set[str] = set()
    name, parent = info.run_id, info.parent
    while parent is not None and parent not in seen:
        seen.add(parent)
        name = parent
        parent = known[parent].parent if parent in known else None
    return name


def families(infos: Iterable[RunInfo]) -> dict[str, list[RunInfo]]:
    """Root -> the runs that go back to it, the root itself first; in the order given."""
    known = {info.run_id: info for info in infos}
    found: dict[str, list[RunInfo]] = {}
    for info in known.values():
        found.setdefault(root_of(info, known), []).append(info)
    for root, members in found.items():
        members.sort(key=lambda info: info.run_id != root)
    return found


def family_of(events: Sequence[Any], folders: Iterable[Path]) -> list[list[Any]]:
    """The events of all finished runs in the folders that begin from this run's initial answers, this run first.

    Of several runs of one method the newest counts, but for this run itself.
    """
    started = events[0]
    infos: dict[str, RunInfo] = {}
    for folder in folders:
        infos |= {info.run_id: info for info in list_runs(folder) if info.run_id not in infos}
    mine = infos.get(started.run_id)
    root = root_of(mine, infos) if mine is not None else started.parent or started.run_id
    found, methods = [list(events)], {variant_of(started.protocol, started.settings)}
    members = [i for i in infos.values() if i.run_id != started.run_id and root_of(i, infos) == root]
    for info in sorted(members, key=lambda i: i.started, reverse=True):
        if info.interrupted or info.method in methods:
            continue
        try:
            other = load(info.path).events
            check_paired(events, other)
        except (RecordingError, OSError, NotPaired):
            continue
        methods.add(info.method)
        found.append(other)
    return found


# -- two runs side by side ---------------------------------------------------------------------------------------------


class Point(NamedTuple):
    """What a run has used after a step."""

    k: int
    round: int
    tokens: int
    links: int
    prompt: int | None
    """Tokens of the prompt of this step's turn; None where it has none."""


def course(events: Sequence[Any]) -> list[Point]:
    """What a run has used after each step; one point a step, the first after ``run_started``."""
    debate = fold(events, 1)
    found = [Point(1, 0, 0, 0, None)]
    for k, event in enumerate(events[1:], 2):
        debate.apply(event)
        turn = getattr(event, "turn", None)
        tokens = debate.prompt_tokens + debate.completion_tokens
        found.append(Point(k, debate.rounds, tokens, len(debate.links), turn.prompt_tokens if turn else None))
    return found


def at_round(points: Sequence[Point], number: int) -> int:
    """The last step of a run within its first ``number`` rounds; its last step if it has no more rounds."""
    within = [p.k for p in points if p.round <= number]
    return within[-1] if within else 1


def at_tokens(points: Sequence[Point], budget: int) -> int:
    """The last step of a run that ``budget`` tokens have paid for."""
    paid = [p.k for p in points if p.tokens <= budget]
    return paid[-1] if paid else 1


def shared_beliefs(one: Sequence[Any], two: Sequence[Any]) -> tuple[list[int], list[str]]:
    """Numbers for the beliefs of the second run, so that one number is one answer in both.

    Returns
    -------
    (numbers, answers)
        The number of each of the second run's beliefs: the first run's for an answer that is there too, else one after
        all of its. And the answers of all numbers.
    """
    kind = one[0].problem.kind
    answers = list(fold(one).beliefs)
    known, numbers = len(answers), []
    for answer in fold(two).beliefs:
        number = next((b for b in range(known) if b not in numbers and _same(answer, answers[b], kind)), None)
        if number is None:
            number = len(answers)
            answers.append(answer)
        numbers.append(number)
    return numbers, answers


class Parting(NamedTuple):
    """Where two paired runs first differ in what an agent believes."""

    round: int
    agent: str
    one: str | None
    two: str | None
    """What it answers in either after that round; None: no readable answer."""


def parting(one: Sequence[Any], two: Sequence[Any]) -> Parting | None:
    """The first round after which an agent believes another thing in the one run than in the other.

    A run that has ended keeps its beliefs. Equal answers are one belief also where they are written differently.

    Returns
    -------
    Parting or None
        Of several agents the first; None if they never differ.
    """
    kind = one[0].problem.kind
    a, b = _by_round(one), _by_round(two)
    for number, (left, right) in enumerate(zip_longest(a, b)):
        left, right = left or a[-1], right or b[-1]
        for name in left:
            if name in right and not _same(left[name], right[name], kind):
                return Parting(number, name, left[name], right[name])
    return None


def _by_round(events: Sequence[Any]) -> list[dict[str, str | None]]:
    """What each agent answers after the initial answers and after each round."""
    debate = fold(events, 1)
    found: list[dict[str, str | None]] = []
    for event in events[1:]:
        opens = getattr(event, "round", 0) > debate.rounds
        if opens and event.event in ("receiver_chosen", "revised"):
            found.append({s.name: s.answer for s in debate.agents.values() if s.answered})
        debate.apply(event)
    return [*found, {s.name: s.answer for s in debate.agents.values() if s.answered}]


def _same(a: str | None, b: str | None, kind: str) -> bool:
    if a is None or b is None:
        return a is b
    return a == b or same_answer(a, b, kind)


def changed_minds(one: Sequence[Any], two: Sequence[Any]) -> tuple[list[str], list[str]]:
    """Agents that end with another belief than they began with in one run and not in the other: (first, second)."""

    def changed(events: Sequence[Any]) -> set[str]:
        debate = fold(events)
        return {s.name for s in debate.agents.values() if s.turns and s.belief != s.initial_belief}

    a, b = changed(one), changed(two)
    names = [agent.name for agent in one[0].agents]
    return [n for n in names if n in a - b], [n for n in names if n in b - a]


__all__ = [
    "BASELINE",
    "NotPaired",
    "Parting",
    "Point",
    "Row",
    "at_round",
    "at_tokens",
    "changed_minds",
    "check_paired",
    "compare",
    "course",
    "families",
    "family_of",
    "is_right",
    "parting",
    "root_of",
    "row",
    "shared_beliefs",
]
