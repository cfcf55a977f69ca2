"""The worker process: compares expressions by algebra, one JSON line in, one out. Started by ``answers_pool``."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import signal
import sys

MEMORY = 2 * 2**30
"""Bytes of address space."""
SECONDS = 1.0
"""One comparison's time; below the parent's, so that giving up here saves it a new worker."""


class TooSlow(BaseException):
    """The time is over; not an ``Exception``, which the libraries catch here and there."""


def main() -> None:
    """Answer until standard input closes."""
    _limit_memory()
    out = sys.stdout
    # what the libraries print must not come between the answers
    sys.stdout = io.StringIO()
    logging.disable(logging.CRITICAL)
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, _give_up)
    # the first comparison builds the parser's tables; before saying that we are ready, so that none pays for it
    agree(parsed("x+1"), parsed("\\frac{x^2}{x}+2"))

    print("ready", file=out, flush=True)
    slow: set[str] = set()
    for line in sys.stdin:
        a, b = json.loads(line)
        try:
            same = decide(a, b, slow)
        except (Exception, TooSlow):
            same = False
        print(json.dumps(same), file=out, flush=True)
        sys.stdout.seek(0)
        sys.stdout.truncate()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def _give_up(*_: object) -> None:
    raise TooSlow


def _alarm(seconds: float) -> None:
    # where there is no alarm, the parent kills this process
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def decide(a: str, b: str, slow: set[str]) -> bool:
    """Whether two expressions are equal, both ways round; what is slow to parse is added to ``slow``."""
    if a in slow or b in slow:
        return False
    parsing: str | None = None
    try:
        _alarm(SECONDS)
        first = parsed(parsing := a)
        second = parsed(parsing := b)
        parsing = None
        return agree(first, second) and agree(second, first)
    except TooSlow:
        if parsing is not None:
            slow.add(parsing)
        return False
    finally:
        _alarm(0)


def agree(first: object | None, second: object | None) -> bool:
    """Whether two parsed expressions are equal: exactly, by simplification, never by rounding."""
    import sympy
    from math_verify import verify

    if first is None or second is None:
        return False
    if isinstance(first, sympy.Expr) != isinstance(second, sympy.Expr):
        return False
    sides = [e.args for e in (first, second) if isinstance(e, sympy.Equality)]
    if len(sides) == 2 and all(isinstance(side, sympy.Expr) for pair in sides for side in pair):
        # an equation may be multiplied by a number, no more
        one, other = (_exact(left - right) for left, right in sides)
        ratio = sympy.simplify(one / other)
        return bool(ratio.is_number and ratio.is_finite and ratio != 0)
    if not isinstance(first, sympy.Expr) or not isinstance(second, sympy.Expr):
        exactly = {"float_rounding": 50, "numeric_precision": 60, "timeout_seconds": None}
        return bool(verify([first], [second], strict=True, **exactly))
    first, second = _exact(first), _exact(second)
    # 1/0 is no number, so not the same as 2/0
    if first.has(sympy.zoo, sympy.nan) or second.has(sympy.zoo, sympy.nan):
        return False
    difference = first - second
    if first == second or difference == 0:
        return True
    return not _visibly_apart(difference) and sympy.simplify(difference) == 0


def _exact(expression: object) -> object:
    """Decimals as fractions; e and i as the constants they nearly always are in an answer."""
    import sympy

    constants = {"e": sympy.E, "i": sympy.I}
    known = {s: constants[s.name] for s in expression.free_symbols if s.name in constants}
    # by their digits: nsimplify rounds
    decimals = {number: sympy.Rational(str(number)) for number in expression.atoms(sympy.Float)}
    return expression.xreplace(decimals).subs(known)


def _visibly_apart(difference: object) -> bool:
    """A cheap no: at one odd point the difference is far from zero."""
    import sympy

    names = sorted(difference.free_symbols, key=lambda s: s.name)
    value = difference.subs({s: sympy.Rational(37 + 8 * k, 29) for k, s in enumerate(names)}).evalf(15)
    return bool(value.is_number and value.is_finite and abs(value) > 1e-6)


def parsed(text: str) -> object | None:
    """The expression that Math-Verify reads, or None."""
    from math_verify import LatexExtractionConfig, parse

    found = parse(
        f"${text}$",
        extraction_config=[LatexExtractionConfig()],
        fallback_mode="no_fallback",
        parsing_timeout=None,
    )
    return found[0] if found and not isinstance(found[0], str) else None


if __name__ == "__main__":
    main()
