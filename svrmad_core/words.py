"""A step in words, with the numbers in the formula and the reasons. Plain text: whoever shows it escapes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from . import scoring
from .debate import Ask, Debate
from .protocols import PROTOCOLS, Answer, Challenge, Choose, Finish, Revise, Step, Summarize, protocol, vote
from .protocols.free_mad import trajectory_scores
from .protocols.steps import Tie
from .signals import FALLBACKS

SIGNAL_WORDS = {
    "confidence": "its stated confidence",
    "perplexity": "1 / perplexity of its reply",
    "min_logprob": "the least likely token of its reply",
    "uniform": "nothing better than one half",
}
MISSING_WORDS = {
    "confidence": "no confidence was stated",
    "perplexity": "the reply has no log-probabilities",
    "min_logprob": "the reply has no log-probabilities",
}
SPENT_WORDS = {
    "rounds": "the rounds are used up",
    "links": "the links are used up",
    "tokens": "the token budget is used up",
    "money": "the money is used up",
    "challengers": "nobody is left to be challenged",
    "exits": "everybody has left with its answer",
}
REASON_WORDS = {
    "accepted": "accepted",
    "consensus": "consensus",
    "vote": "vote",
    "no_answer": "no answer",
    "stopped": "stopped",
    "early_exit": "early exit",
    "trajectory": "best trajectory",
}
PASSED_OVER_WORDS = {
    "failed": "a call to it failed, so it is not asked again",
    "no challenger left": "no challenger is left for it",
}
MOST_NAMES = 8
"""A reason lists at most so many agents or beliefs by name."""


class Words(NamedTuple):
    """A step told: what happened, the formula with its numbers, what follows from it, and why."""

    title: str
    formula: str = ""
    detail: str = ""
    why: tuple[str, ...] = ()
    """Short sentences, one reason each."""


def tell(before: Debate | None, event: Any, after: Debate) -> Words:
    """Tell one event.

    Parameters
    ----------
    before
        The state before the event; None for the first.
    event
        What happened.
    after
        The state after it. What follows is asked of the protocol itself; where the protocol is unknown, or cannot
        follow a recording that departs from it, the step is told without its reasons.
    """
    match event.event:
        case "run_started":
            return _started(after)
        case "answered":
            return _answered(event, after, _decision(after))
        case "receiver_chosen":
            assert before is not None
            return _chosen(event, before, _decision(before))
        case "debated":
            return _debated(event, after, _decision(after))
        case "revised":
            return _revised(event, after, _decision(after))
        case "summarized":
            return _summarized(event, after, _decision(after))
        case "turn_failed":
            return _failed(event, after, _decision(after))
        case "run_finished":
            assert before is not None
            return _finished(event, before, _decision(before))
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
        f"{_beside_tau(debate, state.svr or 0.0)}"
    )
    if debate.settings.score == "beta":
        m = (debate.score(name) + 1) / 2
        text = (
            f"Beta({name}): m = (k·p + r) / (k + D) = (2·{number(state.prior)} + {state.retained}) / "
            f"(2 + {state.debates}) = {number(m)}, score 2m − 1 = {_beside_tau(debate, debate.score(name))}"
        )
    return text


def number(value: float, decimals: int = 2) -> str:
    """A score with two decimals (or as many as told) and a true minus sign; zero has none."""
    text = f"{value:.{decimals}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def _apart(value: float, others: Iterable[float]) -> str:
    """A number with as many decimals, two to six, as it takes to tell it from others that differ from it."""
    different = [other for other in others if other != value]
    for decimals in range(2, 6):
        if all(number(value, decimals) != number(other, decimals) for other in different):
            return number(value, decimals)
    return number(value, 6)


def _beside_tau(debate: Debate, value: float) -> str:
    """A score as it is shown beside the limit of acceptance."""
    return _apart(value, [debate.settings.tau])


def _decision(debate: Debate) -> Step | None:
    """What the protocol decides here; None at the end, or where it is unknown or cannot follow the recording."""
    if debate.finished is not None:
        return None
    try:
        return protocol(debate.protocol).next_step(debate)
    except Exception:
        # a recording may depart from its protocol in any way, and must still be shown
        return None


def _short(answer: str | None, limit: int = 60) -> str:
    if answer is None:
        return "no readable answer"
    flat = " ".join(answer.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _belief(debate: Debate, belief: int | None) -> str:
    if belief is None or not 0 <= belief < len(debate.beliefs):
        return _short(None)
    return _short(debate.beliefs[belief])


def _list(names: Any) -> str:
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nobody"


def _some(names: Iterable[str]) -> str:
    """A list that stays short: "A1, A2, ..., A8 and 30 more"."""
    names = list(names)
    more = len(names) - MOST_NAMES
    return _list(names) if more <= 0 else f"{', '.join(names[:MOST_NAMES])} and {more} more"


def _verb(names: Sequence[str], one: str, many: str) -> str:
    """Names with the verb that agrees with them."""
    return f"{_some(names)} {one if len(names) == 1 else many}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _tally(debate: Debate, beliefs: Iterable[int | None]) -> str:
    """How often each belief is among these, most first: "12 twice, 15 once"."""
    counts = Counter(beliefs).most_common()
    parts = [f"{_belief(debate, belief)} {_times(n)}" for belief, n in counts[:MOST_NAMES]]
    return ", ".join(parts) + (f" and {len(counts) - MOST_NAMES} more" if len(counts) > MOST_NAMES else "")


# -- the steps ---------------------------------------------------------------------------------------------------------


def _started(debate: Debate) -> Words:
    s = debate.settings
    models = list(dict.fromkeys(a.agent.model for a in debate.agents.values()))
    detail = f"Consensus needs {s.needed_for_consensus} of {s.agents}."
    if debate.protocol == "svr_mad":
        detail = (
            f"At most {s.challengers} challengers a round; accepted above τ = {s.tau:g}, "
            f"checked after each {s.accept_after}. {detail}"
        )
    needed = f"⌈0.8 · {s.agents}⌉ = {s.needed_for_consensus}" if s.quorum is None else f"{s.quorum}, as set"
    why = [f"The quorum is {needed}."]
    if debate.protocol == "self_consistency":
        why.append("Nobody will hear anybody: no links, only the vote over the initial answers.")
    elif debate.protocol in PROTOCOLS and debate.protocol != "svr_mad":
        about = PROTOCOLS[debate.protocol]
        why.append(f"{about.title} ({about.source}): links a round {about.links}.")
        why += [about.note] if about.note else []
    return Words(f"{s.agents} agents are asked, each alone.", f"{', '.join(models)}", detail, tuple(why))


def _answered(event: Any, debate: Debate, step: Step | None) -> Words:
    state = debate.agents[event.agent]
    wanted = debate.settings.prior
    source = SIGNAL_WORDS[event.prior_signal]
    fallback = f" ({wanted} was wanted and is missing)" if event.prior_signal != wanted else ""
    onward = [*_asked_why(debate, Ask(event.agent), 0), *_onward(debate, step)]
    if event.turn.answer is None:
        why = "it was cut off" if event.turn.finish_reason == "length" else "none could be read out of its reply"
        detail = "It takes no part in the debate." if debate.protocol == "svr_mad" else "It has no vote as it stands."
        return Words(f"{event.agent} gives no answer: {why}.", "", detail, tuple(onward))
    alike = [n for n in debate.holders(event.belief) if n != event.agent]
    detail = f"The same answer as {_list(alike)}." if alike else "Nobody has given this answer before."
    scaled = f", {number(state.prior)} by rank" if debate.settings.prior_scale == "rank" else ""
    return Words(
        f"{event.agent} answers {_short(event.turn.answer)}.",
        f"prior({event.agent}) = {number(event.prior)}{scaled}, from {source}{fallback}",
        detail,
        (*_prior_why(event, debate), *onward),
    )


def _asked_why(debate: Debate, ask: Ask, number: int) -> list[str]:
    """Why the protocol lets an agent hear these, in its own words."""
    if debate.protocol not in PROTOCOLS or ask.agent not in debate.agents:
        return []
    told = PROTOCOLS[debate.protocol].why(debate, ask, number)
    return [told] if told else []


def _prior_why(event: Any, debate: Debate) -> list[str]:
    """Where a prior came from, with the raw value; nothing if the recorded one did not come from there."""
    state, wanted, used = debate.agents[event.agent], debate.settings.prior, event.prior_signal
    if used != state.prior_signal or abs(event.prior - state.prior_probability) > 1e-6:
        return []
    why = []
    if used != wanted:
        tried = FALLBACKS[wanted][: FALLBACKS[wanted].index(used)]
        missing = _list(dict.fromkeys(MISSING_WORDS[signal] for signal in tried))
        why.append(f"The prior should come from {wanted}, but {missing}: it falls back on {used}.")
    prior, signals = number(state.prior_probability), event.turn.signals
    if used == "confidence":
        why.append(f"Stated confidence {100 * event.turn.confidence:.4g} → {prior}.")
    elif used == "perplexity":
        raw = f"exp(mean token log-probability) = exp({number(signals.mean_logprob)})"
        why.append(f"1 / perplexity = 1 / {signals.perplexity:.4g} = {raw} = {prior}.")
    elif used == "min_logprob":
        why.append(f"exp(smallest token log-probability) = exp({number(signals.min_logprob)}) = {prior}.")
    else:
        why.append(f"Without a signal the prior is {prior}.")
    if debate.settings.prior_scale == "rank":
        known = sum(bool(s.turns) for s in debate.agents.values())
        why.append(f"By rank among the {known} that have replied so far the prior is {number(state.prior)}.")
    return why


def _chosen(event: Any, before: Debate, step: Step | None) -> Words:
    ranked = " > ".join(f"{name} {number(score)}" for name, score, _ in event.ranking[:MOST_NAMES])
    more = " > …" if len(event.ranking) > MOST_NAMES else ""
    heard = len(event.challengers)
    detail = [f"{_list(event.challengers)} {'disagrees and ranks' if heard == 1 else 'disagree and rank'} highest"]
    why: tuple[str, ...] = ()
    if isinstance(step, Choose) and (step.receiver, list(step.challengers)) == (event.receiver, event.challengers):
        if step.left_out:
            too = "disagrees" if len(step.left_out) == 1 else "disagree"
            detail.append(f"{_list(step.left_out)} {too} too, but only {heard} {'is' if heard == 1 else 'are'} heard")
        for name, reason in step.passed_over.items():
            detail.append(f"{name} ranks above, but is passed over: {reason}")
        why = _choice_why(step, before)
    return Words(
        f"Round {event.round}: {event.receiver} ranks highest with {number(before.score(event.receiver))} "
        f"and is challenged by {_list(event.challengers)}.",
        f"ranking: {ranked}{more}",
        "; ".join(detail) + ".",
        why,
    )


def _choice_why(step: Choose, before: Debate) -> tuple[str, ...]:
    """The ranking with its sources, its ties, and what became of each agent."""
    scores = [score for _, score, _ in step.ranking]
    shown = [
        f"{name} {_apart(score, scores)} ({_source(before, name)})" for name, score, _ in step.ranking[:MOST_NAMES]
    ]
    more = len(step.ranking) - MOST_NAMES
    why = [f"Ranking: {', '.join(shown)}{f' and {more} more' if more > 0 else ''}."]
    why += _ties(step)
    for reason, names in _by_reason(step.passed_over).items():
        told = PASSED_OVER_WORDS.get(reason, reason)
        ranks = _verb(names, f"ranks above {step.receiver}, but is", f"rank above {step.receiver}, but are")
        why.append(f"{ranks} passed over: {told}.")
    mine = _belief(before, before.agents[step.receiver].belief)
    heard = len(step.challengers)
    why.append(
        f"{_verb(step.challengers, 'disagrees', 'disagree')} with {mine}: "
        f"{heard} of {heard + len(step.left_out)} that may challenge, at most S = {before.settings.challengers}."
    )
    for reason, names in _by_reason(step.not_asked).items():
        match reason:
            case "same answer":
                why.append(f"{_verb(names, 'holds', 'hold')} the same answer, {mine}.")
            case "no answer":
                why.append(f"{_verb(names, 'has', 'have')} no answer.")
            case "already challenged":
                told = f"already challenged {step.receiver} with these same beliefs"
                why.append(f"{_verb(names, 'disagrees, but has', 'disagree, but have')} {told}.")
            case "ranks below":
                told = f"{'ranks' if len(names) == 1 else 'rank'} below the {before.settings.challengers} taken"
                why.append(f"{_verb(names, 'disagrees', 'disagree')}, but {told}.")
            case "no link left":
                told = f"only {heard} of {before.settings.max_links} links {'is' if heard == 1 else 'are'} left"
                why.append(f"{_verb(names, 'disagrees', 'disagree')}, but {told}.")
    return tuple(why)


def _source(debate: Debate, name: str) -> str:
    """Where the score of an agent comes from."""
    debates, kind = debate.agents[name].debates, debate.settings.score
    if kind == "beta":
        return f"Beta, D = {debates}"
    if kind == "prior":
        return "prior, which stays"
    return f"SVR, D = {debates}" if debates else "prior"


def _by_reason(reasons: dict[str, Any]) -> dict[str, list[str]]:
    """Reason -> the agents it is true of, so that one sentence tells them all."""
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        found.setdefault(reason, []).append(name)
    return found


def _ties(step: Choose) -> list[str]:
    """Ties of the ranking where it decides: who is the receiver, who challenges, and in what order."""
    levels: dict[float, list[tuple[str, float]]] = {}
    for name, score, prior in step.ranking:
        levels.setdefault(score, []).append((name, prior))
    may, told = {*step.challengers, *step.left_out}, []
    for score, level in levels.items():
        names = [name for name, _ in level]
        as_receiver = {n for n in names if n not in step.passed_over} if step.receiver in names else set()
        challenging = {n for n in names if n in may} if set(names) & set(step.challengers) else set()
        rivals: set[str] = set()
        for group in (as_receiver, challenging):
            if len(group) > 1:
                rivals |= group
        if not rivals:
            continue
        priors = [prior for name, prior in level if name in rivals]
        who = _some(name for name in names if name in rivals)
        shown = _apart(score, levels)
        if len(set(priors)) == 1:
            told.append(f"{who} tie at {shown} and in their priors: the lower index goes first.")
        else:
            then = "" if len(set(priors)) == len(priors) else ", then the lower index"
            values = " > ".join(_apart(p, priors) for p in dict.fromkeys(priors[:MOST_NAMES]))
            told.append(f"{who} tie at {shown}: the higher prior goes first ({values}){then}.")
    return told


def _debated(event: Any, after: Debate, step: Step | None) -> Words:
    told = _belief(after, after.links[-1].challenger_belief)
    why = (*_outcome_why(event, after), *_taken(after), *_round_onward(after, step))
    if event.retained is None:
        title = f"{event.receiver} heard {event.challenger}, and its reply holds no readable answer."
        return Words(title, "a void debate: D, r and c stay as they were", _next(event.receiver, after, step), why)
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
        _next(event.receiver, after, step),
        why,
    )


def _outcome_why(event: Any, after: Debate) -> list[str]:
    """What a debate did to D, r, c and the score."""
    state, kind = after.agents[event.receiver], after.settings.score
    r, c, d = state.retained, state.changed, state.debates
    if event.retained is None:
        svr = "it has no SVR yet" if state.svr is None else f"its SVR stays {_beside_tau(after, state.svr)}"
        return [
            f"Void: D = {d}, r = {r} and c = {c} stay, {svr}.",
            f"{event.receiver} stays with {_belief(after, state.belief)}; the call counts as a link and in tokens.",
        ]
    r_was, c_was = r - bool(event.retained), c - (not event.retained)
    counted = f"r {r_was} → {r}" if event.retained else f"c {c_was} → {c}"
    what = "kept its answer" if event.retained else "changed its answer"
    was = _beside_tau(after, scoring.svr(r_was, c_was)) if d > 1 else "none yet"
    why = [
        f"{event.receiver} {what}: {counted}, D {d - 1} → {d}.",
        f"SVR {was} → {_beside_tau(after, scoring.svr(r, c))}.",
    ]
    prior = number(state.prior)
    if kind == "beta":
        old = _beside_tau(after, scoring.beta_score(state.prior, r_was, c_was))
        why.append(f"Beta score {old} → {_beside_tau(after, after.score(event.receiver))}, the prior {prior} included.")
    elif kind == "prior":
        why.append(f"The ranking stays with the prior {prior}: SVR is only held against τ.")
    elif d == 1:
        why.append(f"The prior {prior} no longer counts: from now on the score is SVR.")
    return why


def _taken(debate: Debate) -> list[str]:
    """What the receiver takes from a parallel round once its last outcome is in."""
    current = debate.round
    if debate.settings.round_mode != "parallel" or current is None or current.waiting:
        return []
    outcomes = [belief for belief, _ in current.outcomes.values() if belief is not None]
    held = debate.agents[current.receiver].belief
    if not outcomes:
        return [f"The round has no readable outcome: {current.receiver} stays with {_belief(debate, held)}."]
    counts = Counter(outcomes)
    tied = sum(n == max(counts.values()) for n in counts.values()) > 1
    rule = "a tie keeps the old belief" if tied else "the plurality"
    tally = _tally(debate, outcomes)
    return [f"The outcomes of the round are {tally}: {current.receiver} takes {_belief(debate, held)}, {rule}."]


def _against_tau(receiver: str, debate: Debate) -> str:
    score = debate.acceptance_score(receiver)
    if score is None:
        return ""
    sign = ">" if score > debate.settings.tau else "≤"
    return f" {sign} τ = {debate.settings.tau:g}"


def _next(receiver: str, debate: Debate, step: Step | None) -> str:
    """What the protocol decides next, said from the receiver's side."""
    match step:
        case Finish(verdict) if verdict.reason == "accepted":
            over = "The round is over and " if debate.settings.accept_after == "round" else ""
            return f"{over}{receiver} is above τ: accepted."
        case Challenge(_, _, challengers) if debate.settings.round_mode == "sequential":
            skipped = _skipped(debate, challengers)
            when = " Acceptance is decided when the round is over." if debate.settings.accept_after == "round" else ""
            return f"{skipped}Next in this round: {challengers[0]}.{when}"
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


