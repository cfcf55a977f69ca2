"""The least that a step can cost in Streamlit: a fragment with one number, moved by the same timeline component."""

import streamlit as st

from pages.components.timeline import _component

st.set_page_config(layout="wide")


@st.fragment
def stage() -> None:
    """Show the number that the component sent."""
    move = st.session_state.get("timeline", {}).get("move") or {"step": 1, "id": 0}
    k = move["step"]
    _component(
        key="timeline",
        data={
            "run": "bare",
            "blocks": [{"label": "steps", "ticks": []}],
            "verdict": {"k": 20, "text": "end", "colour": "", "ink": ""},
            "k": k,
            "n": 20,
            "hide": False,
            "echo": move["id"],
            "jump": 0,
            "name": "",
        },
        on_move_change=lambda: None,
    )
    st.html(f'<div class="svr-words"><div class="t">step {k} shown</div></div>')


stage()
