"""Which runs there are: the sample runs, the own runs, and uploaded files."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from svrmad_core.protocols import VARIANTS
from svrmad_core.recording import (
    RUN_ID,
    Recording,
    RecordingError,
    RunInfo,
    as_jsonl,
    list_runs,
    load,
    runs_folder,
)
from svrmad_core.records import RunStarted

from . import policy, runner
from .look import short

SAMPLES = Path(__file__).resolve().parents[2] / "sample_runs"
UPLOAD_PREFIX = "upload-"
_MOST_UPLOADS = 32
_NEWEST = 50
"""Own runs that the box of runs offers."""


class Shelf(NamedTuple):
    """The runs of one folder."""

    title: str
    runs: list[RunInfo]


def shelves() -> list[Shelf]:
    """Sample runs first, by name; then own runs, newest first: in a private library those of this visitor only."""
    found = _all_shelves()
    if policy.current().library != "private":
        return found
    me = policy.visitor()
    return [
        shelf if shelf.title == "sample" else Shelf("own", [r for r in shelf.runs if runner.owner_of(r.run_id) == me])
        for shelf in found
    ]


def _all_shelves() -> list[Shelf]:
    # sample runs are named in the order they are best looked at
    found = [Shelf("sample", sorted(list_runs(SAMPLES), key=lambda r: r.run_id))]
    if runs_folder().resolve() != SAMPLES:
        found.append(Shelf("own", list_runs(runs_folder())))
    return found


def open_run(run_id: str) -> Recording:
    """The recording that a link names.

    Raises
    ------
    RecordingError
        If the name is not a run's (a path, say), or there is no such run; one sentence.
    """
    if not RUN_ID.fullmatch(run_id):
        raise RecordingError("The link does not name a run: a run's name has only letters, digits, '.', '_' and '-'.")
    if run_id.startswith(UPLOAD_PREFIX):
        data = _uploads().get(run_id)
        if data is None:
            raise RecordingError("That uploaded file is no longer here: uploads are kept in memory. Upload it again.")
        return _parsed(data)
    for folder in (SAMPLES, runs_folder()):
        path = folder / f"{run_id}.jsonl"
        if path.is_file():
            return _loaded(str(path), path.stat().st_mtime_ns)
    raise RecordingError(f"There is no run named {short(run_id, 60)} among the sample runs and your own.")


@st.cache_resource(max_entries=32, show_spinner=False)
def _loaded(path: str, stamp: int) -> Recording:
    return load(path)


@st.cache_resource(max_entries=_MOST_UPLOADS, show_spinner=False)
def _parsed(data: bytes) -> Recording:
    return load(data)


@st.cache_resource(show_spinner=False)
def _uploads() -> OrderedDict[str, bytes]:
    return OrderedDict()


def delete_run(run_id: str) -> None:
    """Delete the file of an own run.

    Raises
    ------
    RecordingError
        If the name is not a run's (a path, say), the run is a sample run or not there, or its file cannot be
        deleted; one sentence.
    """
    if not RUN_ID.fullmatch(run_id):
        raise RecordingError("That does not name a run, so nothing was deleted.")
    if policy.current().library != "open":
        raise RecordingError("Runs cannot be deleted here: whoever runs this app has made its library read-only.")
    folder = runs_folder().resolve()
    path = folder / f"{run_id}.jsonl"
    if folder == SAMPLES:
        raise RecordingError("Sample runs cannot be deleted here.")
    if not path.is_file():
        raise RecordingError(f"There is no run named {short(run_id, 60)} among your own; it may be deleted already.")
    try:
        path.unlink()
    except OSError as error:
        raise RecordingError(f"The run {short(run_id, 60)} cannot be deleted: {error.strerror}.") from None


def rename_run(run_id: str, name: str) -> str:
    """Give an own run another name, which is its file's and its link's; paired runs then name that as their parent.

    Parameters
    ----------
    name
        Spaces become hyphens; what a run's name cannot hold is left out.

    Returns
    -------
    str
        The name it has now.

    Raises
    ------
    RecordingError
        If there is no such own run, the name is none or taken, or the file cannot be written; one sentence.
    """
    wanted = re.sub(r"[^A-Za-z0-9._-]", "", re.sub(r"\s+", "-", name.strip())).lstrip("._-")[:80]
    if not RUN_ID.fullmatch(wanted) or wanted.startswith(UPLOAD_PREFIX):
        raise RecordingError("That is no name for a run: use letters, digits, '.', '_' and '-'.")
    folder = runs_folder().resolve()
    path, target = folder / f"{run_id}.jsonl", folder / f"{wanted}.jsonl"
    if not RUN_ID.fullmatch(run_id) or folder == SAMPLES or not path.is_file():
        raise RecordingError("Only a run of your own can be renamed.")
    if target.exists() or (SAMPLES / target.name).exists():
        raise RecordingError(f"There is a run named {wanted} already: choose another name.")
    children = [info.path for info in list_runs(folder) if info.parent == run_id]
    try:
        _rewrite(path, target, {"run_id": wanted})
        path.unlink()
        for child in children:
            _rewrite(child, child, {"parent": wanted})
    except OSError as error:
        raise RecordingError(f"The run cannot be renamed: {error.strerror}.") from None
    return wanted


def _rewrite(path: Path, target: Path, update: dict[str, str]) -> None:
    """Write a recording with another first event; the file appears whole or not at all."""
    head, _, rest = path.read_bytes().partition(b"\n")
    first = RunStarted.model_validate_json(head).model_copy(update=update)
    partial = target.with_suffix(".partial")
    partial.write_bytes(as_jsonl([first]) + rest)
    partial.replace(target)


def keep_upload(data: bytes) -> str:
    """Check an uploaded file, keep it in the server's memory, and return the name a link can use.

    Raises
    ------
    RecordingError
        If it is no recording.
    """
    _parsed(data)
    name = UPLOAD_PREFIX + hashlib.sha256(data).hexdigest()[:20]
    uploads = _uploads()
    uploads[name] = data
    while len(uploads) > _MOST_UPLOADS:
        uploads.popitem(last=False)
    return name


@st.cache_data(ttl=10, max_entries=64, show_spinner=False)
def paired_all_to_all(run_id: str) -> RunInfo | None:
    """The newest all-to-all replay of a run's initial answers, if there is one."""
    for shelf in _all_shelves():
        for info in shelf.runs:
            if info.parent == run_id and info.protocol == "all_to_all" and info.totals is not None:
                return info
    return None