def _revised(event: Any, after: Debate, step: Step | None) -> Words:
    heard = _some(event.heard)
    if event.summaries:
        told = (
            f"the summary of {_some(event.summaries)}"
            if len(event.summaries) == 1
            else f"the summaries of {_some(event.summaries)}"
        )
        heard = f"{heard} and {told}" if event.heard else told
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
    if isinstance(step, Revise):
        waiting = _list(a.agent for a in step.asks)
        detail = (
            f"Still to reply in round {event.round}: {waiting}."
            if step.round == event.round
            else f"Round {event.round} is over; no consensus, so round {step.round} begins."
        )
    links = [link for link in after.links if link.seq == event.seq and link.challenger in event.heard]
    said = _tally(after, (link.challenger_belief for link in links))
    replies = f"It heard {len(links)} {'reply' if len(links) == 1 else 'replies'}, from before the round: {said}."
    now = _belief(after, after.agents[event.agent].belief)
    if event.after is None:
        change = f"No answer could be read: its own stays {now}."
    elif event.after == event.before:
        change = f"Its answer stays {now}."
    else:
        others = sum(link.challenger_belief == event.after for link in links)
        change = f"Its answer is now {now}, which {others} of the {len(links)} replies it heard said."
    asked = _asked_why(after, Ask(event.agent, tuple(event.heard), tuple(event.summaries)), event.round)
    return Words(title, f"held now: {count}", detail, (*asked, replies, change, *_onward(after, step)))


