"""What if the settings had been others: asked of the recording, which tells as far as it can."""

from __future__ import annotations

from typing import Any

import streamlit as st

from svrmad_core import WhatIf, what_if
from svrmad_core.panels.simulated_panel import PREFIX
from svrmad_core.recording import Recorder, Recording, new_run_id, runs_folder
from svrmad_core.records import Settings

from . import estimate_box, policy, runner
from .lazily import unfolds
from .look import plain as _plain
from .look import short
from .policy import Policy
from .stage import go_to

_SCORES = {"svr": "SVR", "prior": "prior, frozen", "beta": "Beta posterior"}
_PRIORS = ("confidence", "perplexity", "min_logprob", "uniform")


@st.fragment
def panel(run: str, recording: Recording) -> None:
    """Sliders for the settings, and what they would have made of this run."""
    if recording.started.protocol != "svr_mad":
        return
    if not (box := unfolds("What if the settings had been others?", "open_what_if", ":material/alt_route:")):
        return
    with box:
        changes = _changes(recording.started.settings)
        if not changes:
            st.caption("Move a setting: the run is decided again from its recorded replies. Nothing is invented.")
            return
        try:
            found = what_if(recording.events, **changes)
        except ValueError as error:
            st.error(str(error), icon=":material/error:")
            return
        _tell(run, recording, found)
        if found.verdict is None:
            _go_on(recording, found)


def _changes(settings: Settings) -> dict[str, Any]:
    """The settings moved away from those of the run."""
    first, second = st.columns(4), st.columns(4)
    n = settings.agents
    quorum = settings.needed_for_consensus
    chosen = {
        "tau": first[0].slider("τ, acceptance", -1.0, 1.0, settings.tau, 0.05, key="if_tau"),
        "challengers": first[1].slider(
            "S, challengers", 1, max(2, n - 1), min(settings.challengers, max(2, n - 1)), key="if_s"
        ),
        "quorum": first[2].slider("Quorum", 1, max(2, n), min(quorum, max(2, n)), key="if_quorum"),
        "accept_after": first[3].segmented_control(
            "Accept after each", ["round", "debate"], default=settings.accept_after, required=True, key="if_accept"
        ),
        "prior": second[0].selectbox("Prior", _PRIORS, _PRIORS.index(settings.prior), key="if_prior"),
        "prior_scale": second[1].segmented_control(
            "Scale of priors", ["probability", "rank"], default=settings.prior_scale, required=True, key="if_scale"
        ),
        "score": second[2].selectbox(
            "Score", list(_SCORES), list(_SCORES).index(settings.score), format_func=_SCORES.get, key="if_score"
        ),
        "round_mode": second[3].segmented_control(
            "Debates of a round", ["sequential", "parallel"], default=settings.round_mode, required=True, key="if_mode"
        ),
    }
    recorded = {
        "challengers": min(settings.challengers, max(2, n - 1)),
        "quorum": min(quorum, max(2, n)),
    }
    return {name: value for name, value in chosen.items() if value != recorded.get(name, getattr(settings, name))}


def _tell(run: str, recording: Recording, found: WhatIf) -> None:
    """Where the run departs, and what came of it."""
    end = recording.events[-1]
    if found.departs is None:
        st.success(f"Nothing departs: all {found.same} steps are the same.", icon=":material/check:")
        return
    left, right = st.columns([5, 1], vertical_alignment="center")
    left.warning(_plain(found.departs), icon=":material/alt_route:")
    if right.button(f"See step {found.same}", key="if_see", width="stretch"):
        go_to(run, found.same)
        st.rerun()
    if found.verdict is None:
        asks = "; ".join(f"{a.agent} hearing {', '.join(a.heard) or 'nobody'}" for a in found.missing[:4])
        st.info(f"From there on the recording cannot tell: it does not hold the reply of {asks}.")
        return
    columns = st.columns(2)
    rows = [("With these settings", found.verdict, found.totals)]
    if end.event == "run_finished":
        rows.insert(0, ("As recorded", end.verdict, end.totals))
    for column, (title, verdict, totals) in zip(columns, rows, strict=False):
        cost = "cost unknown" if totals.cost is None else f"{totals.cost:.4f} USD"
        by = f" ({verdict.agent})" if verdict.agent else ""
        column.metric(
            title,
            _plain(short(verdict.answer, 40)) + by,
            verdict.reason.replace("_", " "),
            delta_color="off",
            delta_arrow="off",
        )
        column.caption(f"{totals.links} links · {totals.calls} calls · {totals.tokens:,} tokens · {cost}")


def _go_on(recording: Recording, found: WhatIf) -> None:
    """Offer to ask the agents from where the recording cannot tell."""
    started = recording.started
    models = list(dict.fromkeys(a.model for a in started.agents))
    asks = f"{', '.join(models)}{f' at {base}' if (base := started.settings.api_base) else ''}"
    real = not all(model.startswith(PREFIX) for model in models)
    if real and recording.path is None:
        # whoever made the file chose the address, and a key of this machine would be sent there
        st.caption(
            _plain(f"An opened file is not run on from here, since it would choose whom your key is sent to: {asks}.")
        )
        return
    rules = policy.current()
    refused = rules.refuses(models, started.settings, own_key=False)
    if refused is not None:
        st.caption(_plain(refused))
        return
    if st.button(
        "Run on from there",
        icon=":material/play_arrow:",
        key="if_go_on",
        help=f"Asks {_plain(asks)}." if real else None,
    ):
        try:
            branch = begin_branch(recording, found, rules)
        except (OSError, runner.CannotStart) as error:
            st.error(_plain(str(error)), icon=":material/error:")
            return
        st.session_state["branch"] = branch
    if branch := st.session_state.get("branch"):
        _watch(branch)


def begin_branch(recording: Recording, found: WhatIf, rules: Policy) -> str:
    """Write the imagined run down as a run of its own and go on with it in the server; returns its name.

    Raises
    ------
    runner.CannotStart
        If too many runs are under way.
    OSError
        If it cannot be written.
    """
    name = new_run_id("svr_mad")
    path = runs_folder() / f"{name}.jsonl"
    note = f"What if: decided again from the replies of {recording.run_id}, then run on."
    settings = found.events[0].settings
    if not rules.local:
        models = [a.model for a in recording.started.agents]
        settings = rules.capped(settings, estimate_box.priced(models, settings.api_base))
    started = found.events[0].model_copy(
        update={"run_id": name, "parent": recording.run_id, "note": note, "settings": settings}
    )
    with Recorder(path) as recorder:
        for event in [started, *found.events[1:]]:
            recorder.append(event)
    try:
        runner.start(path, policy.visitor(), rules.limits, settings.max_cost or 0.0)
    except runner.CannotStart:
        path.unlink()
        raise
    return name


@st.fragment(run_every=1.0)
def _watch(branch: str) -> None:
    """How the branch is going, until it is done."""
    job = next((j for j in runner.jobs() if j.run_id == branch), None)
    if job is not None and not job.done:
        left, right = st.columns([5, 1], vertical_alignment="center")
        left.info(f"Running on: {job.steps} steps so far.", icon=":material/hourglass_top:")
        if right.button("Stop", key="if_stop", disabled=job.stopping, width="stretch"):
            job.stop()
        return
    if job is not None and job.error:
        st.error(_plain(job.error), icon=":material/error:")
    if st.button("Open the new run", key="if_open", icon=":material/open_in_new:"):
        del st.session_state["branch"]
        st.query_params.from_dict({"run": branch})
        st.rerun(scope="app")
