"""What kind of question a text is, guessed from the text alone; a page offers it, and a user can choose another."""

from __future__ import annotations

import re

from .records import Kind

_OPTION = re.compile(r"^\s*\(?([A-Z])[).:]\s+(\S.*?)\s*$")
_MATH = re.compile(
    r"\d|[=^√∑∫π]|\\frac|\$|\b(how (many|much|long|far|old|often)|probability|percent(age)?|sum|product|number of|solve"
    r"|compute|calculate|equation|integer|digits?|prime|derivative|integral|area|perimeter|volume|average)\b",
    re.IGNORECASE,
)


def split_options(text: str) -> tuple[str, list[str]]:
    """A question and its options, where they stand in lines of their own that begin A), B), ... in order.

    Returns
    -------
    (str, list of str)
        The text without the options, and the options' texts; the text as it is and no option where there are
        fewer than two.

    Examples
    --------
    >>> split_options("Which is a mammal?\\nA) the trout\\nB) the bat")
    ('Which is a mammal?', ['the trout', 'the bat'])
    """
    question, options = [], []
    for line in text.splitlines():
        found = _OPTION.match(line)
        if found is not None and ord(found[1]) - ord("A") == len(options):
            options.append(found[2])
        else:
            question.append(line)
    if len(options) < 2:
        return text.strip(), []
    return "\n".join(question).strip(), options


def guess_kind(text: str) -> Kind:
    """``choice`` if the text holds options, ``math`` if it speaks of numbers, else ``text``."""
    if split_options(text)[1]:
        return "choice"
    return "math" if _MATH.search(text) else "text"


__all__ = ["guess_kind", "split_options"]
