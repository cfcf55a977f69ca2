"""Read an answer out of a reply; decide whether two answers are the same belief.

Replies are untrusted: nothing here raises, runs what a model wrote, or takes longer than about two seconds.
Cheap exact comparisons come first (``answers_math``); what is left is algebra, decided by Math-Verify and SymPy
in a worker process that is killed when it takes too long (``answers_worker``).
"""

from __future__ import annotations

import re
import time
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from . import answers_math
from .answers_pool import SECONDS, algebra_agrees, ready, warm_up

MAX_REPLY = 200_000
MAX_ANSWER = 2_000
MAX_BOXES = 40
"""Boxes looked at, the last ones."""
DECIDE_SECONDS = 1.8
"""All the algebra of one comparison."""


class ReadReply(NamedTuple):
    """What was read out of a reply."""

    answer: str | None
    confidence: float | None
    """In [0, 1]."""


def read_reply(text: str | None, kind: str = "math", choices: Sequence[str] = ()) -> ReadReply:
    r"""Read the answer and the stated confidence out of a reply.

    Parameters
    ----------
    text
        What the model wrote; None or empty gives no answer.
    kind
        ``math``, ``choice`` or ``text``.
    choices
        The options' texts, if known: a reply that gives the text of exactly one option names its letter.

    Returns
    -------
    ReadReply
        The last ``\boxed{...}`` or the last line that begins with "Answer", whichever comes later; None where
        there is neither, or only the prompt's placeholder. The last number of a text is never an answer.

    Examples
    --------
    >>> read_reply("So it is 15.\nAnswer: \\boxed{15}\nConfidence: 80")
    ReadReply(answer='15', confidence=0.8)
    """
    if not text:
        return ReadReply(None, None)
    body = _without_thoughts(text[-MAX_REPLY:])
    answer = _last_answer(body, kind)
    if answer is not None and (len(answer) > MAX_ANSWER or _is_placeholder(answer)):
        answer = None
    if answer is not None and kind == "choice":
        answer = _letter_of(answer, choices)
    if answer is not None and kind == "text":
        answer = _WHOLE_TEXT.sub(r"\1", answer)
    return ReadReply(answer or None, _confidence(body))


def _without_thoughts(text: str) -> str:
    """Leave out what a reasoning model thought aloud; thoughts that never end leave nothing after them."""
    return text.rpartition("</think>")[2].partition("<think>")[0]


_LABEL = re.compile(
    r"(?:^|[\n.;:!*#_>\-✅🎯—])[ \t*_#>`✅🎯]{0,12}"
    r"(?:(?:so|thus|therefore|hence)\W{1,3})?(?:(?:the|my|final|correct)[ \t]{1,3}){0,3}"
    r"answer[*_`]{0,3}[ \t]{0,3}(?:(?:is|=)(?![a-z])[ \t]{0,3}[:：]?|[:：])[*_`]{0,3}",
    re.I,
)
# a label that stands alone on its line, as in "### Final Answer"
_BARE_LABEL = re.compile(r"^[ \t*_#>`✅🎯]{0,12}(?:the )?(?:final )?answer[ \t*_`:：]{0,12}$", re.I | re.M)
_BOX = re.compile(r"\\(?:boxed|fbox)[ \t]{0,3}\{")
_BRACE = re.compile(r"\\(?:boxed|fbox)[ \t]{0,3}\{|\\.|[{}]", re.S)
_WHOLE_TEXT = re.compile(r"^\\(?:text|mathrm|textbf|mathbf)\{([^{}]*)\}$")
_CONFIDENCE_BEFORE = re.compile(r"confidence[^\n\d]{0,20}$", re.I)
_JOINT = re.compile(r"[\s,;$&]*(?:and|or|\\text\{ ?(?:and|or) ?\}|\\quad)?[\s,;$&]*", re.I)


def _last_answer(text: str, kind: str) -> str | None:
    boxes = _boxes(text)
    box_at = boxes[-1][0] if boxes else -1
    labels = [m.end() for m in _LABEL.finditer(text)] + [m.end() for m in _BARE_LABEL.finditer(text)]
    for label in sorted(labels, reverse=True):
        if label <= box_at:
            break
        found = _line_after(text, label, kind)
        if found is not None:
            return found
    return _joined(text, boxes) if boxes else None