def _summarized(event: Any, after: Debate, step: Step | None) -> Words:
    heard = _some(name for name in event.heard if name != event.agent)
    detail = f"Its summary is heard by the other groups in round {event.round}; nobody's answer changes by it."
    return Words(f"{event.agent} sums up what it and {heard} said last.", "", detail, tuple(_onward(after, step)))


def _failed(event: Any, after: Debate, step: Step | None) -> Words:
    tries = f" after {event.attempts} attempts" if event.attempts > 1 else ""
    what = "gives no initial answer" if event.round == 0 else f"does not reply to {_some(event.heard)}"
    what = "writes no summary" if event.summary else what
    current = after.round
    in_round = event.round > 0 and not event.summary and current is not None and current.number == event.round
    held = after.agents[event.agent].belief
    stays = (
        "It has no answer, so it has no vote."
        if held is None
        else f"Its answer stays {_belief(after, held)}: it counts in the vote, and others may still hear it."
    )
    onward = (*_taken(after), *_round_onward(after, step)) if in_round else tuple(_onward(after, step))
    return Words(
        f"{event.agent} {what}{tries}: {event.kind.replace('_', ' ')}.",
        detail=f"{event.message} The debate goes on without asking {event.agent} again.",
        why=(stays, *onward),
    )


def _finished(event: Any, before: Debate, step: Step | None) -> Words:
    verdict = event.verdict
    count = ", ".join(f"{_belief(before, b)}: {n}" for b, n in sorted(verdict.votes.items(), key=lambda x: -x[1]))
    votes = f"votes: {count}" if count else ""
    answer = _short(verdict.answer)
    decided = step if isinstance(step, Finish) and _same(step.verdict, verdict) else None
    why: tuple[str, ...] = ()
    match verdict.reason:
        case "accepted":
            known = verdict.agent in before.agents
            if decided is not None:
                why = tuple(_round_onward(before, step))
            return Words(
                f"Accepted: {answer}, the answer of {verdict.agent}.",
                formula(before, verdict.agent) + _against_tau(verdict.agent, before) if known else "",
                f"At the end {count}." if count else "",
                why,
            )
        case "consensus":
            needed = before.settings.needed_for_consensus
            held = verdict.votes.get(verdict.belief, 0)
            if decided is not None:
                why = tuple(_onward(before, step))
            return Words(
                f"Consensus: {held} of {before.settings.agents} hold {answer}.",
                votes,
                f"{needed} were needed.",
                why,
            )
        case "vote":
            spent = SPENT_WORDS.get(decided.spent or "", "") if decided else ""
            told = [f"{spent[:1].upper()}{spent[1:]}."] if spent else []
            if decided is not None:
                if decided.tie is not None:
                    told.append("A tie, broken by the initial answers, then score, then index.")
                why = (*_onward(before, step), *_count_why(decided, before))
            return Words(f"Vote: {answer}.", votes, " ".join(told), why)
        case "early_exit":
            if decided is not None:
                why = tuple(_asked_why(before, Ask(verdict.agent), 0))
            return Words(f"Early exit: {answer}, the answer of {verdict.agent} alone.", votes, why=why)
        case "trajectory":
            if decided is not None:
                why = (*_onward(before, step), *_trajectory_why(before, verdict))
            return Words(f"Best trajectory: {answer}.", votes, "Not the vote: the path of every answer counts.", why)
        case "stopped":
            final = vote(before)
            if _same(final.verdict, verdict):
                why = ("Stopped by hand before the protocol had decided.", *_count_why(final, before))
            return Words(f"Stopped by hand; the vote at that moment: {answer}.", votes, why=why)
    if decided is not None:
        why = tuple(_onward(before, step))
    return Words("No answer: no agent has a readable answer.", votes, why=why)


