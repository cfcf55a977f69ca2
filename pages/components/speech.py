"""What a model wrote, taken apart for showing: text, formulas, bold; and which of it is new.

Nothing here becomes HTML: the pieces are set as text in the browser, and formulas by KaTeX, which trusts nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

LONGEST_FORMULA = 1000
"""Characters; what is longer stays text."""
LONGEST_REPLY = 40_000
"""Characters in which formulas are looked for; the rest of a longer reply stays text."""

_ENVIRONMENTS = "equation|align|aligned|gather|gathered|multline|eqnarray|cases|array|pmatrix|bmatrix|vmatrix|split"
_MARKS = re.compile(
    rf"""
    \\\[ (?P<square>.{{1,{LONGEST_FORMULA}}}?) \\\]
  | \\\( (?P<round>.{{1,{LONGEST_FORMULA}}}?) \\\)
  | (?<!\\)\$\$ (?P<dollars>[^$]{{1,{LONGEST_FORMULA}}}?) \$\$
  | (?P<environment>\\begin\{{(?P<name>{_ENVIRONMENTS})\*?\}} .{{0,{LONGEST_FORMULA}}}? \\end\{{(?P=name)\*?\}})
  | (?<![\\$\w])\$ (?P<dollar>(?![\s$]) [^$\n]{{1,400}}? (?<![\s\\])) \$ (?![\d$])
  | (?P<boxed>\\boxed\{{(?:[^{{}}\n]|\{{[^{{}}\n]{{0,100}}\}}){{1,200}}\}})
  | \*\* (?P<strong>(?=\S) [^*\n]{{1,300}}? (?<=\S)) \*\*
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = {"square": "display", "round": "math", "dollars": "display", "environment": "display", "strong": "strong"}
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=\S)|\n+")


class Piece(NamedTuple):
    """Part of a reply."""

    kind: str
    """``text``, ``strong``, ``math`` (in the line) or ``display`` (a formula of its own)."""
    text: str
    mark: str = ""
    """``new`` or ``gone``, beside another text."""


def pieces(text: str) -> list[Piece]:
    r"""Take a reply apart.

    Formulas are what stands in ``\( \)``, ``\[ \]``, ``$ $``, ``$$ $$`` or a LaTeX environment. Between single
    dollars only what looks like a formula is one, so that "$5 and $10" stays money.

    Examples
    --------
    >>> [p.kind for p in pieces(r"It costs $5 and $10, so \(x = 5\).")]
    ['text', 'math', 'text']
    """
    found: list[Piece] = []
    end = 0
    for match in _MARKS.finditer(text, 0, LONGEST_REPLY):
        group = match.lastgroup if match.lastgroup != "name" else "environment"
        assert group is not None
        inner = match[group]
        if group == "dollar" and not _is_formula(inner):
            continue
        if match.start() > end:
            found.append(Piece("text", text[end : match.start()]))
        found.append(Piece(_KINDS.get(group, "math"), inner.strip() if group != "strong" else inner))
        end = match.end()
    if end < len(text):
        found.append(Piece("text", text[end:]))
    return [_beside_display(piece, found[i - 1 : i], found[i + 1 : i + 2]) for i, piece in enumerate(found)]


def _beside_display(piece: Piece, before: list[Piece], after: list[Piece]) -> Piece:
    """A text without the line breaks that a displayed formula beside it makes by itself."""
    text = piece.text
    if piece.kind == "text":
        if before and before[0].kind == "display":
            text = text.lstrip(" ").removeprefix("\n")
        if after and after[0].kind == "display":
            text = text.rstrip(" ").removesuffix("\n")
    return piece._replace(text=text)


def _is_formula(inner: str) -> bool:
    """Whether what stands between two dollars is a formula rather than an amount, words, and an amount."""
    rest = re.sub(r"\\(?:text|mathrm|textbf|operatorname)\s*\{[^{}]*\}", " ", inner)
    rest = re.sub(r"\\[A-Za-z]+", " ", rest)
    words = re.findall(r"[A-Za-z]{3,}", rest)
    if re.search(r"[\\^_{}]", inner):
        return len(words) < 3
    if words:
        return False
    return " " not in inner.strip() or bool(re.search(r"[=<>+*/|≤≥≠]", inner))


def marked(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Two replies with what only one of them says marked, sentence by sentence.

    Returns
    -------
    before, after
        The pieces of each; those of ``before`` that ``after`` does not repeat are marked ``gone``, the others
        ``new``. Where the texts share nothing, nothing is marked: all of it is new.
    """
    old, new = _sentences(before), _sentences(after)
    kept = {_plain(p) for p in old} & {_plain(p) for p in new} - {""}
    if not kept:
        return old, new
    return (
        [p if _plain(p) in kept or not _plain(p) else p._replace(mark="gone") for p in old],
        [p if _plain(p) in kept or not _plain(p) else p._replace(mark="new") for p in new],
    )


def _sentences(text: str) -> list[Piece]:
    """Pieces, with text cut after each sentence and line."""
    found: list[Piece] = []
    for piece in pieces(text):
        if piece.kind != "text":
            found.append(piece)
            continue
        start = 0
        for cut in _SENTENCE_END.finditer(piece.text):
            found.append(Piece("text", piece.text[start : cut.end()]))
            start = cut.end()
        if start < len(piece.text):
            found.append(Piece("text", piece.text[start:]))
    return found


def _plain(piece: Piece) -> str:
    """A piece without what does not count when two are compared."""
    return " ".join(re.sub(r"[\s*#.,:;]+", " ", piece.text).split()).casefold()


def in_a_sentence(before: Sequence[Piece], after: Sequence[Piece]) -> str:
    """What ``marked`` has found, for the reader."""
    if any(p.mark for p in after):
        return "what is new is marked"
    if any(p.mark for p in before):
        return "nothing new: what is gone is marked"
    same = {_plain(p) for p in before} == {_plain(p) for p in after}
    return "the same as it said before" if same else "written anew: no sentence of before is kept"
