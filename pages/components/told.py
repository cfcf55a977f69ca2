"""What stands beside the pictures, as HTML and plain data: the head of a run, the step in words, what was said, tables.

Everything that comes from outside is escaped (``look.safe``) or goes to the browser as text (``speech.pieces``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from svrmad_core import words
from svrmad_core.debate import Ask, Debate
from svrmad_core.graph import all_to_all_links
from svrmad_core.prompts import messages_for, summary_messages
from svrmad_core.protocols import variant_title
from svrmad_core.recording import RunInfo
from svrmad_core.records import Turn

from .look import colour, glyph, safe, short
from .speech import Piece, in_a_sentence, marked, pieces
from .walk import State, Walk

CSS = (Path(__file__).parent / "story.css").read_text(encoding="utf-8")


def head(debate: Debate, ghost: RunInfo | None) -> str:
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
    method = variant_title(debate.protocol, debate.settings)
    return f"""<div class="svr-head"><div class="what">
        <div class="small">{safe(method)} · {n} agents · {safe(models)}{simulated}</div>
        <div class="q{" long" if len(question) > 220 else ""}">{safe(question)}{options}</div></div>
        <div class="sum"><b>{links}</b><br>{totals.calls} calls · {totals.tokens:,} tokens{unknown} · {cost}<br>
        <span class="small">{beside}</span></div></div>"""


def legend(debate: Debate, right: int | None = None) -> str:
    """The beliefs held so far: colour, shape, answer, and who holds it; the one that is right is marked if told."""
    chips = []
    for belief, answer in enumerate(debate.beliefs):
        names = debate.holders(belief)
        holders = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "") or "nobody now"
        mark = ' <b class="right">✓ right</b>' if belief == right else ""
        chips.append(
            f'<span><span style="color:{colour(belief)};font-size:1.3em">{glyph(belief)}</span> '
            f"<b>{safe(short(answer, 40))}</b>{mark} <span style='opacity:.72'>{holders}</span></span>"
        )
    return f'<div class="svr-legend">{"".join(chips) or "no answer yet"}</div>'


def in_words(before: Debate | None, event: Any, after: Debate) -> str:
    """The step in words, with the numbers in the formula, and why."""
    told = words.tell(before, event, after)
    formula = f'<div class="f">{safe(told.formula)}</div>' if told.formula else ""
    detail = f'<div class="small">{safe(told.detail)}</div>' if told.detail else ""
    why = "".join(f"<li>{safe(reason)}</li>" for reason in told.why)
    why = f"<ul>{why}</ul>" if why else ""
    return f'<div class="svr-words"><div class="t">{safe(told.title)}</div>{formula}{detail}{why}</div>'


# -- what was said ---------------------------------------------------------------------------------------------------

Speech = dict[str, Any]
"""For say.js: who, colour, pieces, facts, note."""


def speeches(before: Debate | None, event: Any, after: Debate) -> list[Speech]:
    """What was said in a step: the challenger's argument, the receiver's reasoning before, its reply with what changed
    marked. Where a step has no turn, the argument that stands: of the receiver chosen, or of the verdict.
    """
    turn: Turn | None = getattr(event, "turn", None)
    if turn is None or before is None:
        return _standing(event, after)
    if event.event == "answered":
        return [_speech(f"{event.agent} answers", pieces(turn.reply), event.belief, turn)]
    if event.event == "summarized":
        return [_speech(f"{event.agent} sums up its group", pieces(turn.reply), None, turn)]
    name = event.receiver if event.event == "debated" else event.agent
    said = []
    if event.event == "debated":
        heard = before.last_said(event.challenger, event.round)
        if heard is not None:
            said.append(_speech(f"{event.challenger} argues", pieces(heard.reply), heard.belief))
    own = before.last_said(name, event.round) or (before.agents[name].said or [None])[-1]
    if own is None:
        return [*said, _speech(f"{name} replies", pieces(turn.reply), event.after, turn)]
    old, new = marked(own.reply, turn.reply)
    said.append(_speech(f"{name} had said", old, own.belief))
    said.append(_speech(f"{name} replies", new, event.after, turn, in_a_sentence(old, new)))
    return said


def heard(before: Debate, event: Any) -> list[Speech]:
    """What an agent of the other protocols heard."""
    told = before.heard_by(_ask(event), event.round)
    return [_speech(f"{h.agent} for its group" if h.group else h.agent, pieces(h.reply), h.belief) for h in told]


def _ask(event: Any) -> Ask:
    """The call that a turn answers."""
    if event.event == "debated":
        return Ask(event.receiver, (event.challenger,))
    return Ask(event.agent, tuple(getattr(event, "heard", ())), tuple(getattr(event, "summaries", ())))


def messages(before: Debate, event: Any) -> list[dict[str, str]]:
    """The exact messages that were sent for a turn."""
    if event.event == "summarized":
        return summary_messages(before, _ask(event), event.round)
    return messages_for(before, _ask(event), getattr(event, "round", 0))


def _standing(event: Any, debate: Debate) -> list[Speech]:
    if event.event == "receiver_chosen":
        names, what = [event.receiver, *event.challengers], "holds"
    elif event.event == "run_finished" and event.verdict.belief is not None:
        names, what = [event.verdict.agent or next(iter(debate.holders(event.verdict.belief)), "")], "argued last"
    else:
        return []
    states = [debate.agents[name] for name in names if name in debate.agents]
    return [_speech(f"{s.name} {what}", pieces(s.said[-1].reply), s.belief) for s in states if s.said]


def _speech(who: str, parts: Sequence[Piece], belief: int | None, turn: Turn | None = None, note: str = "") -> Speech:
    return {
        "who": who,
        "colour": colour(belief),
        "pieces": [list(p) for p in parts] if any(p.text.strip() for p in parts) else [],
        "facts": facts(turn) if turn is not None else "",
        "note": note,
    }


def facts(turn: Turn) -> str:
    """Tokens, time, cost and signals of a turn in a line."""
    known = turn.tokens is not None
    told = [
        f"{turn.prompt_tokens:,} + {turn.completion_tokens:,} tokens" if known else "usage unknown",
        f"{turn.latency:.1f} s",
        "cost unknown" if turn.cost is None else f"{turn.cost:.5f} USD",
    ]
    if turn.confidence is not None:
        told.append(f"stated confidence {turn.confidence:.0%}")
    if turn.signals:
        told.append(f"perplexity {turn.signals.perplexity:.2f}")
        told.append(f"least likely token {turn.signals.min_logprob:.2f} nats")
    told.append(f"finish: {turn.finish_reason or 'unknown'}")
    return " · ".join(told)


def search(events: Sequence[Any], text: str, most: int = 50) -> list[tuple[int, str, str]]:
    """Turns in which a text occurs, upper and lower case alike.

    Returns
    -------
    list of (step, who, excerpt)
        In order, at most ``most``.
    """
    wanted = text.casefold().strip()
    found: list[tuple[int, str, str]] = []
    for event in events:
        turn = getattr(event, "turn", None)
        if not wanted or turn is None or len(found) == most:
            continue
        flat = " ".join(turn.reply.split())
        place = flat.casefold().find(wanted)
        if place >= 0:
            who = getattr(event, "receiver", None) or event.agent
            excerpt = ("…" if place > 50 else "") + flat[max(0, place - 50) : place + len(wanted) + 70]
            found.append((event.seq + 1, who, excerpt))
    return found


def turns_of(events: Sequence[Any], agent: str) -> list[tuple[int, str]]:
    """The turns of one agent as (step, one line)."""
    found = []
    for event in events:
        if event.event == "answered" and event.agent == agent:
            found.append((event.seq + 1, f"step {event.seq + 1}: answers {short(event.turn.answer, 40)}"))
        elif event.event == "debated" and agent in (event.receiver, event.challenger):
            outcome = {True: "keeps", False: "changes to", None: "no readable answer"}[event.retained]
            answer = short(event.turn.answer, 30) if event.retained is not None else ""
            line = f"{event.receiver} hears {event.challenger}: {outcome} {answer}".strip()
            found.append((event.seq + 1, f"step {event.seq + 1}: {line}"))
        elif event.event == "revised" and event.agent == agent:
            answer = short(event.turn.answer, 40)
            found.append((event.seq + 1, f"step {event.seq + 1}: round {event.round}, replies {answer}"))
        elif event.event == "summarized" and event.agent == agent:
            found.append((event.seq + 1, f"step {event.seq + 1}: sums up its group for round {event.round}"))
        elif event.event == "turn_failed" and event.agent == agent:
            found.append((event.seq + 1, f"step {event.seq + 1}: fails, {event.kind.replace('_', ' ')}"))
    return found


# -- the pictures as tables ------------------------------------------------------------------------------------------


def agents_table(debate: Debate) -> str:
    """The facts of the graph's nodes."""
    rows = []
    for s in debate.agents.values():
        first = s.turns[0][1].answer if s.turns else None
        prior = words.number(s.prior) if s.turns else "–"
        svr = words.number(s.svr) if s.svr is not None else "–"
        failure = s.failure.message if s.failure else "–"
        rows.append(
            (
                *(s.name, short(s.answer, 80), short(first, 80), prior, s.prior_signal or "–"),
                *(s.debates, s.retained, s.changed, s.void, svr, failure),
            )
        )
    titles = ("agent", "answer", "first answer", "prior", "from", "D", "r", "c", "void", "SVR", "failed")
    return _table(titles, rows)