def _trajectory_why(debate: Debate, verdict: Any) -> list[str]:
    """The points of Free-MAD."""
    scores = sorted(trajectory_scores(debate).items(), key=lambda item: -item[1])
    shown = ", ".join(f"{_belief(debate, b)} {points:g}" for b, points in scores[:MOST_NAMES])
    rule = "+20 given first, −25 abandoned, +30 adopted, +20 kept, each over (round + 1)"
    why = [f"Points ({rule}): {shown}."]
    if not debate.holders(verdict.belief):
        why.append("Nobody holds the winner any more: what was abandoned keeps what it had earned.")
    return why


def _same(decided: Any, recorded: Any) -> bool:
    """Whether a recorded verdict is the one decided, how it came about aside for one stopped by hand."""
    reason = decided.reason if recorded.reason == "stopped" else recorded.reason
    return (decided.reason, decided.belief, decided.agent) == (reason, recorded.belief, recorded.agent)


# -- why ---------------------------------------------------------------------------------------------------------------


def _round_onward(debate: Debate, step: Step | None) -> list[str]:
    """Why a round goes on or is over, and what follows."""
    current = debate.round
    if current is None or step is None:
        return []
    receiver, settings = current.receiver, debate.settings
    if isinstance(step, Challenge) and settings.round_mode == "parallel":
        return [f"{_verb(step.challengers, 'is', 'are')} still under way, from the beliefs at the start of the round."]
    why = _held_against_tau(debate, step)
    skipped = _skipped(debate, step.challengers if isinstance(step, Challenge) else ()).strip()
    if skipped:
        why.append(skipped)
    if isinstance(step, Challenge):
        why.append(f"{step.challengers[0]} still disagrees and is heard next.")
        return why
    mine = debate.agents[receiver].belief
    unheard = [name for name in current.waiting if debate.agents[name].belief != mine]
    if unheard:
        if debate.agents[receiver].failure is not None:
            reason = f"{receiver} is not asked again"
        elif settings.accept_after == "debate" and isinstance(step, Finish) and step.verdict.reason == "accepted":
            reason = "acceptance is decided after each debate"
        else:
            spent = debate.lacking([Ask(receiver, (unheard[0],))])
            reason = SPENT_WORDS.get(spent or "", "the round is over")
        why.append(f"{_verb(unheard, 'is', 'are')} not heard any more: {reason}.")
    return why + _onward(debate, step)


