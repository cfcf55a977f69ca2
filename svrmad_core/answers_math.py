"""Exact, strict comparison of mathematical answers: numbers, units, lists, pairs, intervals, words.

What is neither clearly the same nor clearly different is left to ``decide``, which compares two single
expressions by algebra.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from fractions import Fraction

MAX_LENGTH = 1_000
MAX_DEPTH = 40
MAX_BITS = 20_000
MAX_ELEMENTS = 40

Decide = Callable[[str, str], bool] | None


def same(a: str, b: str, decide: Decide) -> bool | None:
    """Compare two answers.

    Parameters
    ----------
    a, b
        Any strings.
    decide
        Compares two expressions by algebra, or None.

    Returns
    -------
    bool or None
        None only if ``decide`` is None and would be needed.
    """
    if max(len(a), len(b)) > 2 * MAX_LENGTH:
        return _bare(unicodedata.normalize("NFKC", a)) == _bare(unicodedata.normalize("NFKC", b))
    a, b = clean(a), clean(b)
    if _bare(a) == _bare(b):
        return True
    if max(len(a), len(b)) > MAX_LENGTH or _depth(a) > MAX_DEPTH or _depth(b) > MAX_DEPTH:
        return False
    return _same(a, b, decide)


def _same(a: str, b: str, decide: Decide) -> bool | None:
    if _bare(a) == _bare(b):
        return True
    if not a or not b:
        return False
    named = _LEFT_SIDE.match(a), _LEFT_SIDE.match(b)
    if named[0] and named[1] and "=" not in (a + b)[named[0].end() : len(a)] + b[named[1].end() :]:
        same_name = named[0][1] == named[1][1]
        return same_name and _same(a[named[0].end() :].strip(), b[named[1].end() :].strip(), decide)
    first, second = elements(a), elements(b)
    if first is not None or second is not None:
        first, second = first or [a], second or [b]
        return _match(first, second, decide) if len(first) == len(second) else False
    first_interval, second_interval = interval(a), interval(b)
    if first_interval is not None or second_interval is not None:
        if first_interval is None or second_interval is None:
            return False
        if first_interval[0] != second_interval[0] or len(first_interval[1]) != len(second_interval[1]):
            return False
        return _all(_same(x, y, decide) for x, y in zip(first_interval[1], second_interval[1], strict=True))
    x, y = quantity(a), quantity(b)
    if x is not None and y is not None:
        return x[0] == y[0] and (x[1] == y[1] or not x[1] or not y[1])
    if (x is not None and x[1]) or (y is not None and y[1]):
        return False
    words = _words(a), _words(b)
    if words[0] != words[1]:
        return False
    if words[0]:
        rest = _without_words(a), _without_words(b)
        return _same(rest[0], rest[1], decide) if all(rest) else _bare(rest[0]) == _bare(rest[1])
    if monstrous(a) or monstrous(b):
        return False
    return decide(a, b) if decide is not None else None


def _all(results: object) -> bool | None:
    unsure = False
    for result in results:  # type: ignore[attr-defined]
        if result is False:
            return False
        unsure = unsure or result is None
    return None if unsure else True


def _match(first: list[str], second: list[str], decide: Decide) -> bool | None:
    """One-to-one: each element of one list is the same as one of the other."""
    if len(first) > MAX_ELEMENTS:
        return sorted(map(_bare, first)) == sorted(map(_bare, second))
    left, unsure = list(second), False
    for x in first:
        results = [_same(x, y, decide) for y in left]
        if True in results:
            left.pop(results.index(True))
        elif None in results:
            left.pop(results.index(None))
            unsure = True
        else:
            return False
    return None if unsure else True


# -- cleaning ------------------------------------------------------------------------------------------------

_WRAPPERS = ("boxed", "fbox", "mathrm", "mathbf", "textbf", "mathit", "operatorname", "displaystyle")


def clean(text: str) -> str:
    """One spelling for what LaTeX and Unicode write in many ways; keeps words and order."""
    text = " ".join(unicodedata.normalize("NFKC", _digits_apart(text)).replace("⁄", "/").strip("* `").split())
    # a row's end in a matrix must not read as a space
    text = text.replace("\\\\", "\0")
    for old, new in _SPELLINGS:
        text = text.replace(old, new)
    text = re.sub(r"\s*\0\s*", lambda _: "\\\\", text)
    text = re.sub(r"(?<=\d),\\?\s?(?=\d{3}(?!\d))(?=\d{3})", lambda m: "," if m[0] == "," else m[0], text)
    for name in ("boxed", "fbox"):
        text = _unwrap(text, name)
    text = _strip_dollars(text.strip())
    text = re.sub(r"\\(?:mathrm|mathbf|textbf|mathit|operatorname|textit|mbox)\s*\{", r"\\text{", text)
    text = re.sub(r"(?<![A-Za-z\\])(?:the )?(?:final )?answer is:? ", "", text, flags=re.I)
    while len(text) > 1 and text[-1] in ".。,;" and not text.endswith("\\,"):
        text = text[:-1].strip()
    return _drop_left_side(_SET_BUILDER.sub(r"\1", text))


_SPELLINGS = (
    ("\\left", ""),
    ("\\right", ""),
    ("\\dfrac", "\\frac"),
    ("\\tfrac", "\\frac"),
    ("\\cfrac", "\\frac"),
    ("{,}", ","),
    ("\\!", ""),
    ("\\,", " "),
    ("\\;", " "),
    ("\\:", " "),
    ("\\ ", " "),
    ("~", " "),
    ("\\quad", " "),
    ("\\displaystyle", ""),
    ("−", "-"),
    ("–", "-"),
    ("×", "\\times "),
    ("·", "\\cdot "),
    ("÷", "/"),
    ("≤", "\\le "),
    ("≥", "\\ge "),
    ("\\leq", "\\le"),
    ("\\geq", "\\ge"),
    ("\\leslant", "\\le"),
    ("\\lt", "<"),
    ("\\gt", ">"),
    ("±", "\\pm "),
    ("∞", "\\infty "),
    ("π", "\\pi "),
    ("√", "\\sqrt "),
    ("\\%", "%"),
    ("\\degree", "°"),
    ("^{\\circ}", "°"),
    ("^\\circ", "°"),
    ("**", "^"),
    ("\\varnothing", "\\emptyset"),
    ("≠", "\\ne "),
    ("\\neq", "\\ne"),
    ("∪", "\\cup "),
    ("∈", "\\in "),
)


def _digits_apart(text: str) -> str:
    """What NFKC would run together: 2½ is a mixed number, x² a power, √12 a root."""
    text = re.sub(r"(?<=\d)(?=[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])", " ", text)
    text = re.sub(r"√\s*(\d{1,40}|[A-Za-z])", r"\\sqrt{\1}", text)
    return re.sub(r"[⁰¹²³⁴-⁹⁺⁻ⁿ]+", lambda m: "^{" + unicodedata.normalize("NFKC", m[0]) + "}", text)


def _unwrap(text: str, name: str) -> str:
    mark = f"\\{name}{{"
    while (at := text.find(mark)) >= 0:
        end = _closing(text, at + len(mark))
        if end < 0:
            return text.replace(mark, "{")
        text = text[:at] + text[at + len(mark) : end] + text[end + 1 :]
    return text


def _closing(text: str, at: int) -> int:
    """The index of the brace that closes the one before ``at``, or -1."""
    depth = 1
    for i in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return i
    return -1


def _strip_dollars(text: str) -> str:
    """Dollars that delimit formulas go, a single one before a number is money."""
    text = text.replace("$$", "$")
    for left, right in (("\\(", "\\)"), ("\\[", "\\]")):
        if text.startswith(left) and text.endswith(right) and text.count(left) == 1:
            text = text[2:-2].strip()
    money = "\\$" in text
    text = text.replace("\\$", " dollars_sign ")
    if text.count("$") % 2 == 1 and not money:
        text = text.replace("$", " dollars_sign ", 1)
    return text.replace("$", " ").replace("dollars_sign", "$").strip()


_SET_BUILDER = re.compile(r"^\\\{\s*[A-Za-z]\s*(?:\\mid|:|\|)\s*(.+?)\s*\\\}$")
_LEFT_SIDE = re.compile(r"\s*([A-Za-z](?:_\{?\w\}?)?|[a-zA-Z]\([a-z]\))\s*(?:=|\\equals)\s*(?!=)")


def _drop_left_side(text: str) -> str:
    """``x = 5`` says 5; kept where the right side holds the name again or another sign of equality."""
    match = _LEFT_SIDE.match(text)
    if match is None:
        return text
    rest = text[match.end() :]
    name = match[1]
    if not rest.strip() or "=" in rest:
        return text
    if len(name) == 1 and re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", rest):
        return text
    return rest.strip()


def _bare(text: str) -> str:
    return re.sub(r"\s+", "", text.replace("\\text{", "{")).replace("{", "").replace("}", "")


def _depth(text: str) -> int:
    deepest = depth = 0
    for character in text:
        if character in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ")]}":
            depth -= 1
    return deepest


# -- numbers and units ---------------------------------------------------------------------------------------

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
_PLAIN = re.compile(_DIGITS)
_SCIENTIFIC = re.compile(
    rf"({_DIGITS})\s*(?:[eE]([+-]?\d{{1,4}})|"
    r"(?:\\times|\\cdot|\*)\s*10\s*\^\s*\{?\s*([+-]?\d{1,4})\s*\}?)"
)
_POWER = re.compile(r"(\d{1,30})\s*\^\s*(?:\{\s*(-?\d{1,6})\s*\}|(-?\d{1,6}))")
_HALF = r"(?:\{\s*(\d{1,30})\s*\}|(\d))"
_MIXED = re.compile(rf"(\d{{1,30}})\s+(\d{{1,30}})\s*/\s*(\d{{1,30}})|(\d{{1,30}})\s*\\frac\s*{_HALF}\s*{_HALF}")
_REPEATING = re.compile(r"(\d{0,30})\.(\d{0,30})\\(?:overline|bar|dot)\s*\{?\s*(\d{1,30})\s*\}?")
_SHORT_FRACTION = re.compile(r"\\frac\s*(\d)\s*(\d)")


def value(text: str, depth: int = 0) -> Fraction | None:
    """The exact value of a number written any usual way, without unit; None if it is not a plain number."""
    text = text.strip()
    if not text or depth > 6 or len(text) > 400:
        return None
    if text[0] in "+-":
        inner = value(text[1:], depth + 1)
        return None if inner is None else -inner if text[0] == "-" else inner
    if text[0] == "{" and _closing(text, 1) == len(text) - 1:
        return value(text[1:-1], depth + 1)
    if text[0] == "(" and text[-1] == ")" and text.count("(") == 1:
        return value(text[1:-1], depth + 1)
    if match := _REPEATING.fullmatch(text):
        whole, still, repeated = match.groups()
        tail = Fraction(int(repeated), (10 ** len(repeated) - 1) * 10 ** len(still))
        return Fraction(f"{whole or 0}.{still or 0}") + tail
    if _PLAIN.fullmatch(text):
        return Fraction(text.replace(",", ""))
    if match := _SCIENTIFIC.fullmatch(text):
        return Fraction(match[1].replace(",", "")) * Fraction(10) ** int(match[2] or match[3])
    if match := _POWER.fullmatch(text):
        base, exponent = int(match[1]), int(match[2] or match[3])
        if (base == 0 and exponent <= 0) or base.bit_length() * abs(exponent) > MAX_BITS:
            return None
        return Fraction(base) ** exponent
    if match := _MIXED.fullmatch(text):
        whole, top, bottom = (
            next(g for g in group if g) for group in (match.group(1, 4), match.group(2, 5, 6), match.group(3, 7, 8))
        )
        return None if int(bottom) == 0 else int(whole) + Fraction(int(top), int(bottom))
    if match := _SHORT_FRACTION.fullmatch(text):
        return None if match[2] == "0" else Fraction(int(match[1]), int(match[2]))
    if text.startswith("\\frac"):
        top, rest = _group(text[5:])
        bottom, after = _group(rest)
        if top is not None and bottom is not None and not after.strip():
            return _ratio(value(top, depth + 1), value(bottom, depth + 1))
    if text.count("/") == 1:
        top, bottom = text.split("/")
        return _ratio(value(top, depth + 1), value(bottom, depth + 1))
    return None


def _group(text: str) -> tuple[str | None, str]:
    """The braced group a text begins with, and what follows."""
    text = text.lstrip()
    if not text.startswith("{") or (end := _closing(text, 1)) < 0:
        return None, text
    return text[1:end], text[end + 1 :]


def _ratio(top: Fraction | None, bottom: Fraction | None) -> Fraction | None:
    return None if top is None or not bottom else top / bottom


_UNIT_NAMES = {
    "$": "dollar",
    "usd": "dollar",
    "buck": "dollar",
    "€": "euro",
    "eur": "euro",
    "£": "pound",
    "cent": "cent",
    "¢": "cent",
    "°": "degree",
    "deg": "degree",
    "metre": "m",
    "meter": "m",
    "centimeter": "cm",
    "centimetre": "cm",
    "millimeter": "mm",
    "kilometer": "km",
    "kilometre": "km",
    "hour": "h",
    "hr": "h",
    "minute": "min",
    "second": "s",
    "sec": "s",
    "kilogram": "kg",
    "gram": "g",
    "liter": "l",
    "litre": "l",
    "foot": "ft",
    "feet": "ft",
    "inch": "in",
    "inche": "in",
    "mph": "mile/h",
    "kph": "km/h",
}
_TAIL = re.compile(
    r"(?P<text>\\text\s*\{[^{}]{1,40}\}(?:\^\{?[23]\}?)?)|(?P<sign>[$€£¢°])|"
    r"(?P<word>(?<=[\s\d}])[A-Za-z][A-Za-z /]{0,40}(?:\^\{?[23]\}?)?)"
)


_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALED = re.compile(
    r"([$€£]?)([\d.,/ ]{1,40})(?:\\text\s*\{\s*)?(thousand|million|billion|trillion)\b\s*\}?([A-Za-z ]{0,40})",
    re.I,
)


def quantity(text: str) -> tuple[Fraction, str] | None:
    """One number with its unit ("" for none): ``$1,250``, ``1250 dollars``, ``50%``, ``5 \\text{ cm}``."""
    text = text.strip()
    if (plain := value(text)) is not None:
        return plain, ""
    sign = ""
    if text.startswith(("-", "+")):
        sign, text = text[0], text[1:].strip()
    if match := _SCALED.fullmatch(text):
        amount, named = value(sign + match[2].strip()), match[4].strip()
        unit = _unit(match[1] or named) if match[1] or named else ""
        return None if amount is None or unit is None else (amount * _SCALES[match[3].lower()], unit)
    if text[:1] in ("$", "€", "£"):
        amount = value(sign + text[1:].strip())
        return None if amount is None else (amount, _unit(text[0]))
    if match := re.fullmatch(r"(.+?)\s*(?:%|\\?\s*(?:\\text\s*\{)?\s*per\s?cent\s*\}?)", text, flags=re.I):
        amount = value(sign + match[1])
        return None if amount is None else (amount / 100, "")
    for match in _TAIL.finditer(text):
        if match.end() != len(text) or match.start() == 0:
            continue
        amount = value(sign + text[: match.start()])
        unit = _unit(match[0])
        if amount is not None and unit is not None:
            return amount, unit
    return None


def _unit(text: str) -> str | None:
    """A unit's one name; None for what is rather a variable."""
    in_text = text.startswith("\\text")
    bare = re.sub(r"\\text\s*\{([^{}]*)\}", r"\1", text).strip().lower()
    bare = bare.replace("per ", "/").replace(" /", "/").replace("/ ", "/")
    power = ""
    if match := re.search(r"\^\{?([23])\}?$", bare):
        power, bare = f"^{match[1]}", bare[: match.start()].strip()
    if match := re.match(r"(square|sq|cubic) ", bare):
        power, bare = "^3" if match[1] == "cubic" else "^2", bare[match.end() :]
    if len(bare) == 1 and bare not in _UNIT_NAMES and not in_text and bare not in "mgshl":
        return None
    if re.search(r"\b(?:and|or|if|for|odd|even|mod|when|where|all|any)\b", bare):
        return None
    names = []
    for name in bare.split("/"):
        name = name.strip()
        singular = name[:-1] if name.endswith("s") and len(name) > 2 else name
        names.append(_UNIT_NAMES.get(name) or _UNIT_NAMES.get(singular) or singular)
    return "/".join(names) + power


