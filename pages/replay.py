"""Replay: scrub through a recorded run."""

from __future__ import annotations

import streamlit as st

from pages.components import figures, library, story
from pages.components.look import ink
from pages.components.timeline import timeline
from svrmad_core.recording import Recording, RecordingError, RunInfo


def step_in_link(last: int) -> int:
    """The step that the link names, within the run; the last without one."""
    text = st.query_params.get("step", "")
    return max(1, min(last, int(text))) if text.isascii() and text.isdigit() and len(text) < 9 else last


def chosen_run() -> tuple[str, Recording] | None:
    """The run that the link names and its name; says in a sentence why there is none."""
    name = library.run_picker()
    if name is None:
        st.info("There is no recording yet. Make one with `python -m svrmad_core run`, or open a file.")
        return None
    try:
        return name, library.open_run(name)
    except RecordingError as error:
        st.error(str(error), icon=":material/error:")
        return None


@st.fragment
def stage(name: str, recording: Recording, ghost: RunInfo | None) -> None:
    """Everything that follows the cursor."""

    def go_to(step: int) -> None:
        st.query_params.update({"run": name, "step": str(step)})

    events = recording.events
    k = step_in_link(len(events))
    debate, inks = recording.fold(k), ink()
    story.head(debate, ghost)
    timeline(events, recording.fold(), k, hide_later=st.session_state.get("predict", False), on_step=go_to)
    story.legend(debate)
    left, right = st.columns([1, 1], gap="medium")
    with left:
        st.plotly_chart(
            figures.graph_figure(debate, inks),
            key="graph",
            theme=None,
            config=figures.CONFIG,
            alt=figures.graph_alt(debate),
        )
    with right:
        st.plotly_chart(
            figures.score_figure(recording.started, events, k, inks),
            key="scores",
            theme=None,
            config=figures.CONFIG,
            alt=figures.score_alt(debate),
        )
        story.in_words(events, k, debate)
    story.said(events, k)
    with st.expander("The agents as a table"):
        story.agents_table(debate)
    left, right = st.columns(2)
    with left:
        st.toggle("Predict: hide what comes", key="predict")
    with right:
        story.reference(debate)


if chosen := chosen_run():
    for notice in chosen[1].notices:
        st.warning(notice, icon=":material/info:")
    stage(*chosen, library.paired_all_to_all(chosen[1].run_id))
