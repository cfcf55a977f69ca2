"""A step in words, with the numbers in the formula. Plain text: whoever shows it escapes it."""

from __future__ import annotations

from typing import Any, NamedTuple

from .debate import Debate
from .protocols import Challenge, Choose, Finish, Revise, protocol

SIGNAL_WORDS = {
    "confidence": "its stated confidence",
    "perplexity": "1 / perplexity of its reply",
    "min_logprob": "the least likely token of its reply",
    "uniform": "nothing better than one half",
}
SPENT_WORDS = {
    "rounds": "the rounds are used up",
    "links": "the links are used up",
    "tokens": "the token budget is used up",
    "money": "the money is used up",
    "challengers": "nobody is left to be challenged",
}


class Words(NamedTuple):
    """A step told: what happened, the formula with its numbers, and what follows from it."""

    title: str
    formula: str = ""
    detail: str = ""


def tell(before: Debate | None, event: Any, after: Debate) -> Words:
    """Tell one event.

    Parameters
    ----------
    before
        The state before the event; None for the first.
    event
        What happened.
    after
        The state after it. What follows is asked of the protocol itself.
    """
    match event.event:
        case "run_started":
            return _started(after)
        case "answered":
            return _answered(event, after)
        case "receiver_chosen":
            assert before is not None
            return _chosen(event, before)
        case "debated":
            return _debated(event, after)
        case "revised":
            return _revised(event, after)
        case "turn_failed":
            return _failed(event)
        case "run_finished":
            assert before is not None
            return _finished(event, before)
        case "paused":
            return Words("Paused.")
    return Words("Resumed.", detail="The run goes on from what was recorded; nothing is asked twice.")


def formula(debate: Debate, name: str) -> str:
    """The survival rate of an agent with its numbers, e.g. ``SVR(A3) = (r − c) / D = (2 − 0) / 2 = 1.00``."""
    state = debate.agents[name]
    if not state.debates:
        return f"D = 0: the score of {name} is still its prior, {number(state.prior)}"
    text = (
        f"SVR({name}) = (r − c) / D = ({state.retained} − {state.changed}) / {state.debates} = "
        f"{number(state.svr or 0.0)}"
    )
    if debate.settings.score == "beta":
        m = (debate.score(name) + 1) / 2
        text = (
            f"Beta({name}): m = (k·p + r) / (k + D) = (2·{number(state.prior)} + {state.retained}) / "
            f"(2 + {state.debates}) = {number(m)}, score 2m − 1 = {number(debate.score(name))}"
        )
    return text


def number(value: float) -> str:
    """A score with two decimals and a true minus sign; three where two would hide that it is above a limit."""
    return f"{value:.2f}".replace("-", "−")