# -- lists, pairs, intervals -----------------------------------------------------------------------------------

_AND = re.compile(
    r"\s*(?:,|;)?\s*(?:\\text\s*\{\s*(?:and|or)\s*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z]))\s*|\s*[,;]\s*"
)


def elements(text: str) -> list[str] | None:
    """The elements of an unordered list or set of answers; None if it is a single answer."""
    text = text.strip()
    braced = text.startswith("\\{") and text.endswith("\\}") and text.count("\\{") == 1
    if braced:
        text = text[2:-2].strip()
    if value(text) is not None or quantity(text) is not None:
        return [text] if braced else None
    parts = _split(text)
    named = [match[1] for part in parts if (match := _LEFT_SIDE.match(part))]
    if len(set(named)) <= 1:
        # x=1, y=2 is not x=2, y=1: names are dropped only where there is one
        parts = [_drop_left_side(p) for p in parts]
    if len(parts) == 1:
        plus_minus = _plus_minus(parts[0])
        return plus_minus or (parts if braced else None)
    if any(not p for p in parts):
        return None
    result = []
    for part in parts:
        result += _plus_minus(part) or [part]
    unique: list[str] = []
    for part in result:
        if _bare(part) not in [_bare(u) for u in unique]:
            unique.append(part)
    return unique


