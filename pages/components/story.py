"""What stands beside the pictures: the head of a run, the step in words, what was said, the same as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from svrmad_core import words
from svrmad_core.debate import Ask, Debate, fold
from svrmad_core.graph import all_to_all_links
from svrmad_core.prompts import messages_for
from svrmad_core.protocols import PROTOCOLS
from svrmad_core.recording import RunInfo
from svrmad_core.records import Turn

from .look import colour, glyph, safe, short

_CSS = f"<style>{(Path(__file__).parent / 'story.css').read_text(encoding='utf-8')}</style>"


def head(debate: Debate, ghost: RunInfo | None) -> None:
    """The question, what run this is, and its totals beside those of all-to-all.

    Parameters
    ----------
    debate
        The state at the step shown.
    ghost
        The paired all-to-all replay, if there is one.
    """
    started, totals = debate.started, debate.totals()
    models = ", ".join(dict.fromkeys(a.agent.model for a in debate.agents.values()))
    protocol = PROTOCOLS[debate.protocol].title if debate.protocol in PROTOCOLS else debate.protocol
    simulated = ' · <span class="svr-sim">simulated: no model was asked</span>' if started.simulated else ""
    question = debate.problem.question
    options = "".join(f"<br>{chr(65 + i)}) {safe(c)}" for i, c in enumerate(debate.problem.choices))
    cost = "cost unknown" if totals.cost is None else f"{totals.cost:.4f} USD"
    n, rounds = len(debate.agents), 2
    full = all_to_all_links(n, rounds)
    beside = f"all-to-all: {full} links in {rounds} rounds"
    if ghost is not None and ghost.run_id != started.run_id:
        g = ghost.totals
        beside = f"all-to-all: {g.links} links · {g.calls} calls · {g.tokens:,} tokens"
    links = f"{totals.links} of {full} links" if debate.protocol != "all_to_all" else f"{totals.links} links"
    unknown = f" ({totals.calls_without_usage} calls unknown)" if totals.calls_without_usage else ""
    st.html(
        f"""{_CSS}<div class="svr-head"><div class="what">
        <div class="small">{safe(protocol)} · {n} agents · {safe(models)}{simulated}</div>
        <div class="q{" long" if len(question) > 220 else ""}">{safe(question)}{options}</div></div>
        <div class="sum"><b>{links}</b><br>{totals.calls} calls · {totals.tokens:,} tokens{unknown} · {cost}<br>
        <span class="small">{beside}</span></div></div>"""
    )


def legend(debate: Debate) -> None:
    """The beliefs held so far: colour, shape, answer, and who holds it."""
    chips = []
    for belief, answer in enumerate(debate.beliefs):
        holders = ", ".join(debate.holders(belief)) or "nobody now"
        chips.append(
            f'<span><span style="color:{colour(belief)};font-size:1.3em">{glyph(belief)}</span> '
            f"<b>{safe(short(answer, 40))}</b> <span style='opacity:.72'>{holders}</span></span>"
        )
    st.html(f'<div class="svr-legend">{"".join(chips) or "no answer yet"}</div>')


def in_words(events: list[Any], k: int, debate: Debate) -> None:
    """The step in words, with the numbers in the formula."""
    told = words.tell(fold(events, k - 1) if k > 1 else None, events[k - 1], debate)
    formula = f'<div class="f">{safe(told.formula)}</div>' if told.formula else ""
    detail = f'<div class="small">{safe(told.detail)}</div>' if told.detail else ""
    st.html(f'<div class="svr-words"><div class="t">{safe(told.title)}</div>{formula}{detail}</div>')


def said(events: list[Any], k: int) -> None:
    """What was said in the step: the challenger's argument beside the receiver's reply, and the facts of the turn."""
    event = events[k - 1]
    turn: Turn | None = getattr(event, "turn", None)
    if turn is None:
        _standing(event, fold(events, k))
        return
    before = fold(events, k - 1)
    if event.event == "answered":
        _speech(f"{event.agent} answers", turn.reply, event.belief, turn)
        ask, number = Ask(event.agent), 0
    elif event.event == "debated":
        left, right = st.columns(2)
        heard = before.last_said(event.challenger, event.round)
        with left:
            if heard is not None:
                _speech(f"{event.challenger} argues", heard.reply, heard.belief, None)
        with right:
            _speech(f"{event.receiver} replies", turn.reply, event.after, turn)
        ask, number = Ask(event.receiver, (event.challenger,)), event.round
    else:
        _speech(f"{event.agent} replies", turn.reply, event.after, turn)
        ask, number = Ask(event.agent, tuple(event.heard)), event.round
        with st.expander(f"What {event.agent} heard ({len(event.heard)})"):
            told = (_speech_html(h.agent, h.reply, h.belief, None) for h in before.heard_by(ask, number))
            st.html("".join(told))
    with st.expander("The exact messages sent"):
        sent = messages_for(before, ask, number)
        # one element, however long the conversation: each costs time at every step
        st.html(
            "".join(
                f'<div class="svr-say"><div class="small">{m["role"]}</div>{_pre(m["content"])}</div>' for m in sent
            )
        )


def _pre(text: str) -> str:
    return f"<pre>{safe(text)}</pre>"


def _standing(event: Any, debate: Debate) -> None:
    """Where a step has no turn: the argument that stands, of the receiver chosen or of the verdict."""
    if event.event == "receiver_chosen":
        name, what = event.receiver, "holds"
    elif event.event == "run_finished" and event.verdict.belief is not None:
        name, what = event.verdict.agent or debate.holders(event.verdict.belief)[0], "argued last"
    else:
        return
    state = debate.agents[name]
    if state.said:
        _speech(f"{name} {what}", state.said[-1].reply, state.belief, None)


def _speech(who: str, reply: str, belief: int | None, turn: Turn | None) -> None:
    st.html(_speech_html(who, reply, belief, turn))


def _speech_html(who: str, reply: str, belief: int | None, turn: Turn | None) -> str:
    facts = ""
    if turn is not None:
        tokens = (
            f"{turn.prompt_tokens} + {turn.completion_tokens} tokens" if turn.tokens is not None else "usage unknown"
        )
        cost = "cost unknown" if turn.cost is None else f"{turn.cost:.5f} USD"
        sure = f" · stated confidence {turn.confidence:.0%}" if turn.confidence is not None else ""
        signals = f" · perplexity {turn.signals.perplexity:.2f}" if turn.signals else ""
        cut = f" · finish: {safe(turn.finish_reason)}" if turn.finish_reason not in (None, "stop") else ""
        facts = f'<div class="small">{tokens} · {turn.latency:.1f} s · {cost}{sure}{signals}{cut}</div>'
    body = _pre(reply.strip()) if reply.strip() else '<pre class="none">(an empty reply)</pre>'
    return (
        f'<div class="svr-say" style="border-color:{colour(belief)}">'
        f'<div class="small">{safe(who)}</div>{body}{facts}</div>'
    )


def agents_table(debate: Debate) -> None:
    """The facts of the picture as a table."""
    columns = ("agent", "answer", "first answer", "prior", "from", "D", "r", "c", "void", "SVR", "failed")
    head = "".join(f'<th scope="col">{c}</th>' for c in columns)
    body = []
    for s in debate.agents.values():
        first = s.turns[0][1].answer if s.turns else None
        prior = words.number(s.prior) if s.turns else "–"
        svr = words.number(s.svr) if s.svr is not None else "–"
        cells = (
            *(short(s.answer, 80), short(first, 80), prior, s.prior_signal or "–"),
            *(s.debates, s.retained, s.changed, s.void, svr, s.failure.message if s.failure else "–"),
        )
        row = "".join(f"<td>{safe(c)}</td>" for c in cells)
        body.append(f'<tr><th scope="row">{s.name}</th>{row}</tr>')
    st.html(f'<table class="svr-table"><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table>')


def reference(debate: Debate) -> None:
    """The reference answer, hidden until it is asked for."""
    if debate.problem.reference is None:
        return
    if st.toggle("Reveal the reference answer", key="reveal"):
        st.html(f'<div class="svr-legend"><span>reference answer: <b>{safe(debate.problem.reference)}</b></span></div>')
