"""SID's early exit: an agent that is confident of its answer leaves with it; the rest debate all-to-all.

::

    A1  NLL ≤ 2.5 ──▶ leaves, is still heard ──┐
    A2  NLL > 2.5  ◀──────────────────────────┤      (N - 1) links a round for each remaining agent,
    A3  NLL > 2.5  ◀──────────────────────────┘      T = 2 rounds
         └───▶ A2 ◀▶ A3

Chen et al., *SID: Multi-LLM Debate Driven by Self Signals*, 2025, arXiv 2510.06843. ``gate_first`` is the authors'
code: the first agent answers alone and, if confident, its answer is final. The authors' constant is 2.5 nats for the
largest token NLL, which grows with a reply's length; the mean and quantiles of the token NLLs do not.
Only the early exit is built: SID's attention compression needs a model's attention weights, which no chat API gives.
"""

from __future__ import annotations

from ..debate import Ask, Debate
from ..records import ExitSignal, Signals, Turn
from .rounds import everybody, in_rounds
from .steps import Answer, Finish, Step, missing_answers, verdict

THRESHOLDS: dict[ExitSignal, float] = {"max": 2.5, "mean": 0.25, "q90": 0.7, "q95": 1.2, "q99": 2.5}
"""Nats. For ``max`` the authors' constant; the others are this program's, to be set for the model at hand."""
SIGNAL_TITLES: dict[ExitSignal, str] = {
    "max": "largest token NLL",
    "mean": "mean token NLL",
    "q90": "90 % quantile of the token NLLs",
    "q95": "95 % quantile of the token NLLs",
    "q99": "99 % quantile of the token NLLs",
}


def next_step(debate: Debate) -> Step:
    """Ask all (or the first alone); then those that did not leave debate until consensus, T rounds, or the budget."""
    if debate.settings.exit_variant == "gate_first":
        first = next(iter(debate.agents.values()))
        if not first.answered:
            return Answer((first.name,))
        if leaves(debate, first.name):
            return Finish(verdict(debate, "early_exit", first.initial_belief, agent=first.name))
    return missing_answers(debate) or in_rounds(debate, _asks, nobody="exits")


def uncertainty(signals: Signals | None, signal: ExitSignal) -> float | None:
    """A token NLL in nats, at least 0; None if the reply has no such signal."""
    if signals is None:
        return None
    if signal == "max":
        return max(0.0, -signals.min_logprob)
    if signal == "mean":
        return max(0.0, -signals.mean_logprob)
    return (signals.nll_quantiles or {}).get(signal)


def leaves(debate: Debate, name: str) -> bool:
    """Whether an agent was confident enough of its initial answer to leave with it."""
    state = debate.agents[name]
    if not state.turns or state.initial_belief is None:
        return False
    return _confident(debate, state.turns[0][1])


def _confident(debate: Debate, turn: Turn) -> bool:
    settings = debate.settings
    nats = uncertainty(turn.signals, settings.exit_signal)
    if nats is not None:
        return nats <= threshold(debate)
    return turn.confidence is not None and turn.confidence >= settings.exit_confidence


def threshold(debate: Debate) -> float:
    """Nats at or below which an agent leaves."""
    settings = debate.settings
    return THRESHOLDS[settings.exit_signal] if settings.exit_threshold is None else settings.exit_threshold


def _asks(debate: Debate, number: int) -> list[Ask]:
    gate = debate.settings.exit_variant == "gate_first"
    return [ask for ask in everybody(debate, number) if gate or not leaves(debate, ask.agent)]


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent left or stayed, and whom it hears."""
    state = debate.agents[ask.agent]
    if not state.turns:
        return ""
    gate = debate.settings.exit_variant == "gate_first"
    if gate and state.index:
        return f"Everybody hears everybody: {ask.agent} hears all {len(ask.heard)} others." if ask.heard else ""
    told = _measured(debate, ask.agent)
    if ask.heard:
        left = [name for name in ask.heard if not gate and leaves(debate, name)]
        also = (
            f", {', '.join(left)} too, which left and {'is' if len(left) == 1 else 'are'} still heard" if left else ""
        )
        return f"{told} It stays, and hears everybody{also}."
    if leaves(debate, ask.agent):
        return f"{told} {'Its answer is final' if gate else 'It leaves with its answer and will not debate'}."
    return f"{told} {'So all are asked' if gate else 'It stays'}."


def _measured(debate: Debate, name: str) -> str:
    """What the early exit looked at, with its numbers."""
    settings, state = debate.settings, debate.agents[name]
    turn, limit = state.turns[0][1], threshold(debate)
    if state.initial_belief is None:
        return f"{name} has no answer to leave with."
    nats = uncertainty(turn.signals, settings.exit_signal)
    if nats is not None:
        title = SIGNAL_TITLES[settings.exit_signal]
        return f"The {title} of {name} is {nats:.2f} nats, {'at most' if nats <= limit else 'above'} {limit:g}."
    what = "log-probabilities" if turn.signals is None else f"{SIGNAL_TITLES[settings.exit_signal]} recorded"
    if turn.confidence is None:
        return f"The reply of {name} has no {what} and states no confidence."
    least = settings.exit_confidence
    beside = "at least" if turn.confidence >= least else "below"
    return (
        f"The reply of {name} has no {what}, so its stated confidence counts: "
        f"{turn.confidence:.0%}, {beside} {least:.0%}."
    )
