"""Survival rate, Beta posterior, the rank scale of priors, and the ranking (METHOD.md, step 2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

BETA_STRENGTH = 2.0
"""k, how many debates the prior is worth in the Beta posterior."""


def svr(retained: int, changed: int) -> float:
    """Survival rate (r - c) / D with D = r + c, in [-1, 1].

    Raises
    ------
    ZeroDivisionError
        If nothing was debated: an agent without debates has a prior, not a survival rate.

    Examples
    --------
    >>> svr(3, 1)
    0.5
    """
    return (retained - changed) / (retained + changed)


def beta_score(prior: float, retained: int, changed: int, strength: float = BETA_STRENGTH) -> float:
    """Posterior mean m of Beta(k p + r, k (1 - p) + c) mapped to [-1, 1] by 2m - 1.

    What a Bayesian would do with the same evidence; with no debates it is 2p - 1.

    Examples
    --------
    >>> beta_score(0.5, 0, 0)
    0.0
    """
    mean = (strength * prior + retained) / (strength + retained + changed)
    return 2.0 * mean - 1.0


def rank_scale(priors: Sequence[float]) -> list[float]:
    """Priors evenly spaced in [0, 1] by rank; ties share the mean of their places.

    Parameters
    ----------
    priors
        One value an agent, any scale.

    Returns
    -------
    list of float
        Same length and order; a single agent, or agents that all tie, get 0.5.

    Examples
    --------
    >>> rank_scale([0.1, 0.9, 0.5])
    [0.0, 1.0, 0.5]
    """
    n = len(priors)
    if n < 2:
        return [0.5] * n
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(priors)):
        places.setdefault(value, []).append(place)
    share = {value: sum(at) / len(at) / (n - 1) for value, at in places.items()}
    return [share[value] for value in priors]


def ranking(rows: Iterable[tuple[str, float, float, int]]) -> list[tuple[str, float, float]]:
    """Order agents by (score, prior), highest first, then by the lower index.

    Parameters
    ----------
    rows
        (name, score, prior, index) of each agent to be ranked.

    Returns
    -------
    list of (name, score, prior)
    """
    return [(n, s, p) for n, s, p, _ in sorted(rows, key=lambda row: (-row[1], -row[2], row[3]))]