def _boxes(text: str) -> list[tuple[int, int, str]]:
    """(start, end, content) of every closed box, in order."""
    found: list[tuple[int, int, str]] = []
    # one pass with a stack: thousands of boxes that never close must not cost a scan each
    opened: list[re.Match[str]] = []
    for match in _BRACE.finditer(text):
        if match[0].endswith("{") and match[0] != "\\{":
            opened.append(match)
        elif match[0] == "}" and opened:
            begun = opened.pop()
            about_confidence = _CONFIDENCE_BEFORE.search(text[max(0, begun.start() - 40) : begun.start()])
            if len(begun[0]) > 1 and not about_confidence:
                content = text[begun.end() : match.start()].strip()
                while found and found[-1][0] > begun.start():
                    inner = found.pop()
                    # a box that holds only a box
                    content = inner[2] if content == text[inner[0] : inner[1]] else content
                found.append((begun.start(), match.end(), content))
    return found


def _joined(text: str, boxes: list[tuple[int, int, str]]) -> str | None:
    """The last box, with those that stand right before it, parted only by commas or "and": one list."""
    start, _, content = boxes[-1]
    parts = [content]
    for before_start, before_end, before in reversed(boxes[:-1]):
        if "\n" in text[before_end:start] or not _JOINT.fullmatch(text[before_end:start][:40]):
            break
        if start - before_end > 40:
            break
        parts.insert(0, before)
        start = before_start
    return _tidy(", ".join(parts)) if all(parts) else None


def _line_after(text: str, at: int, kind: str) -> str | None:
    """What stands after a label: the rest of its line, or the next line that holds something."""
    said = text[:at].rstrip("*_` ").lower().endswith("is")
    for number, line in enumerate(text[at : at + 4 * MAX_ANSWER].split("\n")[:5]):
        if line.strip() in ("", "$$", "\\["):
            continue
        # the confidence may stand on the same line
        line, *sure = re.split(r"confidence", line, maxsplit=1, flags=re.I)
        line = line.rstrip("(,;[| ") if sure else line
        if _BOX.search(line):
            # a box that was not closed, else it would have been found
            return None
        if number:
            line = line.lstrip("> ")
        line = _LABEL_AGAIN.sub("", line)
        if said and _ABOUT_IT.match(line):
            return None
        if kind != "text":
            line = _REASON.split(line, maxsplit=1)[0]
        found = _tidy(line)
        if found or sure:
            return found or None
    return None


_LABEL_AGAIN = re.compile(
    r"^[\s*_]{0,4}(?:the )?(?:(?:final|correct) )?answer (?:is)?[ \t:]{0,3}"
    r"|^\s?(?:therefore|thus|then|indeed|correctly|still)\b,? ",
    re.I,
)
# "the answer is correct because ..." speaks about an answer and gives none
_ABOUT_IT = re.compile(
    r"[\s*_]*(?:not|correct|incorrect|wrong|right|consistent|clear|obvious|unclear|valid|confirmed|found|obtained)\b\W*\w",
    re.I,
)
# what a sentence goes on to say after its answer: "3876, and the other solver is right too", "4, not 12"
_REASON = re.compile(
    r",? (?:because|since) "
    r"|,? (?:and|but|so|which|while|as) (?:the|my|its?|this|that|we|I|our|your|they|solvers?|both)\b"
    r"|, not (?=\S)|\. (?=[A-Z][a-z']* )|\. (?=I )"
)


_EDGES = "*_`~✅🎯 \t"


def _tidy(text: str) -> str:
    """Without the marks around an answer that are not part of it."""
    before = None
    text = text.strip()
    while text != before:
        before = text
        text = text.strip(_EDGES).strip()
        if len(text) > 1 and text.endswith((".", "。")) and not text.endswith(("...", "\\.")):
            text = text[:-1].strip()
        for left, right in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]")):
            inner = text[len(left) : len(text) - len(right)]
            if len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right):
                if left not in inner:
                    text = inner.strip()
                break
    return text


_PLACEHOLDER = re.compile(
    r"(?:\\text\{)?[\[<({]*\s*(?:(?:put |insert |write )?(?:your|the|my|final|correct|short|exact)[ _-]+)*"
    r"(?:answer|result|number|value|letter|option|expression|solution)(?:[ _-]+(?:here|goes here))?\s*[\]>)}]*",
    re.I,
)


def _is_placeholder(answer: str) -> bool:
    """True for what a small model copies out of a prompt instead of an answer."""
    bare = answer.strip(" .*_")
    return not bare or bare in ("\\dots", "\\ldots", "…", "?", "___", "[]", "{}") or bool(_PLACEHOLDER.fullmatch(bare))


_CONFIDENCE = re.compile(
    r"confidence(?:[ \t]{0,3}(?:level|score|is|=)){0,2}(?:[ \t]?\([^()\n]{1,20}\))?[*_`]{0,3}[ \t]{0,3}[:：=]?"
    r"[*_`$~≈ \t]{0,6}(?:\\boxed\{)?(\d{1,6}(?:\.\d{1,6})?)[ \t]{0,2}(\\?%|/[ \t]{0,2}100?\b|percent)?",
    re.I,
)


