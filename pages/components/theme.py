"""How the page is shown now: light or dark, and large for a projector."""

from __future__ import annotations

import streamlit as st

from .look import DARK, LIGHT, Ink

PROJECTOR_SCALE = 1.3
_PROJECTOR_CSS = f"""<style>
html {{ font-size: {100 * PROJECTOR_SCALE:.0f}%; }}
[data-testid=stSidebar], [data-testid=stHeader], [data-testid=stExpandSidebarButton] {{ display: none; }}
[data-testid=stMainBlockContainer] {{ padding: 1rem 1.5rem; max-width: none; }}
</style>"""


def projector() -> bool:
    """True if the link asks for large type and nothing but the run."""
    return st.query_params.get("projector") == "1"


def ink() -> Ink:
    """The colours of the theme the page is shown in, and how large its type is."""
    found = DARK if st.context.theme.type == "dark" else LIGHT
    return found._replace(scale=PROJECTOR_SCALE) if projector() else found


def apply() -> None:
    """Make the page large if it is projected."""
    if projector():
        st.html(_PROJECTOR_CSS)


def projector_button(run: str) -> None:
    """Into the large view of a run and out of it; in the link, so that it can be opened at once."""

    label = "Leave projector" if projector() else "Projector"
    if st.button(label, icon=":material/tv:", help="Large type, nothing but the run", width="stretch"):
        if projector():
            del st.query_params["projector"]
        else:
            st.query_params.update({"run": run, "projector": "1"})
        st.rerun()