def links_table(debate: Debate) -> str:
    """The facts of the graph's edges."""

    def said(belief: int | None) -> str:
        return short(None if belief is None else debate.beliefs[belief], 60)

    outcomes = {True: "retained", False: "changed", None: "void"}
    rows = (
        (
            *(i, x.round, x.challenger, said(x.challenger_belief)),
            *(x.receiver, said(x.before), said(x.after), outcomes[x.retained]),
        )
        for i, x in enumerate(debate.links, 1)
    )
    titles = ("link", "round", "challenger", "says", "receiver", "held", "holds then", "outcome")
    return _table(titles, rows, empty="No link yet.")


def scores_table(w: Walk, k: int) -> str:
    """The facts of the score charts and of the flow: score and belief of each agent after each turn up to step k."""

    def cell(s: State) -> str:
        if s.score is None:
            return "–"
        return f"{words.number(s.score)} · {short(s.answer, 20)}"

    changes = w.changes()
    steps = [changes[0] - 1 if changes else w.steps, *changes]
    shown = [step for step in steps if step <= k]
    rows = ((w.turns[step - 1], step, *(cell(states[step - 1]) for states in w.agents.values())) for step in shown)
    return _table(("turn", "step", *w.agents), rows, empty="Not all have answered yet.")


def _table(titles: Sequence[str], rows: Iterable[Sequence[object]], empty: str = "Nothing yet.") -> str:
    top = "".join(f'<th scope="col">{t}</th>' for t in titles)
    body = "".join(
        f'<tr><th scope="row">{safe(row[0])}</th>{"".join(f"<td>{safe(c)}</td>" for c in row[1:])}</tr>' for row in rows
    )
    if not body:
        return f'<div class="small">{empty}</div>'
    head = f"<thead><tr>{top}</tr></thead>"
    return f'<div class="svr-scroll"><table class="svr-table">{head}<tbody>{body}</tbody></table></div>'
