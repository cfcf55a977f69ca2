"""After a run: the verdict, what it took against all-to-all, and what can be done next."""

from __future__ import annotations

from typing import Any

import streamlit as st

from svrmad_core.debate import Debate
from svrmad_core.estimate import estimate
from svrmad_core.recording import Recording, RecordingError, RunInfo
from svrmad_core.records import Totals

from . import ask_form, by_hand, estimate_box, faults, inspector, library, missing, policy, runner, stage
from .look import colour, glyph, plain, safe, short
from .policy import Policy

_CSS = """<style>
.svr-verdict { border: 1px solid rgba(128,128,128,.3); border-left: 10px solid var(--belief); border-radius: 10px;
  padding: 12px 20px; overflow-wrap: anywhere; }
.svr-verdict .q { font-size: 1.1rem; opacity: .8; }
.svr-verdict .a { font-size: 2.6rem; font-weight: 800; line-height: 1.15; }
.svr-verdict .r { font-size: 1.15rem; }
.svr-against td { white-space: nowrap; }
.svr-against { border-collapse: collapse; font-size: 1.05rem; }
.svr-against th, .svr-against td { text-align: right; padding: 3px 0 3px 18px; font-variant-numeric: tabular-nums; }
.svr-against th:first-child { text-align: left; padding-left: 0; }
.svr-against thead th { border-bottom: 1px solid rgba(128,128,128,.35); }
</style>"""
_BUDGETS = ("max_rounds", "max_links", "max_tokens_total", "max_cost")


def show(recording: Recording, rules: Policy, error: str | None) -> None:
    """A run that is not under way: finished, or broken off."""
    end = recording.fold()
    if error is not None:
        st.error(plain(error), icon=":material/error:")
    if end.verdict is not None:
        left, right = st.columns([3, 2], gap="large")
        with left:
            st.html(_CSS + _verdict(end))
            faults.tell(end)
            by_hand.offer(recording, rules)
        with right:
            _against(recording, end, rules)
    else:
        _interrupted(recording, rules)
    _next(recording, rules)
    _stage(recording)
    inspector.search(recording.run_id, recording)
    inspector.take_along(recording)


@st.fragment
def _stage(recording: Recording) -> None:
    k = stage.step_in_link(len(recording.events))
    stage.draw(recording.run_id, recording, k, library.paired_all_to_all(recording.run_id))
    inspector.transcript(recording, k)


def _verdict(end: Debate) -> str:
    """The verdict, large, with its reason."""
    verdict = end.verdict
    assert verdict is not None
    answer = "no answer" if verdict.answer is None else short(verdict.answer, 200)
    sign = f'<span style="color:{colour(verdict.belief)}">{glyph(verdict.belief)}</span>'
    return (
        f'<div class="svr-verdict" style="--belief:{colour(verdict.belief)}">'
        '<div class="q">Verdict</div>'
        f'<div class="a">{sign} {safe(answer)}</div>'
        f'<div class="r">{safe(_reason(end))}</div></div>'
    )


def _reason(end: Debate) -> str:
    """Why the debate ended there, in a sentence."""
    verdict = end.verdict
    assert verdict is not None
    held = verdict.votes.get(verdict.belief, 0) if verdict.belief is not None else 0
    of = f"{held} of {len(end.agents)} agents"
    match verdict.reason:
        case "accepted":
            state = end.agents[verdict.agent or ""]
            return (
                f"Accepted: {state.name} kept its answer in {state.retained} of {state.debates} debates, which is "
                f"above τ = {end.settings.tau:g}."
            )
        case "consensus":
            return f"Consensus: {of} hold it, and {end.settings.needed_for_consensus} are enough."
        case "vote":
            return f"Vote: {of} hold it; nobody survived well enough before the budget or the challengers ran out."
        case "early_exit":
            return f"Early exit: {verdict.agent} was confident of its answer, and nobody else was asked."
        case "trajectory":
            return "Best trajectory: the path of every answer counts, not the vote."
        case "stopped":
            return f"Stopped by hand: {of} held it then." if held else "Stopped by hand before there was an answer."
    return "No agent has a readable answer."