def _held_against_tau(debate: Debate, step: Step) -> list[str]:
    """What acceptance says about the receiver of the round."""
    assert debate.round is not None
    receiver, settings = debate.round.receiver, debate.settings
    score = debate.acceptance_score(receiver)
    under_way = isinstance(step, Challenge)
    if score is None:
        return [] if under_way else [f"{receiver} has no counted debate, and a prior alone never accepts."]
    name = "Beta score" if settings.score == "beta" else "SVR"
    told = f"{name} {_beside_tau(debate, score)} is {'above' if score > settings.tau else 'not above'} τ"
    told += f" = {settings.tau:g}"
    if isinstance(step, Finish) and step.verdict.reason == "accepted":
        return [f"{told}: {receiver} is accepted."]
    if not under_way:
        return [f"{told}: {receiver} is not accepted."]
    if settings.accept_after == "round":
        return [f"{told}, but acceptance waits for the end of the round."] if score > settings.tau else []
    return [f"{told}: the round goes on."]


def _onward(debate: Debate, step: Step | None) -> list[str]:
    """Why the debate goes on or stops here, from what the protocol decided."""
    match step:
        case Answer(agents):
            return [f"Still to answer: {_some(agents)}."]
        case Choose(number):
            return [_agreement(debate), f"The debate goes on with round {number}: {step.receiver} can be challenged."]
        case Revise(number, asks) if number == debate.rounds:
            return [f"Still to reply in round {number}: {_some(a.agent for a in asks)}."]
        case Revise(number, asks):
            heard = max(len(a.heard) for a in asks)
            told = f"{len(asks)} agents reply anew, each having heard up to {heard}"
            return [_agreement(debate), f"The debate goes on with round {number}: {told}."]
        case Summarize(number, asks):
            told = f"{_verb([a.agent for a in asks], 'sums', 'sum')} up what was said in the groups"
            return [_agreement(debate), f"Before round {number} {told}."]
        case Finish(verdict) if verdict.reason in ("accepted", "early_exit"):
            return []
        case Finish(verdict) if verdict.reason == "consensus":
            held, s = verdict.votes[verdict.belief], debate.settings
            told = f"{held} of {s.agents} hold {_short(verdict.answer)}"
            return [f"Consensus: {told}, and the quorum of {s.needed_for_consensus} is reached."]
        case Finish():
            counted = "No debate follows: the vote over the initial answers decides, over 0 links."
            decides = [counted] if debate.protocol == "self_consistency" and debate.votes() else []
            return [_agreement(debate), *_spent(debate, step.spent), *decides]
    return []


