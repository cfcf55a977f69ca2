"""From token log-probabilities and stated confidence to a prior (METHOD.md, step 1)."""

from __future__ import annotations

import math

from .records import PriorSignal, Signals, Turn

FALLBACKS: dict[PriorSignal, tuple[PriorSignal, ...]] = {
    "min_logprob": ("min_logprob", "perplexity", "confidence", "uniform"),
    "perplexity": ("perplexity", "confidence", "uniform"),
    "confidence": ("confidence", "perplexity", "uniform"),
    "uniform": ("uniform",),
}
"""What is tried in turn when a signal is missing: many providers give no log-probabilities, many small
models state no confidence."""

UNIFORM_PRIOR = 0.5


def signals_from_logprobs(logprobs: list[float]) -> Signals | None:
    """Signals of a reply from its tokens' log-probabilities.

    Parameters
    ----------
    logprobs
        Natural logarithms, one a token. Values that are not finite or above 0 are dropped.

    Returns
    -------
    Signals or None
        None if no usable value is left.

    Examples
    --------
    >>> signals_from_logprobs([0.0, -2.0]).perplexity == math.exp(1.0)
    True
    """
    usable = [min(x, 0.0) for x in logprobs if math.isfinite(x) and x <= 1e-6]
    if not usable:
        return None
    mean = max(sum(usable) / len(usable), -700.0)
    ordered = sorted(0.0 - x for x in usable)
    return Signals(
        min_logprob=min(usable),
        mean_logprob=mean,
        perplexity=math.exp(-mean),
        tokens=len(usable),
        nll_quantiles={f"q{q}": ordered[-(-q * len(ordered) // 100) - 1] for q in (90, 95, 99)},
    )


def prior_of(turn: Turn, signal: PriorSignal) -> tuple[float, PriorSignal]:
    """The prior of an initial answer, on the scale ``probability``.

    Parameters
    ----------
    turn
        The initial answer.
    signal
        The signal wanted; ``FALLBACKS`` says what is taken when it is missing.

    Returns
    -------
    prior, used : float in [0, 1], str
        ``confidence`` is the stated 0-100 over 100, ``perplexity`` is 1 / perplexity = exp(mean token
        log-probability), ``min_logprob`` is exp(smallest token log-probability), ``uniform`` is 0.5.

    Examples
    --------
    >>> prior_of(Turn(reply="...", confidence=0.8), "min_logprob")
    (0.8, 'confidence')
    """
    for name in FALLBACKS[signal]:
        if name == "confidence" and turn.confidence is not None:
            return turn.confidence, name
        if name == "perplexity" and turn.signals is not None:
            return min(1.0, max(0.0, math.exp(min(turn.signals.mean_logprob, 0.0)))), name
        if name == "min_logprob" and turn.signals is not None:
            return min(1.0, max(0.0, math.exp(min(turn.signals.min_logprob, 0.0)))), name
    return UNIFORM_PRIOR, "uniform"