def title(info: RunInfo) -> str:
    """One line for a run in a list."""
    protocol = VARIANTS[info.method].title if info.method in VARIANTS else info.protocol
    end = info.verdict.reason.replace("_", " ") if info.verdict else "interrupted"
    mark = " · simulated" if info.simulated else ""
    return f"{short(info.question, 60)} · {protocol} · {end} · {info.started[:16].replace('T', ' ')}{mark}"


def _titles(options: list[str], known: dict[str, RunInfo]) -> dict[str, str]:
    """A line for each run; the box tells options apart by their lines, so no two may be the same."""
    titles: dict[str, str] = {}
    for run in options:
        line = title(known[run]) if run in known else f"{short(run, 60)} (not in the lists)"
        titles[run] = f"{line} · {run}" if line in titles.values() else line
    return titles


def _first_to_show(known: dict[str, RunInfo]) -> str | None:
    """Where no link names a run: the first in which an agent survived, since there is most to see."""
    accepted = (name for name, info in known.items() if info.verdict and info.verdict.reason == "accepted")
    return next(accepted, next(iter(known), None))


def run_picker() -> str | None:
    """Choose a run, or upload one; returns the run that the link names, else the first, or None if there is none.

    The link is the truth: choosing rewrites it, and the box shows what it says.
    """
    shelf_runs = shelves()
    known = {info.run_id: info for shelf in shelf_runs for info in shelf.runs}
    # a box of thousands of lines takes seconds to send, and nobody scrolls through it
    options = list(dict.fromkeys(info.run_id for shelf in shelf_runs for info in shelf.runs[: _most_listed(shelf)]))
    left, right = st.columns([5, 1], vertical_alignment="bottom")
    with right.popover("Open a file", icon=":material/upload_file:", width="stretch"):
        _upload()
    current = st.query_params.get("run") or _first_to_show(known)
    if current is None:
        return None
    if current not in options:
        options.insert(0, current)
    titles = _titles(options, known)
    st.session_state["chosen_run"] = current
    left.selectbox(
        "Run",
        options,
        key="chosen_run",
        format_func=titles.__getitem__,
        on_change=lambda: st.query_params.from_dict({"run": st.session_state["chosen_run"]}),
        label_visibility="collapsed",
    )
    for shelf in shelf_runs:
        if len(shelf.runs) > _most_listed(shelf):
            st.page_link(
                "pages/runs.py",
                label=f"The {_NEWEST} newest of {len(shelf.runs):,} own runs are listed; all are on the page Runs",
                icon=":material/folder_open:",
            )
    return current


def _most_listed(shelf: Shelf) -> int:
    """How many runs of a shelf the box offers."""
    return _NEWEST if shelf.title == "own" else len(shelf.runs)


def _upload() -> None:
    """The upload box; a good file is kept and put into the link."""

    def take() -> None:
        file = st.session_state["upload"]
        if file is None:
            return
        try:
            st.query_params.from_dict({"run": keep_upload(file.getvalue())})
        except RecordingError as error:
            st.session_state["upload_error"] = str(error)

    st.file_uploader("A recording (.jsonl)", type=["jsonl"], key="upload", on_change=take)
    if error := st.session_state.pop("upload_error", None):
        st.error(error, icon=":material/error:")


__all__ = [
    "Shelf",
    "delete_run",
    "keep_upload",
    "open_run",
    "paired_all_to_all",
    "rename_run",
    "run_picker",
    "shelves",
    "title",
]