def _split(text: str) -> list[str]:
    """Split at commas, semicolons, "and" and "or" outside all brackets; thousands stay whole."""
    parts, depth, start, i = [], 0, 0, 0
    while i < len(text):
        character = text[i]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif depth == 0 and (match := _AND.match(text, i)) and match.end() > i:
            if (
                match[0] == ","
                and re.search(r"(?<!\d)\d{1,3}$", text[start:i])
                and re.match(r"\d{3}(?!\d)", text[i + 1 :])
            ):
                i += 1
                continue
            parts.append(text[start:i].strip())
            start = i = match.end()
            continue
        i += 1
    parts.append(text[start:].strip())
    return parts


def _plus_minus(text: str) -> list[str] | None:
    if text.count("\\pm") != 1:
        return None
    left, right = text.split("\\pm")
    right = right.strip()
    if not left.strip():
        return [right, f"-{right}" if re.fullmatch(r"[\w.]+|\\frac\{\w+\}\{\w+\}", right) else f"-({right})"]
    return [f"{left.strip()}+{right}", f"{left.strip()}-{right}"]


_CHAIN = re.compile(
    r"^([^<>=]+?)\s*(<|\\le(?![a-z])|<=)\s*([A-Za-z]|[a-zA-Z]\([a-z]\))\s*(<|\\le(?![a-z])|<=)\s*([^<>=]+)$"
)
_CHAIN_BACK = re.compile(r"^([^<>=]+?)\s*(>|\\ge(?![a-z])|>=)\s*([A-Za-z])\s*(>|\\ge(?![a-z])|>=)\s*([^<>=]+)$")
_ONE_SIDE_BACK = re.compile(r"^([^<>=,]+?)\s*(<=|>=|<|>|\\le(?![a-z])|\\ge(?![a-z]))\s*([A-Za-z])$")
_MIRRORED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "\\le": "\\ge", "\\ge": "\\le"}
_ONE_SIDE = re.compile(r"^([A-Za-z])\s*(<=|>=|<|>|\\le(?![a-z])|\\ge(?![a-z]))\s*([^<>=]+)$")
_MEMBER = re.compile(r"^[A-Za-z]\s*\\in\s*")


