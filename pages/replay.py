"""Replay: scrub through a recorded run."""

from __future__ import annotations

import streamlit as st

from pages.components import figures, library, story
from pages.components.look import Ink, ink
from pages.components.plot import plot, steps_as_json
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


@st.cache_resource(max_entries=16, show_spinner=False)
def drawn(
    run: str, last: int, ends_at: str, inks: Ink, only: int | None, _recording: Recording
) -> list[dict[int, str]]:
    """The graph and the scores of every step, or of one: built once for all who look at the run."""
    events = _recording.events

    def graph(k: int) -> tuple[figures.Figure, str]:
        debate = _recording.fold(k)
        return figures.graph_figure(debate, inks), figures.graph_alt(debate)

    def scores(k: int) -> tuple[figures.Figure, str]:
        return figures.score_figure(events[0], events, k, inks), figures.score_alt(_recording.fold(k))

    return [steps_as_json(draw, last, only) for draw in (graph, scores)]


@st.fragment
def stage(name: str, recording: Recording, ghost: RunInfo | None) -> None:
    """Everything that follows the cursor."""

    def go_to(step: int) -> None:
        st.query_params.update({"run": name, "step": str(step)})

    events = recording.events
    k = step_in_link(len(events))
    debate, last = recording.fold(k), len(events)
    about = (name, last, events[-1].at, ink())
    graph, scores = drawn(*about, None, recording)
    if not graph or not scores:
        graph, scores = drawn(*about, k, recording)
    story.head(debate, ghost)
    timeline(events, recording.fold(), k, hide_later=st.session_state.get("predict", False), on_step=go_to)
    story.legend(debate)
    left, right = st.columns([1, 1], gap="medium")
    above = right.container()
    # the words before the charts, which need not wait for the server
    with right:
        story.in_words(events, k, debate)
    with left:
        plot(recording.run_id, graph, key="graph", height=figures.GRAPH_HEIGHT)
    with above:
        plot(recording.run_id, scores, key="scores", height=figures.SCORE_HEIGHT)
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
