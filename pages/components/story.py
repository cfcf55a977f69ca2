"""Puts what ``told`` tells onto the page."""

from __future__ import annotations

from typing import Any

import streamlit as st

from svrmad_core.debate import Debate
from svrmad_core.recording import RunInfo

from . import told
from .look import safe


def head(debate: Debate, ghost: RunInfo | None) -> None:
    """The question, what run this is, and its totals."""
    st.html(f"<style>{told.CSS}</style>{told.head(debate, ghost)}")


def legend(debate: Debate, right: int | None) -> None:
    """The beliefs held so far."""
    st.html(told.legend(debate, right))


def in_words(before: Debate | None, event: Any, after: Debate) -> None:
    """The step in words, with the numbers in the formula, and why."""
    st.html(told.in_words(before, event, after))


def reference(debate: Debate) -> None:
    """The reference answer, hidden until it is asked for."""
    if debate.problem.reference is None:
        return
    if st.toggle("Reveal the reference answer", key="reveal"):
        st.html(f'<div class="svr-legend"><span>reference answer: <b>{safe(debate.problem.reference)}</b></span></div>')
