"""SVR-MAD: the highest-ranked agent is challenged by those that disagree; who survives is accepted.

::

        A2 ──┐ 1
        A5 ──┼─▶ A1     a round: the receiver A1 hears S challengers, one after the other,
        A4 ──┘ 3        and keeps or changes its answer each time; SVR = (r - c) / D

Jiang et al., *SVR-MAD: A Bayesian-Inspired Framework for Posterior-Guided Multi-Agent Debate*,
arXiv 2605.23099. The rules, and the choices where the summaries are silent, are METHOD.md's steps 1 to 7.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from .steps import Challenge, Choose, Finish, NotAsked, Step, consensus, missing_answers, verdict, vote


def next_step(debate: Debate) -> Step:
    """The next step of SVR-MAD; pure and deterministic.

    Links per round: the challengers that still disagree when their turn comes, at most S.
    """
    return missing_answers(debate) or _within_round(debate) or _between_rounds(debate)


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Nothing beside what ``Choose`` tells: the ranking, the challengers, and who was not asked."""
    return ""


def _within_round(debate: Debate) -> Step | None:
    """What is left of the round, or its acceptance; None if there is no round or it ends undecided."""
    current = debate.round
    if current is None:
        return None
    receiver = debate.agents[current.receiver]
    if debate.settings.round_mode == "parallel" and current.waiting:
        return Challenge(current.number, receiver.name, tuple(current.waiting))
    # a parallel round is complete here: all were asked at once, so only sequential rounds can stop early
    if receiver.failure is None:
        if debate.settings.accept_after == "debate" and current.outcomes and _survives(debate):
            return _accept(debate)
        for challenger in current.waiting:
            if debate.agents[challenger].belief != receiver.belief:
                if debate.lacking([Ask(receiver.name, (challenger,))]):
                    break
                return Challenge(current.number, receiver.name, (challenger,))
    return _accept(debate) if _survives(debate) else None


def _survives(debate: Debate) -> bool:
    assert debate.round is not None
    score = debate.acceptance_score(debate.round.receiver)
    return score is not None and score > debate.settings.tau


def _accept(debate: Debate) -> Finish:
    assert debate.round is not None
    name = debate.round.receiver
    return Finish(verdict(debate, "accepted", debate.agents[name].belief, agent=name))


def _between_rounds(debate: Debate) -> Step:
    """Consensus, then the budget, then the next receiver, else the vote."""
    settings = debate.settings
    if agreed := consensus(debate):
        return agreed
    if debate.rounds >= (settings.agents if settings.max_rounds is None else settings.max_rounds):
        return vote(debate, "rounds")
    choice = _choose(debate)
    if choice is None:
        return vote(debate, "challengers")
    if not choice.challengers:
        return vote(debate, "links")
    # a parallel round is sent at once, so all of it must be affordable; a sequential one, its first debate
    first = choice.challengers if settings.round_mode == "parallel" else choice.challengers[:1]
    if spent := debate.lacking([Ask(choice.receiver, (c,)) for c in first]):
        return vote(debate, spent)
    return choice


def _choose(debate: Debate) -> Choose | None:
    """The highest-ranked agent with a challenger left, and its top S challengers by ranking."""
    settings = debate.settings
    places = debate.ranking()
    passed_over: dict[str, str] = {}
    for name, _, _ in places:
        if debate.agents[name].failure is not None:
            passed_over[name] = "failed"
            continue
        candidates = debate.challengers_left(name)
        if not candidates:
            passed_over[name] = "no challenger left"
            continue
        room = settings.challengers
        if settings.max_links is not None:
            room = min(room, max(0, settings.max_links - len(debate.links)))
        return Choose(
            debate.rounds + 1,
            name,
            tuple(candidates[:room]),
            tuple(places),
            tuple(candidates[room:]),
            passed_over,
            _not_asked(debate, name, candidates, room),
        )
    return None


def _not_asked(debate: Debate, receiver: str, candidates: list[str], room: int) -> dict[str, NotAsked]:
    """Why each agent that is neither receiver nor challenger does not challenge.

    ``candidates`` are those that may, by ranking; the first ``room`` of them do.
    """
    mine = debate.agents[receiver].belief
    reasons: dict[str, NotAsked] = {
        name: "same answer" if a.belief == mine else "no answer" if a.belief is None else "already challenged"
        for name, a in debate.agents.items()
    }
    for name in (receiver, *candidates[:room]):
        del reasons[name]
    if len(candidates) > room:
        allowed = debate.settings.challengers
        for place, name in enumerate(candidates[room:], room):
            reasons[name] = "no link left" if place < allowed else "ranks below"
    return reasons