def _agreement(debate: Debate) -> str:
    """Why there is no consensus."""
    votes, s = debate.votes(), debate.settings
    if not votes:
        return "Nobody has a readable answer."
    belief, most = votes.most_common(1)[0]
    told = f"at most {most} of {s.agents} {'holds' if most == 1 else 'hold'} one answer"
    if sum(n == most for n in votes.values()) == 1:
        told = f"{most} of {s.agents} {'holds' if most == 1 else 'hold'} {_belief(debate, belief)}"
    return f"No consensus: {told}, and the quorum of {s.needed_for_consensus} is not reached."


def _spent(debate: Debate, spent: str | None) -> list[str]:
    """Which budget ended the debate, with its numbers."""
    s = debate.settings
    numbers = {
        "rounds": f"{debate.rounds} {'has' if debate.rounds == 1 else 'have'} been held",
        "links": f"{len(debate.links)} of {s.max_links} used, and what comes next would need more",
        "tokens": f"{debate.totals().tokens} of {s.max_tokens_total} used, and the next calls would overrun it",
        "money": f"${debate.known_cost:.4g} of ${s.max_cost or 0:.4g} spent, and the next calls would overrun it",
        "challengers": "whoever disagrees has been heard with these same beliefs, or cannot be asked",
        "exits": "all were confident of their first answers",
    }
    if spent is None:
        return []
    told = SPENT_WORDS.get(spent, spent)
    return [f"{told[:1].upper()}{told[1:]}{f': {numbers[spent]}' if spent in numbers else ''}."]