def interval(text: str) -> tuple[str, list[str]] | None:
    """A tuple or interval as its brackets and ordered ends; chains of inequalities as intervals."""
    text = _MEMBER.sub("", text.strip())
    if match := _CHAIN.match(text):
        low, left, _, right, high = match.groups()
        return ("(" if left == "<" else "[") + (")" if right == "<" else "]"), [low.strip(), high.strip()]
    if match := _CHAIN_BACK.match(text):
        high, left, _, right, low = match.groups()
        return ("(" if right == ">" else "[") + (")" if left == ">" else "]"), [low.strip(), high.strip()]
    if (match := _ONE_SIDE_BACK.match(text)) and not re.fullmatch(r"[A-Za-z]", match[1]):
        text = f"{match[3]} {_MIRRORED[match[2]]} {match[1]}"
    if match := _ONE_SIDE.match(text):
        _, sign, end = match.groups()
        ends = ["-\\infty", end.strip()] if sign in ("<", "<=", "\\le") else [end.strip(), "\\infty"]
        strict = sign in ("<", ">")
        brackets = {True: "()", False: "(]" if ends[0] == "-\\infty" else "[)"}[strict]
        return brackets, ends
    if len(text) > 2 and text[0] in "([" and text[-1] in ")]":
        parts = _split(text[1:-1])
        if len(parts) > 1 and all(parts) and _balanced(text[1:-1]):
            return text[0] + text[-1], parts
    return None


