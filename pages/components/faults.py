"""What went wrong with single agents, in sentences, and what can be done about it."""

from __future__ import annotations

import streamlit as st

from svrmad_core.debate import Debate

from .look import plain

WAITS = {
    "rate_limit": "the provider limits the calls",
    "timeout": "no answer in time",
    "connection": "the connection broke",
    "server": "the provider failed",
    "bad_reply": "an unreadable reply",
}
"""Kind of a fault that is tried again -> why one waits."""


def tell(debate: Debate) -> None:
    """The agents that failed, by reason, and those whose answer cannot be read."""
    failed: dict[str, list[str]] = {}
    for state in debate.agents.values():
        if state.failure is not None:
            failed.setdefault(state.failure.message, []).append(state.name)
    everyone = sum(map(len, failed.values())) == len(debate.agents)
    goes_on = "" if everyone or debate.finished else " The debate goes on without asking it again."
    for message, names in failed.items():
        st.warning(f"**{', '.join(names)}**: {plain(message)}{goes_on}", icon=":material/error:")
    unread = [s.name for s in debate.agents.values() if s.turns and s.turns[-1][1].answer is None]
    if unread:
        st.warning(f"**{', '.join(unread)}**: {plain(_unread(debate, unread))}", icon=":material/help:")


def _unread(debate: Debate, names: list[str]) -> str:
    """Why no answer could be read, as far as the turns tell."""
    turns = [debate.agents[name].turns[-1][1] for name in names]
    if all(t.finish_reason == "content_filter" for t in turns):
        return "the provider's filter took the reply away: reword the question or take another model."
    if all(not t.reply.strip() and (t.reasoning or t.finish_reason == "length") for t in turns):
        return "it spent all its tokens thinking and said nothing: raise the tokens of one reply."
    if all(not t.reply.strip() for t in turns):
        return "the reply was empty: try again, or take another model."
    if all(t.finish_reason == "length" for t in turns):
        return "the reply was cut off before its answer: raise the tokens of one reply."
    return "the reply ends without an answer in the form asked for; it cannot challenge or vote."


__all__ = ["WAITS", "tell"]
