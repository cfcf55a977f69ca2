"""The stage: the timeline and, following it, the graph, the scores and the step in words."""

from __future__ import annotations

import json

import streamlit as st

from svrmad_core import answers
from svrmad_core.debate import Debate
from svrmad_core.recording import Recording, RunInfo

from . import figures, story, theme
from .look import Ink
from .plot import plot
from .timeline import jump, timeline
from .walk import Walk, renumbered, walk

VIEWS = {"scores": "Scores", "slope": "Prior → now", "flow": "Beliefs"}


def step_in_link(last: int) -> int:
    """The step that the link names, within the run; the last without one."""
    text = st.query_params.get("step", "")
    return max(1, min(last, int(text))) if text.isascii() and text.isdigit() and len(text) < 9 else last


def go_to(run: str, step: int) -> None:
    """Put a step into the link, and the cursor there."""
    st.query_params.update({"run": run, "step": str(step)})
    jump()


@st.cache_resource(max_entries=16, show_spinner=False)
def walked(run: str, last: int, ends_at: str, _recording: Recording) -> Walk:
    """The walk through a run, taken once for all who look at it."""
    return walk(_recording.events)


def walk_of(recording: Recording) -> Walk:
    """The walk through a recording."""
    return walked(recording.run_id, len(recording.events), recording.events[-1].at, recording)


@st.cache_resource(max_entries=48, show_spinner="Drawing the run …")
def film_of(
    run: str,
    last: int,
    ends_at: str,
    inks: Ink,
    picture: str,
    grouped: bool,
    right: int | None,
    _recording: Recording,
    numbers: tuple[int, ...] = (),
    answers: tuple[str, ...] = (),
) -> str:
    """A picture of every step as JSON, built once for all who look at the run.

    ``numbers`` and ``answers`` give beliefs the colours that they have in another run.
    """
    found = walk_of(_recording)
    if numbers:
        found = renumbered(found, numbers, answers)
    match picture:
        case "graph":
            made = figures.graph(found, inks, grouped)
        case "flow":
            made = figures.flow(found, inks, right)
        case _:
            made = figures.PICTURES[picture](found, inks)
    return json.dumps(made.as_data(), allow_nan=False, separators=(",", ":"))


def chosen_agent(debate: Debate) -> str | None:
    """The agent that the link brings forward."""
    name = st.query_params.get("agent")
    return name if name in debate.agents else None


def choose_agent(name: str | None) -> None:
    """Bring an agent forward everywhere, or none."""
    if name is None:
        st.query_params.pop("agent", None)
    else:
        st.query_params["agent"] = name


def _moved(name: str, step: int, last: int, live: bool) -> None:
    """Put the step into the link; without one a run that is live is shown at its end."""
    if live and step >= last:
        st.query_params.pop("step", None)
    else:
        st.query_params.update({"run": name, "step": str(step)})


def draw(name: str, recording: Recording, k: int, ghost: RunInfo | None, live: bool = False) -> None:
    """The stage at step k.

    Parameters
    ----------
    name
        The run's name in the link.
    ghost
        The paired all-to-all replay, whose totals stand beside this run's.
    live
        The run still grows: the cursor follows its end until it is moved elsewhere.
    """
    events = recording.events
    debate, last = recording.fold(k), len(events)
    before = recording.fold(k - 1) if k > 1 else None
    predict = st.session_state.get("predict", False)
    story.head(debate, ghost)
    timeline(events, recording.fold(), k, predict, lambda step: _moved(name, step, last, live), live)
    right_one = _right(recording.fold()) if st.session_state.get("reveal") else None
    story.legend(debate, right_one)
    left, right = st.columns([1, 1], gap="medium")
    agent, inks = chosen_agent(debate), theme.ink()
    grouped = st.session_state.get("grouped", False)

    def picture(which: str) -> None:
        options = (grouped and which == "graph", right_one if which == "flow" else None)
        film = film_of(recording.run_id, last, events[-1].at, inks, which, *options, recording)
        plot(recording.run_id, film, which, inks, agent, predict, choose_agent)

    with right:
        view = st.segmented_control(
            "Picture", list(VIEWS), default="scores", format_func=VIEWS.get, key="view", label_visibility="collapsed"
        )
        above = st.container()
        # the words before the charts, which need not wait for the server
        story.in_words(before, events[k - 1], debate)
    with left:
        picture("graph")
    with above:
        picture(view or "scores")
    _switches(name, debate, agent)


def _right(debate: Debate) -> int | None:
    """The belief that is the reference answer, if one is."""
    problem = debate.problem
    if problem.reference is None:
        return None
    return next((b for b, answer in enumerate(debate.beliefs) if _same(answer, problem.reference, problem.kind)), None)


@st.cache_data(max_entries=512, show_spinner=False)
def _same(answer: str, reference: str, kind: str) -> bool:
    return answers.same_answer(answer, reference, kind)


def _switches(name: str, debate: Debate, agent: str | None) -> None:
    names = list(debate.agents)
    columns = st.columns([2, 1.8, 2.2, 1.8, 1.5], vertical_alignment="center")
    columns[0].toggle("Predict: hide what comes", key="predict")
    columns[1].toggle("Group by belief", key="grouped", help="Agents of one belief stand together")
    with columns[2]:
        story.reference(debate)
    st.session_state["agent"] = agent
    columns[3].selectbox(
        "Agent",
        names,
        key="agent",
        index=None,
        placeholder="Follow an agent …",
        label_visibility="collapsed",
        on_change=lambda: choose_agent(st.session_state["agent"]),
    )
    with columns[4]:
        theme.projector_button(name)
