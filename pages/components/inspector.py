"""Below the stage: what was said, the same as tables, the search, and what can be taken along."""

from __future__ import annotations

import streamlit as st

from svrmad_core import export
from svrmad_core.recording import Recording

from . import takeaway, theme, told
from .lazily import unfolds
from .look import DARK, safe
from .say import say
from .stage import choose_agent, chosen_agent, go_to, walk_of


def transcript(recording: Recording, k: int) -> None:
    """What was said in the step, the exact messages on demand, and the turns of the agent brought forward."""
    event, after = recording.events[k - 1], recording.fold(k)
    before = recording.fold(k - 1) if k > 1 else None
    say(told.speeches(before, event, after), key="said")
    if before is not None and getattr(event, "turn", None) is not None:
        heard = (
            len(event.heard) + len(getattr(event, "summaries", ())) if event.event in ("revised", "summarized") else 0
        )
        if heard and (box := unfolds(f"What {event.agent} heard ({heard})", "open_heard")):
            with box:
                say(told.heard(before, event), key="heard")
        if box := unfolds("The exact messages sent", "open_messages"):
            # one element, however long the conversation: each costs time at every step
            sent = (
                f'<div class="small">{safe(m["role"])}</div><pre>{safe(m["content"])}</pre>'
                for m in told.messages(before, event)
            )
            box.html(f'<div class="svr-messages">{"".join(sent)}</div>')
    if agent := chosen_agent(after):
        _turns_of(recording, agent, k)


def _turns_of(recording: Recording, agent: str, k: int) -> None:
    """All turns of one agent, each a way to its step."""
    with st.container(border=True):
        left, right = st.columns([5, 1], vertical_alignment="center")
        left.markdown(f"**The turns of {agent}**")
        right.button("Let go", key="let_go", on_click=choose_agent, args=(None,), width="stretch")
        run = st.query_params.get("run", recording.run_id)
        for step, title in told.turns_of(recording.events, agent):
            st.button(
                title,
                key=f"turn_{step}",
                type="primary" if step == k else "tertiary",
                on_click=go_to,
                args=(run, step),
            )


def beside(recording: Recording) -> None:
    """The way to this run beside others from the same initial answers."""
    if recording.path is not None:
        st.page_link(
            "pages/compare.py",
            label="Compare with other methods from the same initial answers",
            icon=":material/compare:",
            query_params={"one": recording.run_id},
        )


def tables(recording: Recording, k: int) -> None:
    """What the pictures show, as tables."""
    if not (box := unfolds("The pictures as tables", "open_tables")):
        return
    with box:
        debate = recording.fold(k)
        agents, links, scores = st.tabs(["Agents", "Links", "Scores and beliefs by turn"])
        with agents:
            st.html(told.agents_table(debate))
        with links:
            st.html(told.links_table(debate))
        with scores:
            st.html(told.scores_table(walk_of(recording), k))


@st.fragment
def search(run: str, recording: Recording) -> None:
    """Find what was said, and go to its step."""
    if not (box := unfolds("Search what was said", "open_search", ":material/search:")):
        return
    with box:
        text = st.text_input("Search what was said", placeholder="a word or a number", label_visibility="collapsed")
        if not text.strip():
            return
        found = told.search(recording.events, text)
        if not found:
            st.info("No reply holds that.")
        for step, who, excerpt in found:
            left, right = st.columns([1, 6], vertical_alignment="center")
            if left.button(f"step {step} · {who}", key=f"hit_{step}", width="stretch"):
                go_to(run, step)
                st.rerun()
            right.html(f'<div class="svr-hit">{safe(excerpt)}</div>')


@st.fragment
def take_along(recording: Recording) -> None:
    """What of the run can be taken along."""
    events, run = recording.events, recording.run_id
    dark = theme.ink().paper == DARK.paper
    if not (box := unfolds("Take it along", "open_take", ":material/download:")):
        return
    with box:
        columns = st.columns(4)
        files = {
            "One HTML file": (
                lambda: takeaway.html(recording, dark),
                ".html",
                "text/html",
                "Scrubs offline, for slides",
            ),
            "Tables (CSV)": (
                lambda: export.csv_zip(events),
                "-tables.zip",
                "application/zip",
                "Turns, scores, agents, links",
            ),
            "Graph (GraphML)": (
                lambda: export.graphml(events),
                ".graphml",
                "application/xml",
                "For Gephi, yEd, NetworkX",
            ),
            "Recording (JSONL)": (
                lambda: export.jsonl(recording),
                ".jsonl",
                "application/jsonl",
                "The run itself, for this app",
            ),
        }
        for column, (label, (make, ending, mime, tip)) in zip(columns, files.items(), strict=True):
            column.download_button(label, make, f"{run}{ending}", mime, help=tip, on_click="ignore", width="stretch")
        st.caption(
            "A picture as PNG or SVG: point at it, or tab to it, and press PNG or SVG in its corner. "
            "On the command line: `python -m svrmad_core export RECORDING --to png OUT`."
        )
