"""The worker process: compares expressions by algebra, one JSON line in, one out. Started by ``answers_pool``."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys

MEMORY = 2 * 2**30
"""Bytes of address space."""


def main() -> None:
    """Answer until standard input closes."""
    _limit_memory()
    out = sys.stdout
    # what the libraries print must not come between the answers
    sys.stdout = io.StringIO()
    logging.disable(logging.CRITICAL)
    import math_verify  # noqa: F401 - imported before saying that we are ready
    import sympy  # noqa: F401

    print("ready", file=out, flush=True)
    for line in sys.stdin:
        a, b = json.loads(line)
        try:
            same = agree(a, b) and agree(b, a)
        except (Exception, RecursionError):
            same = False
        print(json.dumps(bool(same)), file=out, flush=True)
        sys.stdout.seek(0)
        sys.stdout.truncate()


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def agree(a: str, b: str) -> bool:
    """Whether two LaTeX expressions are equal: exactly, by simplification, never by rounding."""
    import sympy
    from math_verify import verify

    first, second = parsed(a), parsed(b)
    if first is None or second is None:
        return False
    if isinstance(first, sympy.Expr) and isinstance(second, sympy.Expr):
        if first == second:
            return True
        if first.free_symbols != second.free_symbols and (first - second).expand() != 0:
            return False
        difference = sympy.nsimplify(first, rational=True) - sympy.nsimplify(second, rational=True)
        return difference == 0 or sympy.simplify(difference) == 0
    if isinstance(first, sympy.Expr) != isinstance(second, sympy.Expr):
        return False
    return bool(verify([first], [second], strict=True, timeout_seconds=None))


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
