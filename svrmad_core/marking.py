"""Answers that could not be read out of replies, marked by hand, so that a debate can be held from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .answers import same_answer


def unread(events: Sequence[Any]) -> dict[str, str]:
    """Agents whose initial reply says something and holds no readable answer -> the reply."""
    found = {e.agent: e.turn.reply for e in events if e.event == "answered" and e.belief is None}
    return {a.name: found[a.name] for a in events[0].agents if found.get(a.name, "").strip()}


def marked(events: Sequence[Any], answers: Mapping[str, str]) -> list[Any]:
    """The initial answers of a run, with those marked by hand in the place of what could not be read.

    Parameters
    ----------
    events
        The run's events.
    answers
        Agent -> the answer that a user found in its reply; blank ones are passed over.

    Returns
    -------
    list of Event
        ``run_started`` and the initial turns: a parent for ``run``. Beliefs are numbered anew; a turn that was marked
        says so (``marked_by_hand``).
    """
    first = [e for e in events if e.event == "answered" or (e.event == "turn_failed" and e.round == 0)]
    kind = events[0].problem.kind
    beliefs: list[str] = []
    result = [events[0]]
    for seq, event in enumerate(first, 1):
        if event.event == "turn_failed":
            result.append(event.model_copy(update={"seq": seq}))
            continue
        turn, given = event.turn, answers.get(event.agent, "").strip()
        if turn.answer is None and given:
            turn = turn.model_copy(update={"answer": given, "marked_by_hand": True})
        belief = None
        if turn.answer is not None:
            belief = next((i for i, b in enumerate(beliefs) if same_answer(turn.answer, b, kind)), len(beliefs))
            if belief == len(beliefs):
                beliefs.append(turn.answer)
        result.append(event.model_copy(update={"seq": seq, "turn": turn, "belief": belief}))
    return result


__all__ = ["marked", "unread"]
