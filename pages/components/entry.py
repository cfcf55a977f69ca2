"""The way into a page that a link names."""

from __future__ import annotations

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager


def through_app() -> None:
    """Begin again with ``app.py`` if Streamlit went past it; to be called first by each page but the default one.

    A server that has not run ``app.py`` yet takes the folder ``pages`` for its old kind of pages: a link to a page
    would run that file alone, narrow and with a menu of file names.
    """
    if PagesManager.uses_pages_directory and "came_in" not in st.session_state:
        PagesManager.uses_pages_directory = False
        # once a session, when nothing can have been pressed yet: beginning again forgets a press
        st.session_state["came_in"] = True
        st.rerun()
