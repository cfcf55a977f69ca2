"""Replay: scrub through a recorded run and see why it resolved as it did."""

from __future__ import annotations

import streamlit as st

from pages.components import inspector, library, stage, theme, what_if
from svrmad_core.recording import Recording, RecordingError


def chosen_run() -> tuple[str, Recording] | None:
    """The run that the link names and its name; says in a sentence why there is none."""
    # projected, the link alone says which run
    name = st.query_params.get("run") if theme.projector() else None
    name = name or library.run_picker()
    if name is None:
        st.info("There is no recording yet. Make one with `python -m svrmad_core run`, or open a file.")
        return None
    try:
        return name, library.open_run(name)
    except RecordingError as error:
        st.error(str(error), icon=":material/error:")
        return None


@st.fragment
def follows_the_cursor(name: str, recording: Recording) -> None:
    """Everything that changes with the step."""
    k = stage.step_in_link(len(recording.events))
    stage.draw(name, recording, k, library.paired_all_to_all(recording.run_id))
    inspector.transcript(recording, k)
    inspector.tables(recording, k)


theme.apply()
if chosen := chosen_run():
    run, found = chosen
    for notice in found.notices:
        st.warning(notice, icon=":material/info:")
    follows_the_cursor(run, found)
    inspector.beside(found)
    inspector.search(run, found)
    what_if.panel(run, found)
    inspector.take_along(found)