def _balanced(text: str) -> bool:
    depth = 0
    for character in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


# -- words, and what is too large to evaluate -------------------------------------------------------------------

_FUNCTIONS = frozenset(
    r"""sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log exp max min gcd lcm mod sqrt floor ceil det
    deg dim lim sup inf frac""".split()  # noqa: SIM905 - a list of forty strings is harder to read
)
_WORD = re.compile(r"(?<![A-Za-z\\])[A-Za-z]{3,}(?![A-Za-z])|(?<![A-Za-z\\])(?:is|if|or|[Nn]o|of|in|to)(?![A-Za-z])")
_COMMAND = re.compile(r"\\[A-Za-z]+")


def _words(text: str) -> list[str]:
    """The words of an answer that carry meaning beside its symbols."""
    without = _COMMAND.sub(" ", text.replace("\\text", " "))
    return [w.casefold() for w in _WORD.findall(without) if w not in _FUNCTIONS]


def _without_words(text: str) -> str:
    text = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text)
    return _WORD.sub(lambda m: m[0] if m[0] in _FUNCTIONS else " ", text).strip()


_TOWER = re.compile(r"(\d+)\s*\)?\s*\^\s*[{(\s]*(\d+)\s*\)?\s*\^\s*[{(\s]*(\d+)")
_LARGE_POWER = re.compile(r"\^\s*[{(]?\s*-?\d{5,}")
_LARGE_FACTORIAL = re.compile(r"\d{4,}\s*[)}]?\s*!|![\s)}]*!")
_LARGE_CHOICE = re.compile(r"\\[dt]?binom\s*\{\s*(?:\d{5,}|\d+\s*\^)|\\[dt]?binom\s*\d\s*\d{5,}")


