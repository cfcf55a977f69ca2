"""What a model wrote, taken apart: formulas, money, bold, and what is new in a reply."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pages.components import told
from pages.components.speech import in_a_sentence, marked, pieces
from svrmad_core import fold
from tests.scripted import FAILS, debate

REPLIES = [
    json.loads(line)["reply"] or ""
    for line in Path(__file__).with_name("data").joinpath("replies.jsonl").open(encoding="utf-8")
]


def kinds(text):
    return [(p.kind, p.text) for p in pieces(text)]


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        (r"so \(x = 5\).", ["x = 5"]),
        ("\\[ \\frac{a}{b}\n= 1 \\]", ["\\frac{a}{b}\n= 1"]),
        ("$x$ and $n-1$ and $12$", ["x", "n-1", "12"]),
        ("the $n$th term", ["n"]),
        ("$$a^2$$", ["a^2"]),
        (r"$\text{number of apples} = 3$", [r"\text{number of apples} = 3"]),
        (r"\begin{align} a &= b \\ c &= d \end{align}", [r"\begin{align} a &= b \\ c &= d \end{align}"]),
        (r"Answer: \boxed{\frac{1}{2}}", [r"\boxed{\frac{1}{2}}"]),
        ("It costs $5 and $10.", []),
        ("between $5-$10 each", []),
        ("costs $5, or 5$ more", []),
        ("pay $3 plus tax = 4$?", []),
        ("$20 per hour * 3 = $60", []),
        (r"\$5 and \$6, US$5 and US$6, $100,000", []),
        ("a lone $ sign and \\( without an end", []),
    ],
)
def test_formulas_are_found_and_money_is_not_one(text, formulas):
    assert [t for kind, t in kinds(text) if kind in ("math", "display")] == formulas


@pytest.mark.parametrize("reply", REPLIES)
def test_nothing_of_a_reply_is_lost(reply):
    marks = str.maketrans("", "", "$*\\()[] \n\t\r")
    assert "".join(p.text for p in pieces(reply)).translate(marks) == reply.translate(marks)


@pytest.mark.parametrize("unit", ["\\(", "$", "\\[ ", "**a", "\\begin{align}", "$a ", "\\boxed{", "{a"])
def test_no_reply_can_hang_it(unit):
    began = time.process_time()
    pieces(unit * (60_000 // len(unit)))
    assert time.process_time() - began < 5


def test_what_is_new_is_marked():
    before, after = marked("I think 3. Then 4.\nAnswer: 7", "I think 3. But then 5.\nAnswer: 8")
    assert [(p.text.strip(), p.mark) for p in before] == [
        ("I think 3.", ""),
        ("Then 4.", "gone"),
        ("Answer:", ""),
        ("7", "gone"),
    ]
    assert [p.text.strip() for p in after if p.mark == "new"] == ["But then 5.", "8"]
    assert in_a_sentence(before, after) == "what is new is marked"


def test_where_nothing_is_shared_nothing_is_marked():
    before, after = marked("One thing.", "Another.")
    assert not any(p.mark for p in [*before, *after])
    assert in_a_sentence(before, after).startswith("written anew")


def test_a_reply_that_only_leaves_out_is_not_called_new():
    assert in_a_sentence(*marked("One thing. Another.", "Another.")) == "nothing new: what is gone is marked"
    assert in_a_sentence(*marked("One thing. Another.", "One thing.\nAnother")) == "the same as it said before"


async def test_a_debate_is_shown_as_argument_before_and_reply():
    _, events = await debate([("1", 0.9), ("2", 0.8)], {("A1", "A2"): "2"})
    k = next(e.seq for e in events if e.event == "debated") + 1
    said = told.speeches(fold(events, k - 1), events[k - 1], fold(events, k))
    assert [s["who"] for s in said] == ["A2 argues", "A1 had said", "A1 replies"]
    assert "tokens" in said[2]["facts"]
    assert "finish: " in said[2]["facts"]


async def test_every_step_can_be_told():
    cast = [("1", 0.9), ("2", 0.8), ("3", 0.7), (None, 0.6), (FAILS, 0.5)]
    for protocol in ("svr_mad", "all_to_all", "self_consistency"):
        _, events = await debate(cast, {("A1", "A2"): FAILS, ("A2", "A1"): None}, protocol=protocol)
        for k, event in enumerate(events, 1):
            before, after = fold(events, k - 1) if k > 1 else None, fold(events, k)
            assert json.dumps(told.speeches(before, event, after))
            assert "svr-words" in told.in_words(before, event, after)
            assert "<table" in told.agents_table(after)


async def test_the_search_finds_turns_and_their_steps():
    _, events = await debate([("1", 0.9), ("2", 0.8)])
    found = told.search(events, "I SAY 2")
    assert found
    assert all(events[step - 1].turn.reply for step, _, _ in found)
    assert told.search(events, "   ") == []
    assert told.search(events, "nowhere to be found") == []


async def test_the_turns_of_an_agent():
    _, events = await debate([("1", 0.9), ("2", 0.8), ("3", 0.7)])
    turns = told.turns_of(events, "A2")
    assert turns[0][1].endswith("answers 2")
    assert any("A1 hears A2" in line for _, line in turns)
    assert all(events[step - 1].event in ("answered", "debated") for step, _ in turns)
