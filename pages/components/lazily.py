"""Boxes that are filled when they are opened: what is folded costs nothing at every step, nor at the first view."""

from __future__ import annotations

from typing import Any

import streamlit as st


def unfolds(label: str, key: str, icon: str | None = None) -> Any:
    """A box that can be opened; returns it if it is open, to be filled, else None."""
    box = st.expander(label, key=key, icon=icon, on_change="rerun")
    return box if box.open else None