def _confidence(text: str) -> float | None:
    """The last stated confidence, in [0, 1]; a number out of range is none."""
    stated = list(_CONFIDENCE.finditer(text))
    if not stated:
        return None
    found = stated[-1]
    value, unit = float(found[1]), (found[2] or "").replace(" ", "")
    if unit == "/10":
        value *= 10
    elif not unit and "." in found[1] and value <= 1:
        value *= 100
    return round(value / 100, 6) if 0 <= value <= 100 else None


_LETTER = re.compile(
    r"(?:(?:the|option|choice|answer|letter)[ \t]+){0,2}[\s(\[{*_$]*(?:\\(?:text|mathrm|textbf|mathbf)\{)?[\s(\[*_]*"
    r"([A-Za-z])(?:[\s)\]}*_$.:,;\-–—]|$)",
    re.I,
)


# "B and C" names no one letter
_SECOND_LETTER = re.compile(
    r"[\s)*_$}]*(?:,|;|&|/|\band\b|\bor\b)+(?: and| or)?[\s(*_$]*[A-Za-z]\b[^A-Za-z]*(?:(?:and|or)?\W*[A-Z]\b)*\W*"
)


def _letter(answer: str) -> str | None:
    """The letter that an answer to a choice begins with: (B), B., B) 12, \\text{B}, option b."""
    text = unicodedata.normalize("NFKC", answer).strip()
    match = _LETTER.match(text)
    if match is None:
        return None
    letter, rest = match[1], text[match.end() :].strip(" )]}*_$.:")
    if _SECOND_LETTER.fullmatch(text[match.end() - 1 :].lstrip(letter)):
        return None
    # "a red one" and "I think so" begin with a word of one letter
    if rest and letter in "aAI" and text[match.end() - 1 : match.end()].isspace() and rest[0].islower():
        return None
    return letter.upper()


def _letter_of(answer: str, choices: Sequence[str]) -> str | None:
    matching = [i for i, text in enumerate(choices) if same_text(text, answer)]
    letter = _letter(answer)
    if len(matching) == 1 and (letter is None or len(answer.strip()) > 1):
        return chr(65 + matching[0])
    if letter is None or (choices and ord(letter) - 65 >= len(choices)):
        return None
    return letter


def same_text(a: str, b: str) -> bool:
    """The same words: case, spaces, quotes and final punctuation do not count."""
    return _plain(a) == _plain(b)


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    text = re.sub(r"\\(?:text|mathrm|textbf|mathbf)\{([^{}]*)\}", r"\1", text)
    return " ".join(text.replace("“", '"').replace("”", '"').replace("’", "'").split()).strip(" \"'`*$.,;:!?")


def same_answer(a: str, b: str, kind: str = "math") -> bool:
    r"""Decide whether two answers are the same belief.

    Parameters
    ----------
    a, b
        Answers as they were read; any strings.
    kind
        ``math``: exact, stricter than Math-Verify (a part is not the whole, 50% is 0.5 and not 50, lists have no
        order, pairs have). ``choice``: the letter. ``text``: the words without case and final punctuation.

    Returns
    -------
    bool
        Symmetric. Within about 2 s whatever was written; the first comparison of a process that needs algebra
        also waits for the worker to start (about 1 s). What cannot be decided is not the same.

    Examples
    --------
    >>> same_answer("1/2", "50\\%")
    True
    """
    fast = same_answer_fast(a, b, kind)
    if fast is not None:
        return fast
    return _slow(*sorted((a, b)))


def same_answer_fast(a: str, b: str, kind: str = "math") -> bool | None:
    """As ``same_answer`` without starting any process; None where algebra must decide."""
    if a == b:
        return True
    if kind == "choice":
        first, second = _letter(a), _letter(b)
        return first == second if first and second else same_text(a, b)
    if kind == "text":
        return same_text(a, b)
    return _fast(*sorted((a, b)))


@lru_cache(maxsize=4096)
def _fast(a: str, b: str) -> bool | None:
    return answers_math.same(a, b, None)


@lru_cache(maxsize=4096)
def _slow(a: str, b: str) -> bool:
    ready()
    deadline = time.monotonic() + DECIDE_SECONDS

    def decide(x: str, y: str) -> bool:
        left = min(deadline - time.monotonic(), SECONDS)
        return left > 0 and algebra_agrees(x, y, left)

    return bool(answers_math.same(a, b, decide))


__all__ = ["ReadReply", "read_reply", "same_answer", "same_answer_fast", "same_text", "warm_up"]
