"""The table of all runs, what narrows it down, and what can be done with one of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd
import streamlit as st

from svrmad_core.protocols import PROTOCOLS, VARIANTS
from svrmad_core.recording import RecordingError, RunInfo
from svrmad_core.records import Settings

from . import library, policy, runner
from .look import plain, safe, short

_MAKE_ONE = 'python -m svrmad_core run "What is 15% of 240?" --model simulated/hard'
_CHOSEN = "runs_chosen"
_FAILED = "runs_failed"
_SEARCH = "runs_search"
_CSS = """<style>
.svr-run { overflow-wrap: anywhere; }
.svr-run .q { font-size: 1.25rem; font-weight: 700; line-height: 1.3; }
.svr-run .small { opacity: .75; font-size: .95rem; }
.svr-run .sim { background: #D55E00; color: #fff; font-weight: 700; padding: 1px 8px; border-radius: 6px;
  display: inline-block; }
.svr-run .bad { color: #D55E00; font-weight: 700; }
</style>"""


class Row(NamedTuple):
    """A run and whose it is: ``own`` or ``sample``."""

    source: str
    info: RunInfo

    @property
    def name(self) -> str:
        """Tells rows apart: an own run may be a copy of a sample run."""
        return f"{self.source}/{self.info.run_id}"

    @property
    def protocol(self) -> str:
        return VARIANTS[self.info.method].title if self.info.method in VARIANTS else self.info.protocol

    @property
    def ended(self) -> str:
        """The verdict's reason, or ``interrupted``."""
        return self.info.verdict.reason if self.info.verdict else "interrupted"

    @property
    def outcome(self) -> str:
        return {True: "right", False: "wrong", None: "unknown"}[self.info.right]

    @property
    def found_by(self) -> str:
        """What a search looks through, in lower case."""
        answer = self.info.verdict.answer if self.info.verdict else None
        return "\n".join((self.info.question, *self.info.models, self.info.run_id, answer or "")).casefold()


class Group(NamedTuple):
    """A filter: nothing chosen lets every run through."""

    key: str
    label: str
    options: dict[str, str]
    """value -> what it is called"""
    of: Callable[[Row], str]


GROUPS = (
    Group(
        "runs_protocol",
        "Protocol",
        {name: p.title for name, p in PROTOCOLS.items()} | {"other": "another"},
        lambda row: row.info.protocol if row.info.protocol in PROTOCOLS else "other",
    ),
    Group(
        "runs_ended",
        "Ended by",
        {
            "accepted": "accepted",
            "consensus": "consensus",
            "vote": "vote",
            "no_answer": "no answer",
            "stopped": "stopped",
            "interrupted": "interrupted",
        },
        lambda row: row.ended,
    ),
    Group(
        "runs_right",
        "Verdict against the reference",
        {"right": "✓ right", "wrong": "✗ wrong", "unknown": "unknown"},
        lambda row: row.outcome,
    ),
    Group("runs_source", "Whose", {"own": "own", "sample": "sample runs"}, lambda row: row.source),
    Group(
        "runs_made",
        "Answered by",
        {"real": "real models", "simulated": "simulated agents"},
        lambda row: "simulated" if row.info.simulated else "real",
    ),
)


def all_rows() -> list[Row]:
    """Sample runs and own runs, newest first."""
    rows = [Row(shelf.title, info) for shelf in library.shelves() for info in shelf.runs]
    return sorted(rows, key=lambda row: row.info.started, reverse=True)


def how_to_begin(rows: Sequence[Row]) -> None:
    """What to do where there is no own run yet."""
    if not any(row.source == "own" for row in rows):
        st.info("You have no runs yet. Make one that needs no model, then reload this page:", icon=":material/info:")
        st.code(_MAKE_ONE, language="bash", wrap_lines=True)


def filtered(rows: Sequence[Row]) -> list[Row]:
    """The search box and the filters; returns the rows they let through. What is set stays set for the session."""
    active = sum(bool(st.session_state.get(group.key)) for group in GROUPS)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        text = st.text_input(
            "Search",
            key=_SEARCH,
            type="search",
            live=True,
            persist_state="session",
            placeholder="Search question, models, answer, run",
            label_visibility="collapsed",
            icon=":material/search:",
        )
        label = f"Filter ({active})" if active else "Filter"
        with st.popover(label, icon=":material/filter_list:", key="runs_filters"):
            chosen = [
                st.pills(
                    group.label,
                    list(group.options),
                    selection_mode="multi",
                    format_func=group.options.__getitem__,
                    key=group.key,
                    persist_state="session",
                )
                for group in GROUPS
            ]
    words = (text or "").casefold().split()
    filters = [(group.of, set(values)) for group, values in zip(GROUPS, chosen, strict=True) if values]
    kept = [row for row in rows if all(of(row) in values for of, values in filters)]
    if words:
        kept = [row for row in kept if _matches(row, words)]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{len(kept):,} of {len(rows):,} runs", width="content")
        if words or filters:
            st.button(
                "Clear all",
                type="tertiary",
                icon=":material/filter_list_off:",
                on_click=_clear,
                help="Clear the search and the filters",
            )
    return kept


def _matches(row: Row, words: Sequence[str]) -> bool:
    found_by = row.found_by
    return all(word in found_by for word in words)


def _clear() -> None:
    st.session_state[_SEARCH] = ""
    for group in GROUPS:
        st.session_state[group.key] = []


def table(rows: Sequence[Row]) -> Row | None:
    """The table; returns the run that is chosen in it, if it is there."""
    if not rows:
        st.info("No run matches. Clear the search and the filters to see all of them.", icon=":material/search_off:")
        return None
    names = [row.name for row in rows]
    chosen = st.session_state.get(_CHOSEN)
    at = names.index(chosen) if chosen in names else None
    # A selection is a row's number. With a key for each list of runs it can never come to mean another run when
    # the list changes, and the run that was chosen is chosen again wherever it now stands.
    key = f"runs-{hashlib.sha256(' '.join(names).encode()).hexdigest()[:16]}"

    def choose() -> None:
        found = st.session_state[key]["selection"]["rows"]
        st.session_state[_CHOSEN] = names[found[0]] if found else None

    st.dataframe(
        _frame(rows),
        key=key,
        on_select=choose,
        selection_mode="single-row",
        selection_default={"selection": {"rows": [] if at is None else [at]}},
        hide_index=True,
        column_config=_COLUMNS,
        placeholder="–",
        alt="Runs",
    )
    if at is None:
        st.caption("Choose a run by the box at the left of its row: to open, download, resume or delete it.")
        return None
    return rows[at]


_COLUMNS = {
    "question": st.column_config.TextColumn("Question", width=250),
    "marks": st.column_config.MultiselectColumn(
        "", options=["simulated", "sample"], color=["orange", "blue"], width=110, help="Simulated runs, sample runs"
    ),
    "ended": st.column_config.TextColumn("Ended by", width=110),
    "answer": st.column_config.TextColumn("Answer", width=90),
    "right": st.column_config.TextColumn(
        "Right?", width=80, help="The verdict's answer against the reference, where there is one"
    ),
    "protocol": st.column_config.TextColumn("Protocol", width=130),
    "links": st.column_config.NumberColumn("Links", format="localized", width=60),
    "tokens": st.column_config.NumberColumn("Tokens", format="localized", width=80),
    "started": st.column_config.DatetimeColumn("Started (UTC)", format="YYYY-MM-DD HH:mm", width=150),
    "models": st.column_config.TextColumn("Models", width=240),
    "run": st.column_config.TextColumn("Run", width=260),
}


def _frame(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows as a frame; what is not known is missing."""
    infos = [row.info for row in rows]
    started = pd.to_datetime([i.started for i in infos], utc=True, format="ISO8601", errors="coerce")
    return pd.DataFrame(
        {
            "question": [short(i.question, 200) for i in infos],
            "marks": [_marks(row) for row in rows],
            "ended": ["◌ interrupted" if row.info.interrupted else row.ended.replace("_", " ") for row in rows],
            "answer": [i.verdict.answer and short(i.verdict.answer, 100) if i.verdict else None for i in infos],
            "right": [{True: "✓ right", False: "✗ wrong", None: None}[i.right] for i in infos],
            "protocol": [row.protocol for row in rows],
            "links": pd.array([i.totals.links if i.totals else None for i in infos], dtype="Int64"),
            "tokens": pd.array([i.totals.tokens if i.totals else None for i in infos], dtype="Int64"),
            "started": started.tz_localize(None),
            "models": [", ".join(i.models) for i in infos],
            "run": [i.run_id for i in infos],
        }
    )


def _marks(row: Row) -> list[str]:
    given = (row.info.simulated, "simulated"), (row.source == "sample", "sample")
    return [name for holds, name in given if holds]


def actions(row: Row) -> None:
    """The chosen run in words, and what can be done with it."""
    info, job = row.info, runner.job_of(row.info.path)
    may_change = row.source == "own" and policy.current().library == "open"
    st.html(f'{_CSS}<div class="svr-run">{_what(row)}</div>')
    with st.container(horizontal=True):
        if st.button("Open in Replay", type="primary", icon=":material/play_circle:"):
            st.switch_page("pages/replay.py", query_params={"run": info.run_id})
        if may_change and info.interrupted:
            resuming = st.button(
                "Resume", icon=":material/resume:", disabled=job is not None, help="Go on from what is recorded"
            )
        else:
            resuming = False
        st.download_button(
            "Download",
            info.path.read_bytes,
            file_name=info.path.name,
            mime="application/x-ndjson",
            icon=":material/download:",
            on_click="ignore",
        )
        if may_change and st.button("Delete", icon=":material/delete:", disabled=job is not None):
            _ask_before_deleting(row)
    if resuming:
        quiet = runner.may_be_running_elsewhere(info.path, info.simulated)
        if quiet is None:
            _resume(row)
            st.rerun()
        else:
            _ask_before_resuming(row, quiet)


def _what(row: Row) -> str:
    """A run in a few lines of HTML."""
    info = row.info
    models = ", ".join(info.models)
    simulated = ' <span class="sim">simulated: no model was asked</span>' if info.simulated else ""
    where = f" at {info.api_base}" if info.api_base and not info.simulated else ""
    if info.verdict is None:
        so_far = f" after {info.steps} steps" if info.steps is not None else ""
        end = f"interrupted{so_far}" + (f"; resuming asks {models}{where}" if row.source == "own" else "")
    else:
        said = {True: " (right)", False: " (wrong)", None: ""}[info.right]
        spent = f"{info.totals.links} links · {info.totals.tokens:,} tokens"
        end = f"{row.ended.replace('_', ' ')}: {short(info.verdict.answer, 200)}{said} · {spent}"
    return (
        f'<div class="q">{safe(short(info.question, 300))}</div><div>{safe(end)}{simulated}</div>'
        f'<div class="small">{safe(row.protocol)} · {info.agents} agents · {safe(models)} · {_date(info)} UTC · '
        f"{safe(info.run_id)}</div>"
    )


def _date(info: RunInfo) -> str:
    return safe(info.started[:16].replace("T", " "))


def _resume(row: Row) -> None:
    """Begin the job, or keep the sentence that says why not."""
    rules, info = policy.current(), row.info
    refused = rules.refuses(info.models, Settings(api_base=info.api_base), own_key=False)
    if refused is not None:
        st.session_state[_FAILED] = refused
        return
    try:
        runner.start(info.path, policy.visitor(), rules.limits._replace(most_each=rules.most_runs))
    except runner.CannotStart as error:
        st.session_state[_FAILED] = str(error)


def _delete(row: Row) -> None:
    """Delete the run, or keep the sentence that says why not."""
    try:
        library.delete_run(row.info.run_id)
    except RecordingError as error:
        st.session_state[_FAILED] = str(error)
    else:
        st.session_state[_CHOSEN] = None


@st.dialog("May be running elsewhere")
def _ask_before_resuming(row: Row, quiet: float) -> None:
    st.write(
        f"This run has no verdict yet, and its file was written to {quiet:.0f} s ago: it may still be running in "
        "another program. Two programs that write to one file spoil it."
    )
    with st.container(horizontal=True):
        if st.button("Wait", key="resume_not"):
            st.rerun()
        if st.button("It is not running: resume", type="primary", key="resume_yes", on_click=_resume, args=(row,)):
            st.rerun()


@st.dialog("Delete this run?")
def _ask_before_deleting(row: Row) -> None:
    st.html(
        f'<div class="svr-run"><div class="q">{safe(short(row.info.question, 200))}</div>'
        f'<div class="small">{_date(row.info)} UTC · {safe(row.info.run_id)}</div></div>'
    )
    st.write("The recording is deleted from the disk and cannot be brought back.")
    with st.container(horizontal=True):
        if st.button("Keep it", key="delete_not"):
            st.rerun()
        if st.button(
            "Delete",
            type="primary",
            icon=":material/delete:",
            key="delete_yes",
            on_click=_delete,
            args=(row,),
        ):
            st.rerun()


def jobs() -> None:
    """The runs that go on in the server, looked at every second while there are any, and how they ended.

    Above them the sentence on what could not be done just now.
    """
    if failed := st.session_state.pop(_FAILED, None):
        st.error(plain(failed), icon=":material/error:")
    shown = _shown()
    under_way = any(not job.done for job in shown)
    if shown:
        st.fragment(_jobs, run_every=1.0 if under_way else None)(under_way)


def _shown() -> list[runner.Job]:
    """The jobs that the visitor may see: at this computer all, elsewhere the visitor's own."""
    everyone = policy.current().library == "open"
    return [job for job in runner.jobs() if everyone or job.owner == policy.visitor()]


def _jobs(under_way: bool) -> None:
    now = _shown()
    if under_way and all(job.done for job in now):
        # the table is to show what came of them, and there is nothing more to look at every second
        st.rerun()
    for job in now:
        with st.container(border=True, horizontal=True, vertical_alignment="center"):
            st.html(f'{_CSS}<div class="svr-run">{_job_in_words(job)}</div>', width="stretch")
            if job.done:
                st.button("Dismiss", key=f"dismiss-{job.path}", on_click=runner.forget, args=(job,))
            else:
                st.button(
                    "Stop",
                    key=f"stop-{job.path}",
                    icon=":material/stop_circle:",
                    on_click=job.stop,
                    disabled=job.stopping,
                    help="End the run now with a vote over the answers so far",
                )


def _job_in_words(job: runner.Job) -> str:
    """A job in two lines of HTML."""
    if job.error is not None:
        end = f'<span class="bad">Not finished.</span> {safe(job.error)}'
    elif job.verdict is not None:
        reason, answer = job.verdict.reason.replace("_", " "), safe(short(job.verdict.answer, 200))
        end = f"Finished in {job.steps} steps, {reason}: {answer}"
    else:
        end = f"{'Stopping' if job.stopping else 'Running'} … step {job.steps}" if job.steps else "Starting …"
    return f"<b>{safe(short(job.question or job.run_id, 90))}</b><br>{end}"


__all__ = ["Row", "actions", "all_rows", "filtered", "how_to_begin", "jobs", "table"]
