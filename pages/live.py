"""Live: ask a question, watch the debate grow, and keep the recording."""

from __future__ import annotations

import streamlit as st

from pages.components import after_run, ask_form, entry, library, live_run, policy, runner, theme
from svrmad_core.recording import RecordingError

entry.through_app()
theme.apply()
rules = policy.current()
run = st.query_params.get("run")
job = runner.named(run) if run else None

if not run:
    ask_form.form(rules)
elif job is not None and not job.done:
    live_run.watch(job)
else:
    try:
        found = library.open_run(run)
    except RecordingError as error:
        st.error((job.error if job is not None else None) or str(error), icon=":material/error:")
        st.button("Ask a question", icon=":material/add:", on_click=st.query_params.clear)
    else:
        after_run.show(found, rules, job.error if job is not None else None)
