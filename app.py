"""SVR-MAD Explorer: ``streamlit run app.py``."""

import streamlit as st

st.set_page_config(page_title="SVR-MAD Explorer", page_icon="pages/components/icon.png", layout="wide")
st.navigation(
    [
        st.Page("pages/replay.py", title="Replay", icon=":material/play_circle:", default=True),
        st.Page("pages/live.py", title="Live", icon=":material/sensors:"),
        st.Page("pages/compare.py", title="Compare", icon=":material/compare:"),
        st.Page("pages/runs.py", title="Runs", icon=":material/folder_open:"),
    ],
    position="top",
).run()