_HUGE_RANGE = re.compile(r"\\(?:sum|prod)\s*(?:\\limits\s*)?(?:_[^^]{0,60})?\^\s*\{?\s*(?:\d{5,}|\d+\s*\^)")
_POWER_FACTORIAL = re.compile(r"\^\s*\{?\s*\d+\s*[)}]{0,3}\s*!|!\s*[)}]{0,3}\s*\^\s*\{?\s*\d{2,}")


def _exponents(text: str) -> list[str]:
    """What stands in braces or brackets after each sign of a power."""
    found = []
    for match in re.finditer(r"\^\s*([{(])", text):
        depth, at = 1, match.end()
        while at < len(text) and depth:
            depth += (text[at] in "{(") - (text[at] in ")}")
            at += 1
        found.append(text[match.end() : at])
    return found


def _tall(exponent: str) -> bool:
    """True for an exponent that is a tower, a factorial or a large power itself."""
    towers = exponent.count("^") > 1 and _depth(exponent) > 1
    return towers or bool(re.search(r"\d\s*!|\d{2,}\s*\^\s*\{?\s*\d{2,}", exponent))


def monstrous(text: str) -> bool:
    """True for numbers that must not be evaluated: towers of powers, huge powers, factorials and choices."""
    if _LARGE_POWER.search(text) or _LARGE_FACTORIAL.search(text) or _LARGE_CHOICE.search(text):
        return True
    if _HUGE_RANGE.search(text) or _POWER_FACTORIAL.search(text) or any(map(_tall, _exponents(text))):
        return True
    for base, middle, top in _TOWER.findall(text):
        if int(base[:6]) > 1 and (len(middle) > 3 or len(top) > 2 or int(middle) ** int(top) > MAX_BITS // 4):
            return True
    return False
