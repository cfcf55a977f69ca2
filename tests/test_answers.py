"""Answers are read out of replies as they are meant, and compared exactly, whatever a model wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from svrmad_core import answers_pool
from svrmad_core.answers import read_reply, same_answer, same_answer_fast, warm_up

ROOT = Path(__file__).parent.parent
SECONDS = 2.0
"""The longest that one comparison may take once the worker runs."""


def _lines(name: str) -> list[dict]:
    text = (Path(__file__).parent / "data" / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module", autouse=True)
def _worker_runs() -> None:
    warm_up()
    assert same_answer("x+x", "2x")


# -- comparing -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", _lines("answers.jsonl"), ids=lambda case: case["why"])
def test_case_of_comparison(case: dict):
    kind = case.get("kind", "math")
    assert same_answer(case["a"], case["b"], kind) is case["same"]
    assert same_answer(case["b"], case["a"], kind) is case["same"]


SAME = [
    ("0.75", r"\frac34"),
    (r"2\frac{2}{3}", "8/3"),
    ("2½", "5/2"),
    ("½%", "0.005"),
    ("-3", "−3"),
    (r"-\frac{1}{2}", r"\frac{1}{-2}"),
    ("1e5", "100000"),
    (r"3\times 10^8", "300000000"),
    (r"12.5\%", "1/8"),
    ("1/3", r"0.\overline{3}"),
    (r"0.1\overline{6}", "1/6"),
    (r"\$5", "5 dollars"),
    ("5 USD", r"\$5.00"),
    ("$3 million", "3,000,000 dollars"),
    ("5 cm", "5"),
    ("10 m/s", r"10\text{ m/s}"),
    (r"120 \text{ square meters}", "120 m^2"),
    ("12 cm²", "12 cm^2"),
    (r"90^\circ", "90 degrees"),
    ("x = 5", "5"),
    ("**7**", "7"),
    (r"\boxed{7}", "$7$."),
    (r"x = \pm 3", "x=3 or x=-3"),
    (r"\{1,2,3\}", "3, 2 and 1"),
    ("10,000 and 3", "3, 10000"),
    ("x=1, y=2", "y=2, x=1"),
    (r"\{(1,2),(3,4)\}", "(3,4) and (1,2)"),
    ("(1/2, 3)", "(0.5, 3)"),
    (r"1 \le x \le 2", "[1, 2]"),
    (r"2 \ge x \ge 1", "[1, 2]"),
    (r"[1,2)", r"1 \leq x < 2"),
    (r"x \in (1, 2)", "1<x<2"),
    ("1 < x", "x > 1"),
    ("x>=2", r"[2,\infty)"),
    (r"\{x : x>2\}", "x>2"),
    (r"(0,1)\cup(2,3)", "(2,3)∪(0,1)"),
    ("x ≠ 3", r"x\neq 3"),
    (r"\emptyset", r"\varnothing"),
    (r"\text{odd } n", "odd $n$"),
    ("no solution", "No solution."),
    (r"\sqrt{8}", r"2\sqrt{2}"),
    ("√12", r"2\sqrt 3"),
    ("x²+1", "1+x^2"),
    (r"\frac{1}{\sqrt2}", r"\frac{\sqrt{2}}{2}"),
    ("n(n+1)/2", r"\frac{n^2+n}{2}"),
    (r"\sin^2 x+\cos^2 x", "1"),
    (r"e^{i\pi}", "-1"),
    (r"\ln 8", r"3\ln 2"),
    (r"\binom{5}{2}", "10"),
    ("2*3^5", "486"),
    ("x+y=1", "y+x=1"),
    ("x^2=4", "x^2-4=0"),
    ("2x+2y=2", "x+y=1"),
    ("0.75x", r"\frac{3}{4}x"),
    ("0.1x+0.2x", "0.3x"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
]

DIFFERENT = [
    ("5 cents", "5 dollars"),
    ("1250 dollars", "1250 euros"),
    ("5 cm", "5 cm^2"),
    ("5 hours", "5 minutes"),
    ("50%", "50"),
    ("100", "100%"),
    ("0.333", "1/3"),
    (r"0.\overline{3}", "0.3"),
    ("1,000", "1.000"),
    ("1", "1.0000000000000001"),
    (r"10^{-20}", "0"),
    (r"\sqrt{2}+10^{-30}", r"\sqrt{2}"),
    (r"\frac{1}{10^{30}}", r"\frac{1}{10^{31}}"),
    (r"\sqrt2", "1.41421356"),
    ("3.14159", r"\pi"),
    (r"(0,1)\cup(2,3)", r"(0,1)\cup(2,3.00000000001)"),
    ("x+y=1", "x+y=1.00000000001"),
    ("x+y=1", "x-y=1"),
    ("1.00000000001x", "x"),
    ("0.33333333333333x", "x/3"),
    ("1, 2", "1, 2, 3"),
    ("1,2", "(1,2)"),
    ("x=1 or x=2", "1"),
    ("x=1, y=2", "x=2, y=1"),
    ("p = 3 and q = 4", "p=4, q=3"),
    ("[1,2]", "(1,2)"),
    ("1<x<2", r"1\le x\le 2"),
    ("x<3", "x>3"),
    (r"x \le 3", "x<3"),
    (r"x \neq 3", "3"),
    ("1/0", "2/0"),
    ("5", "at least 5"),
    ("at least 5", "at most 5"),
    ("odd $n$", "$n$"),
    ("2 hours 30 minutes", "2 hours"),
    ("5 red and 3 blue", "3 red and 5 blue"),
    ("yes", "no"),
    ("no solution", "0"),
    ("", "0"),
    ("x", "y"),
    ("x²", "x2"),
    (r"\sqrt{x^2}", "x"),
    ("10!", "10"),
    (r"\log_2 8", r"\log_8 2"),
    ("e^{100}", "e^{101}"),
    ("2003^{2002^{2001}}", "2003^{2002^{2000}}"),
    ("2^{99}", "2^{98}"),
]


@pytest.mark.parametrize(("a", "b", "same"), [(a, b, True) for a, b in SAME] + [(a, b, False) for a, b in DIFFERENT])
def test_more_pairs(a: str, b: str, same: bool):
    assert same_answer(a, b) is same
    assert same_answer(b, a) is same
    assert same_answer_fast(a, b) in (same, None)


@pytest.mark.parametrize(
    ("a", "b", "kind", "same"),
    [
        ("B.", r"\textbf{B}", "choice", True),
        ("Option b", "(B)", "choice", True),
        ("B and C", "B", "choice", False),
        ("B and C", "b and c", "choice", True),
        ("A", "B", "choice", False),
        ("“Paris”", "PARIS!", "text", True),
        (r"\text{Paris}", "Paris", "text", True),
        ("New  York", "new york", "text", True),
        ("York", "New York", "text", False),
    ],
)
def test_letters_and_words(a: str, b: str, kind: str, same: bool):
    assert same_answer(a, b, kind) is same
    assert same_answer(b, a, kind) is same


PIECES = (
    r"\frac { } ( ) [ ] ^ _ \sqrt \pm \left( \right) \text{ odd } , ; and or = < > \le \in $ $$ % \% / . - + x n e i "
    r"1 2 10,000 1/2 0.5 50% \boxed{ \{ \} \infty \pi ! \binom \sum \cup ½ ² √ − ∞ cm dollars million A B"
)
FRAGMENTS = st.sampled_from(PIECES.split())
ANSWERS = st.one_of(
    st.text(max_size=40),
    st.lists(FRAGMENTS, max_size=8).map("".join),
    st.lists(FRAGMENTS, max_size=8).map(" ".join),
    st.fractions(max_denominator=10**6).map(str),
    st.decimals(allow_nan=False, allow_infinity=False, places=6).map(str),
)
KINDS = st.sampled_from(["math", "choice", "text"])
RANDOM = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RANDOM
@given(ANSWERS, ANSWERS, KINDS)
def test_cheap_comparison_is_symmetric_and_never_raises(a: str, b: str, kind: str):
    assert same_answer_fast(a, b, kind) is same_answer_fast(b, a, kind)
    assert same_answer_fast(a, a, kind) is True


@settings(RANDOM, max_examples=40)
@given(ANSWERS, ANSWERS)
def test_comparison_is_symmetric_reflexive_and_in_time(a: str, b: str):
    begun = time.monotonic()
    there, back = same_answer(a, b), same_answer(b, a)
    assert time.monotonic() - begun < 2 * SECONDS
    assert there is back
    assert same_answer(a, a) is True


@RANDOM
@given(st.fractions(), st.fractions())
def test_plain_numbers_are_compared_exactly(x, y):
    assert same_answer_fast(str(x), rf"\frac{{{y.numerator}}}{{{y.denominator}}}") is (x == y)


@RANDOM
@given(st.one_of(st.none(), st.text(max_size=200), st.lists(FRAGMENTS, max_size=20).map("Answer: ".join)), KINDS)
def test_reading_never_raises(text: str | None, kind: str):
    answer, confidence = read_reply(text, kind)
    assert answer is None or answer
    assert confidence is None or 0 <= confidence <= 1


# -- monsters, threads, the worker -----------------------------------------------------------------------------

MONSTERS = [
    "2003^{2002^{2001}}",
    "9^{9^{9^9}}",
    "9^9^9^9",
    "(10^{10})^{10^{10}}",
    "2^{100!}",
    "10000000!",
    "(10^6)!",
    "((10!)!)!",
    r"\prod_{k=1}^{10^{9}} k",
    r"\binom{10^9}{5*10^8}",
    r"\sum_{k=1}^{10^{10}} k^k",
    r"e^{e^{e^{e^{79}}}}",
    "(a+b+c+d)^{9999}",
    r"\lfloor (\sqrt{2}+1)^{9999} \rfloor",
    r"\int_0^\infty e^{-x^2}\sin(x^3)\tan(x^{\sin x})dx",
    "(" * 900,
    "{" * 900,
    "[" * 450 + "]" * 450,
    r"\sqrt{" * 100 + "2" + "}" * 100,
    "-" * 800 + "1",
    "1/" * 400 + "1",
    "1," * 400 + "1",
    "$" * 901,
    r"\boxed{" * 7_000,
    "x" * 50_000,
    "\x00",
    "\ud800",
]


@pytest.mark.parametrize("monster", MONSTERS, ids=lambda text: ascii(text[:30]))
def test_a_monster_is_another_answer_in_time(monster: str):
    for other in ("7", r"\sqrt{2}+1"):
        begun = time.monotonic()
        assert same_answer(monster, other) is False
        assert time.monotonic() - begun < SECONDS
    assert same_answer(monster, monster) is True


@pytest.mark.parametrize("monster", ["2003^{2002^{2001}}", "9^{9^{9^9}}", "10000000!", r"\binom{10^9}{5*10^8}"])
def test_what_must_not_be_evaluated_is_known_without_the_worker(monster: str):
    assert same_answer_fast(monster, "7") is False


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{" * 28_000,
        r"\boxed{" * 14_000 + "}" * 14_000,
        r"\boxed{1} " * 20_000,
        "Answer: " * 25_000,
        "*" * 200_000,
        "<think>" * 28_000,
        "confidence: " + " " * 200_000,
        "Answer: " + "*_" * 90_000,
    ],
    ids=lambda text: text[:12],
)
def test_long_replies_are_read_in_time(text: str):
    begun = time.monotonic()
    read_reply(text)
    assert time.monotonic() - begun < SECONDS


def test_eight_threads_at_once():
    def compare(k: int) -> bool:
        right = same_answer(f"(x+{k})^2", f"x^2+{2 * k}x+{k * k}")
        return right and not same_answer(f"(x+{k})^2", f"x^2+{2 * k}x+{k * k + 1}")

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(compare, range(2, 34)))


def test_a_killed_worker_is_replaced():
    assert same_answer("(y+1)^2", "y^2+2y+1")
    worker = answers_pool._worker
    assert worker is not None
    os.kill(worker.process.pid, signal.SIGTERM)
    worker.process.wait(10)
    assert same_answer("(y+2)^2", "y^2+4y+4")
    assert answers_pool._worker is not worker


def test_the_worker_ends_when_its_input_closes():
    worker = answers_pool._Worker()
    assert worker.wait_ready()
    assert worker.process.stdin is not None
    worker.process.stdin.close()
    assert worker.process.wait(10) == 0


def test_the_worker_does_not_see_secrets(monkeypatch: pytest.MonkeyPatch):
    given: dict[str, dict[str, str]] = {}

    def popen(*_: object, **options: dict[str, str]) -> None:
        given.update(options)
        raise OSError

    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("SOME_TOKEN", "hidden")
    monkeypatch.setenv("client_secret", "hidden")
    monkeypatch.setattr(answers_pool.subprocess, "Popen", popen)
    with pytest.raises(OSError):  # noqa: PT011 - our own, from above
        answers_pool._Worker()
    assert "hidden" not in given["env"].values()
    assert "PATH" in given["env"]


def test_importing_brings_in_no_algebra():
    code = "import sys, svrmad_core.answers; print({'sympy', 'math_verify'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr


# -- reading ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", _lines("replies.jsonl"), ids=lambda case: case["why"])
def test_case_of_reading(case: dict):
    read = read_reply(case["reply"], case.get("kind", "math"))
    assert read.answer == case["answer"]
    if "confidence" in case:
        assert read.confidence == case["confidence"]


REPLIES = [
    # as models end their replies
    ("### Final Answer\n\n**42**", "42", None),
    ("### Final Answer:\n$$\\boxed{42}$$\n", "42", None),
    ("**Answer:** $\\boxed{\\frac{3}{4}}$\n\n**Confidence:** 85%", "\\frac{3}{4}", 0.85),
    ("Therefore, the final answer is: $\\boxed{12}$. I hope it is correct.", "12", None),
    ("Final Answer: The final answer is $5$. I hope it is correct.", "5", None),
    ("**Final Answer**\n\nThe final answer is $\\boxed{8}$\n\nConfidence: 8/10", "8", 0.8),
    ("<think>So \\boxed{3}? Answer: 3</think>\nThe answer is 4.", "4", None),
    ("<think>So \\boxed{3}? Answer: 3", None, None),
    ("reasoning, its opening mark cut off. Answer: 4</think>\nAnswer: 5", "5", None),
    ("Answer:\n\n\\[\n\\boxed{\\dfrac{1}{2}}\n\\]\n", "\\dfrac{1}{2}", None),
    ("Answer:\n$$\n42\n$$\n", "42", None),
    ("So, the answer is:\n\n$$x=3$$", "x=3", None),
    ("## Answer\n`42`", "42", None),
    ("**Final Answer:** \n\n> 42\n", "42", None),
    ("🎯 **Answer**: 5 ✅", "5", None),
    ("Answer: 8 \nExplanation: because 3 + 5 = 8.\n", "8", None),
    ("The answer is 3.14.", "3.14", None),
    ("The answer is 5 because 2 + 3 = 5.", "5", None),
    # which of several counts
    ("The solutions are \\boxed{1} and \\boxed{2}.", "1, 2", None),
    ("$\\boxed{1}, \\boxed{2}$, and $\\boxed{3}$", "1, 2, 3", None),
    ("\\boxed{1}\n\nNo, it must be\n\n\\boxed{2}", "2", None),
    ("\\boxed{\\boxed{5}}", "5", None),
    ("\\boxed{\\{1,2\\}}", "\\{1,2\\}", None),
    ("\\boxed{5}\n\nThis answer is consistent with the check.", "5", None),
    ("\\boxed{5}. The other agent's answer is 7, which is wrong.", "5", None),
    ("Answer: 5\n\nThe answer is correct because we checked.", "5", None),
    # no answer
    ("the answer is not obvious. Let me think.", None, None),
    ("Answer: \\boxed{12", None, None),
    ("Answer: \\boxed{}", None, None),
    ("Answer: <answer>", None, None),
    ("Answer: [your answer]", None, None),
    ("Answer: ...", None, None),
    ("\\boxed{\\text{your final answer}}", None, None),
    ("\\boxed{answer here}", None, None),
    # a letter may be an answer
    ("\\boxed{X}", "X", None),
    ("Answer: n", "n", None),
    # confidence
    ("Answer: 7\nConfidence: 0.9", "7", 0.9),
    ("Answer: 7\nConfidence: 80/100", "7", 0.8),
    ("Answer: 7\n**Confidence**: **80**", "7", 0.8),
    ("Answer: 7\nConfidence: 0.9%", "7", 0.009),
    ("Answer: 7\nConfidence (0-100): 85", "7", 0.85),
    ("Answer: 7, Confidence: ~70", "7", 0.7),
    ("\\boxed{7}\nConfidence: \\boxed{85}", "7", 0.85),
    ("Answer: 7\nConfidence: -5", "7", None),
    ("Answer: 7\nConfidence: 12/10", "7", None),
    ("Answer:\nConfidence: 90", None, 0.9),
]


@pytest.mark.parametrize(("reply", "answer", "confidence"), REPLIES)
def test_more_replies(reply: str, answer: str | None, confidence: float | None):
    assert read_reply(reply) == (answer, confidence)


@pytest.mark.parametrize(
    ("reply", "choices", "letter"),
    [
        ("Answer: (B)", (), "B"),
        ("The correct answer is **B) 12**", (), "B"),
        ("Answer: Option b", (), "B"),
        ("\\boxed{\\text{(B)}}", (), "B"),
        ("The answer is B because it fits.", (), "B"),
        ("A good choice is hard to find.", (), None),
        ("Answer: a good one", (), None),
        ("Answer: B and C", (), None),
        ("Answer: the red fox", ("the blue fox", "the red fox"), "B"),
        ("Answer: 12", ("10", "12", "14"), "B"),
        ("Answer: E", ("one", "two", "three"), None),
    ],
)
def test_letters_are_read_by_our_own_rule(reply: str, choices: tuple[str, ...], letter: str | None):
    assert read_reply(reply, "choice", choices).answer == letter


def test_words_are_read_without_their_wrapping():
    assert read_reply("The final answer is $\\boxed{\\text{Paris}}$.", "text").answer == "Paris"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("So, the correct answer is 3876, and the solver's answer of 3876 is also correct.", "3876"),
        ("The correct answer is 2823, and the confidence is 98.", "2823"),
        ("My answer is correctly 3876, and my confidence remains at 90.", "3876"),
        ("The answer is 4, not 12", "4"),
        ("Answer: x = 1 and x = 2", "x = 1 and x = 2"),
        ("Answer: 1, 2 and 3", "1, 2 and 3"),
    ],
)
def test_an_answer_ends_where_its_sentence_goes_on(reply, answer):
    """Seen in replies of the local model."""
    assert read_reply(reply).answer == answer