def _count_why(finish: Finish, debate: Debate) -> list[str]:
    """How a vote was counted, and how a tie was broken."""
    verdict = finish.verdict
    if verdict.belief is None:
        return []
    won, held = _belief(debate, verdict.belief), verdict.votes[verdict.belief]
    voters = sum(verdict.votes.values())
    count = f"{held} of {voters} agents with an answer {'holds' if held == 1 else 'hold'} {won}"
    if finish.tie is None:
        rest = "more than any other" if len(verdict.votes) > 1 else "and no other answer is held"
        return [f"{count}, {rest}."]
    return [f"{count}.", *_tie_why(finish.tie, debate, held, won)]


def _tie_why(tie: Tie, debate: Debate, held: int, won: str) -> list[str]:
    """The tie-breaks in their order, each with its numbers, up to the one that decided."""

    def told(parts: list[str]) -> str:
        more = len(parts) - MOST_NAMES
        return "; ".join(parts[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")

    def ending(stage: str, left: dict[int, Any], what: str) -> str:
        if tie.decided_by == stage:
            return f": {what} wins, {won}."
        return f": {_some(_belief(debate, b) for b in left)} stay level."

    why = [f"A tie: {_some(_belief(debate, b) for b in tie.beliefs)} have {held} each."]
    initial = told([f"{_belief(debate, b)} had {n}" for b, n in tie.initial.items()])
    why.append(f"Initial answers: {initial}{ending('initial', tie.scores, 'the most')}")
    if tie.scores:
        values = [score for _, score in tie.scores.values()]
        shown = [f"{name} {_apart(score, values)} for {_belief(debate, b)}" for b, (name, score) in tie.scores.items()]
        why.append(f"Highest score of a holder: {told(shown)}{ending('score', tie.first, 'the highest')}")
    if tie.first:
        shown = [f"{name} for {_belief(debate, b)}" for b, name in tie.first.items()]
        why.append(f"Lowest index of a holder: {told(shown)}{ending('index', {}, 'the lowest')}")
    return why
