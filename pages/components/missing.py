"""The methods that a question has not been answered with yet: what each would take, and a button that runs it."""

from __future__ import annotations

import streamlit as st

from svrmad_core.estimate import estimate
from svrmad_core.protocols import VARIANTS, variant_of
from svrmad_core.recording import Recording
from svrmad_core.records import Settings

from . import estimate_box, library, pairing, policy, runner
from .lazily import unfolds

_BUDGETS = ("max_rounds", "max_links", "max_tokens_total", "max_cost")


def offers(pair: pairing.Pair) -> None:
    """One line for each method that is missing: its estimate, and its button; what is under way, with its progress."""
    root = _root(pair)
    under_way = [j for j in runner.jobs() if j.events and j.events[0].parent == root.run_id and not j.done]
    if under_way:
        _progress(root.run_id)
    running = {_method(j) for j in under_way}
    missing = [key for key in VARIANTS if key not in pairing.newest(pair.family) and key not in running]
    _failures(root.run_id)
    if not missing:
        return
    title = f"Not run yet on these initial answers: {len(missing)} of {len(VARIANTS)} methods"
    if box := unfolds(title, "open_missing", icon=":material/add_circle:"):
        with box:
            _lines(root, missing)


def _root(pair: pairing.Pair) -> Recording:
    """The run whose initial answers are taken over: the family's first, which asked for all of them."""
    return library.open_run(pair.family[0].run_id) if pair.family else pair.one


def _method(job: runner.Job) -> str:
    started = job.events[0]
    return variant_of(started.protocol, started.settings)


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
            begin(root, [key], models)
    if len(missing) > 1 and st.button(
        f"Run all {len(missing)}", key="run_all", icon=":material/playlist_play:", disabled=refused is not None
    ):
        begin(root, missing, models)


def begin(root: Recording, keys: list[str], models: list[str]) -> None:
    """Begin paired runs in the server; what does not fit beside others is not begun, and that is said."""
    rules = policy.current()
    priced = estimate_box.priced(models, root.started.settings.api_base)
    for key in keys:
        try:
            runner.begin(
                root.started.problem,
                VARIANTS[key].protocol,
                models,
                rules.capped(settings_of(root, key), priced),
                api_key=st.session_state.get("live_key") or None,
                parent=root,
                owner=policy.visitor(),
                limits=rules.limits,
                hidden=rules.library == "private",
            )
        except runner.CannotStart as error:
            st.session_state["compare_full"] = str(error)
            break
    st.rerun()


def _failures(root: str) -> None:
    if full := st.session_state.pop("compare_full", None):
        st.warning(full, icon=":material/hourglass:")
    for job in runner.jobs():
        if job.done and job.error and job.events and job.events[0].parent == root:
            st.error(job.error, icon=":material/error:")
            runner.forget(job)


@st.fragment(run_every=1.0)
def _progress(root: str) -> None:
    """How the paired runs are going; the page is drawn anew as soon as one ends."""
    mine = [j for j in runner.jobs() if j.events and j.events[0].parent == root]
    ended = frozenset(j.run_id for j in mine if j.done)
    if st.session_state.setdefault("compare_ended", ended) != ended:
        st.session_state["compare_ended"] = ended
        library.paired_all_to_all.clear()
        st.rerun()
    for job in mine:
        if job.done:
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        replies = sum(e.event in ("revised", "debated", "summarized", "turn_failed") for e in job.events)
        title = VARIANTS[_method(job)].title
        left.markdown(f":material/progress_activity: **{title}** · {replies} replies so far")
        right.button("Stop", key=f"stop_{job.run_id}", on_click=job.stop, disabled=job.stopping, width="stretch")


__all__ = ["begin", "offers", "settings_of"]