def _short(answer: str | None, limit: int = 60) -> str:
    if answer is None:
        return "no readable answer"
    flat = " ".join(answer.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _belief(debate: Debate, belief: int | None) -> str:
    return _short(None if belief is None else debate.beliefs[belief])


def _list(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nobody"


def _started(debate: Debate) -> Words:
    s = debate.settings
    models = list(dict.fromkeys(a.agent.model for a in debate.agents.values()))
    detail = f"Consensus needs {s.needed_for_consensus} of {s.agents}."
    if debate.protocol == "svr_mad":
        detail = (
            f"At most {s.challengers} challengers a round; accepted above τ = {s.tau:g}, "
            f"checked after each {s.accept_after}. {detail}"
        )
    return Words(f"{s.agents} agents are asked, each alone.", f"{', '.join(models)}", detail)


def _answered(event: Any, debate: Debate) -> Words:
    state = debate.agents[event.agent]
    wanted = debate.settings.prior
    source = SIGNAL_WORDS[event.prior_signal]
    fallback = f" ({wanted} was wanted and is missing)" if event.prior_signal != wanted else ""
    if event.turn.answer is None:
        why = "it was cut off" if event.turn.finish_reason == "length" else "none could be read out of its reply"
        return Words(f"{event.agent} gives no answer: {why}.", detail="It takes no part in the debate.")
    alike = [n for n in debate.holders(event.belief) if n != event.agent]
    detail = f"The same answer as {_list(alike)}." if alike else "Nobody has given this answer before."
    scaled = f", {number(state.prior)} by rank" if debate.settings.prior_scale == "rank" else ""
    return Words(
        f"{event.agent} answers {_short(event.turn.answer)}.",
        f"prior({event.agent}) = {number(event.prior)}{scaled}, from {source}{fallback}",
        detail,
    )


def _chosen(event: Any, before: Debate) -> Words:
    step = protocol(before.protocol).next_step(before)
    ranked = " > ".join(f"{name} {number(score)}" for name, score, _ in event.ranking[:8])
    more = " > …" if len(event.ranking) > 8 else ""
    detail = [f"{_list(event.challengers)} disagree{'s' if len(event.challengers) == 1 else ''} and rank highest"]
    if isinstance(step, Choose):
        if step.left_out:
            detail.append(f"{_list(step.left_out)} disagree too, but only {len(event.challengers)} are heard")
        for name, why in step.passed_over.items():
            detail.append(f"{name} ranks above, but is passed over: {why}")
    return Words(
        f"Round {event.round}: {event.receiver} ranks highest with {number(before.score(event.receiver))} "
        f"and is challenged by {_list(event.challengers)}.",
        f"ranking: {ranked}{more}",
        "; ".join(detail) + ".",
    )


def _debated(event: Any, after: Debate) -> Words:
    told = _belief(after, after.links[-1].challenger_belief)
    if event.retained is None:
        title = f"{event.receiver} heard {event.challenger}, and its reply holds no readable answer."
        return Words(title, "a void debate: D, r and c stay as they were", _next(event.receiver, after))
    if event.retained:
        title = f"{event.receiver} kept {_belief(after, event.before)} against {event.challenger}, who said {told}."
    else:
        title = (
            f"{event.receiver} changed from {_belief(after, event.before)} to {_belief(after, event.after)}, "
            f"having heard {event.challenger}, who said {told}."
        )
    return Words(
        title,
        formula(after, event.receiver) + _against_tau(event.receiver, after),
        _next(event.receiver, after),
    )


def _against_tau(receiver: str, debate: Debate) -> str:
    score = debate.acceptance_score(receiver)
    if score is None:
        return ""
    sign = ">" if score > debate.settings.tau else "≤"
    return f" {sign} τ = {debate.settings.tau:g}"


def _next(receiver: str, debate: Debate) -> str:
    """What the protocol decides next, said from the receiver's side."""
    if debate.finished is not None:
        return ""
    step = protocol(debate.protocol).next_step(debate)
    match step:
        case Finish(verdict) if verdict.reason == "accepted":
            return f"The round is over and {receiver} is above τ: accepted."
        case Challenge(_, _, challengers) if debate.settings.round_mode == "sequential":
            skipped = _skipped(debate, challengers)
            return f"{skipped}Next in this round: {challengers[0]}. Acceptance is decided when the round is over."
        case Challenge(_, _, challengers):
            return f"Still under way in this round: {_list(challengers)}."
        case Choose():
            return f"{_skipped(debate, ())}The round is over and {receiver} is not above τ: the debate goes on."
        case Finish(verdict):
            return f"The round is over: {verdict.reason.replace('_', ' ')}."
    return ""


def _skipped(debate: Debate, next_up: Any) -> str:
    """Challengers of the round that no longer disagree."""
    current = debate.round
    if current is None:
        return ""
    mine = debate.agents[current.receiver].belief
    upto = current.challengers.index(next_up[0]) if next_up else len(current.challengers)
    names = [n for n in current.challengers[:upto] if n in current.waiting and debate.agents[n].belief == mine]
    return (
        f"{_list(names)} agree{'s' if len(names) == 1 else ''} now and {'is' if len(names) == 1 else 'are'} skipped. "
        if names
        else ""
    )


def _revised(event: Any, after: Debate) -> Words:
    heard = _list(event.heard)
    if event.after is None:
        title = f"{event.agent} heard {heard}, and its reply holds no readable answer."
    elif event.after == event.before:
        title = f"{event.agent} heard {heard} and kept {_belief(after, event.after)}."
    else:
        change = f"from {_belief(after, event.before)} to {_belief(after, event.after)}"
        title = f"{event.agent} heard {heard} and changed {change}."
    votes = after.votes().most_common()
    count = ", ".join(f"{_belief(after, b)}: {n}" for b, n in votes[:6])
    detail = ""
    if after.finished is None and isinstance(step := protocol(after.protocol).next_step(after), Revise):
        waiting = _list(a.agent for a in step.asks)
        detail = (
            f"Still to reply in round {event.round}: {waiting}."
            if step.round == event.round
            else f"Round {event.round} is over; no consensus, so round {step.round} begins."
        )
    return Words(title, f"held now: {count}", detail)


def _failed(event: Any) -> Words:
    tries = f" after {event.attempts} attempts" if event.attempts > 1 else ""
    what = "gives no initial answer" if event.round == 0 else f"does not reply to {_list(event.heard)}"
    return Words(
        f"{event.agent} {what}{tries}: {event.kind.replace('_', ' ')}.",
        detail=f"{event.message} The debate goes on without asking {event.agent} again.",
    )


def _finished(event: Any, before: Debate) -> Words:
    verdict = event.verdict
    count = ", ".join(f"{_belief(before, b)}: {n}" for b, n in sorted(verdict.votes.items(), key=lambda x: -x[1]))
    votes = f"votes: {count}" if count else ""
    answer = _short(verdict.answer)
    match verdict.reason:
        case "accepted":
            return Words(
                f"Accepted: {answer}, the answer of {verdict.agent}.",
                formula(before, verdict.agent) + _against_tau(verdict.agent, before),
                f"At the end {count}." if count else "",
            )
        case "consensus":
            needed = before.settings.needed_for_consensus
            held = verdict.votes.get(verdict.belief, 0)
            return Words(
                f"Consensus: {held} of {before.settings.agents} hold {answer}.",
                votes,
                f"{needed} were needed.",
            )
        case "vote":
            step = protocol(before.protocol).next_step(before)
            spent = SPENT_WORDS.get(step.spent or "", "") if isinstance(step, Finish) else ""
            tied = sorted(verdict.votes.values())[-2:]
            tie = " A tie, broken by the initial answers, then score, then index." if tied[:1] == tied[1:] else ""
            return Words(f"Vote: {answer}.", votes, f"{spent[:1].upper()}{spent[1:]}.{tie}" if spent else tie.strip())
        case "stopped":
            return Words(f"Stopped by hand; the vote at that moment: {answer}.", votes)
    return Words("No answer: no agent has a readable answer.", votes)
