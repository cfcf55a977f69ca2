"""The methods that a question has not been answered with yet: what each would take, and a button that runs it."""

from __future__ import annotations

import streamlit as st

from svrmad_core.estimate import estimate
from svrmad_core.protocols import VARIANTS
from svrmad_core.recording import Recording
from svrmad_core.records import Settings

from . import estimate_box, library, pairing, policy, runner
from .lazily import unfolds
from .look import plain

_BUDGETS = ("max_rounds", "max_links", "max_tokens_total", "max_cost")


_QUEUE = "compare_queue"
"""(root, key) of methods that wait until there is room for another run."""


def offers(pair: pairing.Pair) -> None:
    """One line for each method that is missing: its estimate, and its button; what is under way, with its progress."""
    root = _root(pair)
    jobs = [j for j in runner.jobs() if j.parent_id == root.run_id]
    under_way = [j for j in jobs if not j.done]
    _late(pair, jobs)
    waiting = [key for name, key in st.session_state.get(_QUEUE, []) if name == root.run_id]
    if under_way or waiting:
        _progress(root)
    taken = {j.method for j in under_way} | set(waiting)
    missing = [key for key in VARIANTS if key not in pairing.newest(pair.family) and key not in taken]
    _failures(root.run_id)
    if not missing:
        return
    title = f"Not run yet on these initial answers: {len(missing)} of {len(VARIANTS)} methods"
    if box := unfolds(title, "open_missing", icon=":material/add_circle:"):
        with box:
            _lines(root, missing)


def _late(pair: pairing.Pair, jobs: list[runner.Job]) -> None:
    """Begin the page anew if a run has ended since its runs were listed: nothing else would show it."""
    listed = {info.run_id for info in pair.family if info.verdict is not None}
    seen: set[str] = st.session_state.setdefault("compare_seen", set())
    late = {j.run_id for j in jobs if j.done and j.verdict is not None} - listed - seen
    if late:
        seen |= late
        st.rerun()


def _root(pair: pairing.Pair) -> Recording:
    """The run whose initial answers are taken over: the family's first, which asked for all of them."""
    return library.open_run(pair.family[0].run_id) if pair.family else pair.one


def settings_of(parent: Recording, key: str) -> Settings:
    """A paired run's settings: the parent's without its budgets, and what makes it this method."""
    bare = parent.started.settings.model_copy(update=dict.fromkeys(_BUDGETS))
    return bare.model_copy(update=dict(VARIANTS[key].settings))


def _lines(root: Recording, missing: list[str]) -> None:
    rules = policy.current()
    models = [a.model for a in root.started.agents]
    own_key = st.session_state.get("live_key") or None
    refused = rules.refuses(models, root.started.settings, own_key is not None)
    if root.path is None:
        refused = "An opened file is not replayed from here: whoever made it chose whom your key would be sent to."
    if refused:
        st.info(refused, icon=":material/lock:")
    simulated = root.started.simulated
    who = "the simulated panel" if simulated else ", ".join(dict.fromkeys(models))
    st.caption(f"Each runs from the same initial answers and asks {who}.")
    prices = estimate_box.prices(models, root.started.settings.api_base) or dict.fromkeys(models)
    for key in missing:
        settings = settings_of(root, key)
        made = estimate(VARIANTS[key].protocol, settings, models, root.started.problem, parent=root, prices=prices)
        left, middle, right = st.columns([3, 5, 1], vertical_alignment="center")
        left.markdown(f"**{VARIANTS[key].title}**")
        middle.markdown(estimate_box.line(made))
        if right.button("Run", key=f"run_{key}", disabled=refused is not None, help=refused, width="stretch"):
            queue(root, [key])
    if len(missing) > 1 and st.button(
        f"Run all {len(missing)}", key="run_all", icon=":material/playlist_play:", disabled=refused is not None
    ):
        queue(root, missing)


def queue(root: Recording, keys: list[str]) -> None:
    """Let these methods run, each as soon as there is room."""
    st.session_state.setdefault(_QUEUE, []).extend((root.run_id, key) for key in keys)
    _fill(root)
    st.rerun()


def _fill(root: Recording) -> None:
    """Begin what waits, as far as there is room."""
    waiting: list[tuple[str, str]] = st.session_state.get(_QUEUE, [])
    while waiting and waiting[0][0] == root.run_id:
        try:
            begin(root, waiting[0][1])
        except runner.CannotStart as error:
            mine = [j for j in runner.jobs() if j.parent_id == root.run_id and not j.done]
            if not mine:
                # nothing of this page will end and make room
                waiting.clear()
                st.session_state["compare_full"] = str(error)
            return
        waiting.pop(0)


def begin(root: Recording, key: str, pace: float = 0.0) -> None:
    """Begin a paired run of one method in the server.

    Raises
    ------
    runner.CannotStart
        If there is no room for it, or no money left; one sentence.
    """
    rules = policy.current()
    models = [a.model for a in root.started.agents]
    priced = estimate_box.priced(models, root.started.settings.api_base)
    runner.begin(
        root.started.problem,
        VARIANTS[key].protocol,
        models,
        rules.capped(settings_of(root, key), priced),
        api_key=st.session_state.get("live_key") or None,
        parent=root,
        owner=policy.visitor(),
        pace=pace,
        limits=rules.limits,
        hidden=rules.library == "private",
    )


def _failures(root: str) -> None:
    if full := st.session_state.pop("compare_full", None):
        st.warning(full, icon=":material/hourglass:")
    for job in runner.jobs():
        if job.done and job.error and job.parent_id == root:
            st.error(plain(job.error), icon=":material/error:")
            runner.forget(job)


@st.fragment(run_every=1.0)
def _progress(root: Recording) -> None:
    """How the paired runs are going; the page is drawn anew as soon as one ends, and what waits is begun."""
    _fill(root)
    mine = [j for j in runner.jobs() if j.parent_id == root.run_id]
    ended = frozenset(j.run_id for j in mine if j.done)
    waiting = [VARIANTS[key].title for name, key in st.session_state.get(_QUEUE, []) if name == root.run_id]
    if st.session_state.get("compare_ended", frozenset()) != ended or (len(ended) == len(mine) and not waiting):
        st.session_state["compare_ended"] = ended
        library.paired_all_to_all.clear()
        st.rerun()
    for job in mine:
        if job.done:
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        replies = sum(e.event in ("revised", "debated", "summarized", "turn_failed") for e in job.events)
        left.markdown(f":material/progress_activity: **{VARIANTS[job.method].title}** · {replies} replies so far")
        right.button("Stop", key=f"stop_{job.run_id}", on_click=job.stop, disabled=job.stopping, width="stretch")
    if waiting:
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.caption(f"Next, as soon as there is room: {', '.join(waiting)}")
        right.button("Do not run these", key="unqueue", on_click=st.session_state[_QUEUE].clear, width="stretch")


__all__ = ["begin", "offers", "queue", "settings_of"]