def _against(recording: Recording, end: Debate, rules: Policy) -> None:
    """What the run took beside all-to-all: measured if a paired replay is there, else estimated."""
    if end.protocol == "all_to_all":
        return
    # the jobs before the list: a replay that ends in between is then still looked at again
    replays = [j for j in runner.jobs() if j.parent_id == recording.run_id and j.method == "all_to_all"]
    job = next((j for j in replays if not j.done), None)
    paired = library.paired_all_to_all(recording.run_id)
    if paired is None and any(j.done and j.verdict is not None for j in replays):
        # what was remembered is from before it ended
        library.paired_all_to_all.clear()
        paired = library.paired_all_to_all(recording.run_id)
    mine = end.totals()
    head, rows = _measured(mine, paired) if paired is not None else _estimated(recording, end)
    body = "".join(f"<tr><th>{n}</th>{''.join(f'<td>{safe(c)}</td>' for c in cells)}</tr>" for n, cells in rows)
    st.html(
        f'{_CSS}<table class="svr-against"><thead><tr><th></th><th>this run</th><th>{head}</th></tr></thead>'
        f"<tbody>{body}</tbody></table>"
    )
    for broken in (j for j in replays if j.done and j.error):
        st.error(plain(broken.error or ""), icon=":material/error:")
        runner.forget(broken)
    if job is not None:
        _replaying(job)
    elif paired is None and end.verdict is not None and any(s.turns for s in end.agents.values()):
        _offer_replay(recording, rules)


def _row(totals: Totals) -> list[str]:
    cost = "unknown" if totals.cost is None else f"{totals.cost:.4f} USD" if totals.cost else "free"
    return [f"{totals.links}", f"{totals.calls}", f"{totals.tokens:,}", cost, f"{totals.critical_path:.1f}"]


_NAMES = ("links", "calls", "tokens", "money", "seconds")


def _measured(mine: Totals, paired: RunInfo) -> tuple[str, Any]:
    return "all-to-all, measured", zip(_NAMES, zip(_row(mine), _row(paired.totals), strict=True), strict=True)


def _estimated(recording: Recording, end: Debate) -> tuple[str, Any]:
    """All-to-all from the same initial answers, as the lengths measured here let one expect."""
    settings = end.settings.model_copy(update=dict.fromkeys(_BUDGETS))
    models = [s.agent.model for s in end.agents.values()]
    prices = estimate_box.prices(models, settings.api_base) or dict.fromkeys(models)
    made = estimate("all_to_all", settings, models, end.problem, parent=recording, prices=prices)
    took = made.taken_over_calls, made.taken_over_tokens

    def spread(pair: tuple[int, int], more: int = 0) -> str:
        low, high = pair[0] + more, pair[1] + more
        return f"{low:,}" if low == high else f"{low:,} – {high:,}"

    first = [s.turns[0][1] for s in end.agents.values() if s.turns]
    cost = "unknown"
    if made.cost is not None and all(t.cost is not None for t in first):
        paid = sum(t.cost or 0.0 for t in first)
        cost = f"{made.cost[0] + paid:.4f} – {made.cost[1] + paid:.4f} USD" if made.cost[1] else "free"
    waited = max((t.latency for t in first), default=0.0)
    seconds = "–" if end.started.simulated else f"{made.seconds[0] + waited:.0f} – {made.seconds[1] + waited:.0f}"
    theirs = [spread(made.links), spread(made.calls, took[0]), spread(made.tokens, took[1]), cost, seconds]
    return "all-to-all, estimated", zip(_NAMES, zip(_row(end.totals()), theirs, strict=True), strict=True)


