"""Where answers could not be read: the replies, and a field for what a person reads in them."""

from __future__ import annotations

import streamlit as st

from svrmad_core.marking import marked, unread
from svrmad_core.recording import Recording

from . import ask_form, estimate_box, policy, runner
from .lazily import unfolds
from .look import plain
from .policy import Policy


def offer(recording: Recording, rules: Policy) -> None:
    """Offer to mark the answers and to debate again from them; nothing where all could be read."""
    replies = unread(recording.events)
    if not replies or recording.path is None:
        return
    names = ", ".join(replies)
    if not (box := unfolds(f"Mark by hand what {names} answered", "live_by_hand", ":material/edit:")):
        return
    with box:
        answers = {}
        for name, reply in replies.items():
            left, right = st.columns([3, 1])
            left.text(f"{name} says:\n{reply[-1500:]}")
            answers[name] = right.text_input(f"The answer of {name}", key=f"live_marked_{name}", max_chars=200)
        given = [name for name, answer in answers.items() if answer.strip()]
        started = recording.started
        models = [a.model for a in started.agents]
        key = st.session_state.get("live_key") or None
        refused = rules.refuses(models, started.settings, key is not None)
        if refused is not None:
            st.caption(plain(refused))
        if st.button("Debate from these answers", type="primary", disabled=not given or refused is not None):
            _debate(recording, answers, given, models, key, rules)


def _debate(
    recording: Recording, answers: dict[str, str], given: list[str], models: list[str], key: str | None, rules: Policy
) -> None:
    started = recording.started
    try:
        job = runner.begin(
            started.problem,
            started.protocol,
            models,
            rules.capped(started.settings, estimate_box.priced(models, started.settings.api_base)),
            api_key=key,
            parent=Recording(marked(recording.events, answers)),
            owner=policy.visitor(),
            note=f"The answers of {', '.join(given)} were marked by hand in {recording.run_id}.",
            pace=ask_form.SIMULATED_PACE,
            limits=rules.limits,
            hidden=rules.library == "private",
        )
    except runner.CannotStart as error:
        st.error(str(error), icon=":material/error:")
        return
    st.query_params.from_dict({"run": job.run_id})
    st.rerun()


__all__ = ["offer"]