def _offer_replay(recording: Recording, rules: Policy) -> None:
    started = recording.started
    key = st.session_state.get("live_key") or None
    models = [a.model for a in started.agents]
    refused = rules.refuses(models, started.settings, key is not None)
    if refused is None and recording.path is None:
        refused = "An opened file is not replayed from here: whoever made it chose whom your key would be sent to."
    if st.button(
        "Measure all-to-all",
        icon=":material/balance:",
        disabled=refused is not None,
        help=refused or f"Runs all-to-all from the same initial answers; asks {', '.join(dict.fromkeys(models))}",
    ):
        _begin_replay(recording)


def _begin_replay(recording: Recording) -> None:
    try:
        missing.begin(recording, "all_to_all", ask_form.SIMULATED_PACE)
    except runner.CannotStart as error:
        st.error(str(error), icon=":material/error:")
        return
    st.rerun()


@st.fragment(run_every=0.5)
def _replaying(job: runner.Job) -> None:
    """How the paired replay is going."""
    if job.done:
        library.paired_all_to_all.clear()
        st.rerun()
    agents = len(job.events[0].agents) if job.events else 0
    said = sum(e.event in ("revised", "turn_failed") for e in job.events)
    st.progress(min(1.0, said / max(1, 2 * agents)), f"All-to-all from the same initial answers: {said} replies …")
    st.button("Stop it", key="live_stop_replay", on_click=job.stop, disabled=job.stopping)


def _interrupted(recording: Recording, rules: Policy) -> None:
    """A run that broke off: say so and offer to go on."""
    st.warning("This run was interrupted: it has no verdict yet. What was recorded is kept.", icon=":material/info:")
    started, path = recording.started, recording.path
    if path is None or rules.library != "open":
        return
    refused = rules.refuses([a.model for a in started.agents], started.settings, own_key=False)
    quiet = runner.may_be_running_elsewhere(path, started.simulated)
    tip = refused or ("It was written to a moment ago and may be running elsewhere." if quiet is not None else None)
    if st.button("Go on with it", type="primary", icon=":material/resume:", disabled=refused is not None, help=tip):
        try:
            runner.start(path, policy.visitor(), rules.limits)
        except runner.CannotStart as error:
            st.error(str(error), icon=":material/error:")
            return
        st.rerun()


def _next(recording: Recording, rules: Policy) -> None:
    """The buttons under a run."""
    run = recording.run_id
    with st.container(horizontal=True):
        if st.button("Ask something else", icon=":material/add:", type="primary"):
            ask_form.fill(
                recording.started.problem.model_copy(update={"question": "", "reference": None}),
                recording.started.settings,
            )
            st.query_params.clear()
            st.rerun()
        if st.button("Ask again with other settings", icon=":material/tune:"):
            ask_form.fill(recording.started.problem, recording.started.settings)
            st.query_params.clear()
            st.rerun()
        if st.button("Open in Replay", icon=":material/play_circle:"):
            st.switch_page("pages/replay.py", query_params={"run": run})
        if st.button("Compare", icon=":material/compare:", help="Beside other methods from the same initial answers"):
            st.switch_page("pages/compare.py", query_params={"one": run})
        with st.popover("Share", icon=":material/link:"):
            st.caption("Whoever has this link and can reach this server sees the run.")
            st.code(
                f"{st.context.url.split('?')[0] if st.context.url else ''}?run={run}", language=None, wrap_lines=True
            )
        if recording.path is not None and rules.library == "open":
            with st.popover("Save under a name", icon=":material/save:"):
                _save(run)


def _save(run: str) -> None:
    name = st.text_input("Name", key="live_save_as", placeholder="dice-in-class", max_chars=80)
    if st.button("Save", key="live_save", disabled=not name.strip()):
        try:
            saved = library.rename_run(run, name)
        except RecordingError as error:
            st.error(plain(str(error)), icon=":material/error:")
            return
        st.query_params["run"] = saved
        st.rerun()


__all__ = ["show"]
