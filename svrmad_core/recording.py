"""Recordings: JSON Lines, one file ``<run_id>.jsonl`` a run, appended and flushed event by event."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from .answers import same_answer_fast
from .debate import Debate, fold
from .protocols import Answer, Challenge, Choose, Finish, Revise, Summarize, describe, protocol, variant_of, vote
from .records import EVENTS, SCHEMA, Kind, Problem, RunFinished, RunStarted, Verdict
from .signals import prior_of

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MAX_BYTES = 64 * 2**20
"""Larger files are refused: a run of 50 agents and 500 steps is about 2 MB."""
MAX_HEAD = 2**18
"""Bytes read at most from either end of a file for a list of runs."""
_ONE_READ = 2**14
"""Bytes of a first read; most runs are no longer."""
_SEQ = re.compile(rb'\s*\{\s*"seq"\s*:\s*(\d{1,9})\s*,')


class RecordingError(ValueError):
    """A file that is no recording we can read; one sentence, with the line number where there is one."""


@dataclass
class Recording:
    """A loaded recording.

    Attributes
    ----------
    events
        The events, validated and foldable.
    notices
        Sentences on what was not as it should be, but could be read.
    path
        Where it was loaded from, or None for bytes.
    good_bytes
        Length of the part of the file that was read; a truncated last line begins there.
    """

    events: list[Any]
    notices: list[str] = field(default_factory=list)
    path: Path | None = None
    good_bytes: int = 0

    @property
    def started(self) -> Any:
        return self.events[0]

    @property
    def run_id(self) -> str:
        return self.events[0].run_id

    @property
    def interrupted(self) -> bool:
        """True if the run never finished."""
        return self.events[-1].event != "run_finished"

    def fold(self, k: int | None = None) -> Debate:
        """The state after the first k events."""
        return fold(self.events, k)


class Recorder:
    """Appends events to ``<folder>/<run_id>.jsonl`` and flushes each.

    Parameters
    ----------
    path
        The file. A new run's must not exist yet.
    keep
        For resuming: the bytes of the file that hold whole events; what follows is cut off.

    Raises
    ------
    FileExistsError
        If the file exists and ``keep`` is None.
    """

    def __init__(self, path: Path, keep: int | None = None) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if keep is None:
            self._file = open(path, "xb")  # noqa: SIM115 - closed by close()
        else:
            self._file = open(path, "r+b")  # noqa: SIM115
            self._file.truncate(keep)
            self._file.seek(keep)
            if keep and not _ends_with_newline(path, keep):
                self._file.write(b"\n")

    def append(self, event: Any) -> None:
        """Write one event and flush it."""
        self._file.write(as_jsonl([event]))
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def as_jsonl(events: Sequence[Any]) -> bytes:
    """Events in the recorded format, a line each."""
    return b"".join(event.model_dump_json().encode() + b"\n" for event in events)


def _ends_with_newline(path: Path, size: int) -> bool:
    with open(path, "rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"


def runs_folder(out: str | Path | None = None) -> Path:
    """Where own runs are kept: ``out``, else the environment's SVRMAD_RUNS_DIR, else ``runs``."""
    return Path(out or os.environ.get("SVRMAD_RUNS_DIR") or "runs")


def new_run_id(protocol_name: str) -> str:
    """A name for a run: UTC time, protocol, and four random hex digits."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{protocol_name}-{secrets.token_hex(2)}"


def load(source: str | Path | bytes) -> Recording:
    """Read a recording.

    Parameters
    ----------
    source
        A path, or the bytes of an uploaded file.

    Returns
    -------
    Recording
        With notices for a byte-order mark, a truncated last line, or an interrupted run.

    Raises
    ------
    RecordingError
        If it is no recording, a line is broken, an event is unknown or cannot follow, or the schema is newer
        than this program's. One sentence, with the line number.
    """
    path = None if isinstance(source, bytes) else Path(source)
    data = _read(path) if path is not None else source
    assert isinstance(data, bytes)
    if len(data) > MAX_BYTES:
        raise RecordingError(f"The file is larger than {MAX_BYTES // 2**20} MB; no recording is that large.")
    recording = Recording(events=[], path=path)
    start = 0
    if data.startswith(b"\xef\xbb\xbf"):
        recording.notices.append("The file begins with a byte-order mark, which was skipped.")
        start = 3
    debate: Debate | None = None
    lines = data[start:].split(b"\n")
    for number, line in enumerate(lines, 1):
        end = min(start + len(line) + 1, len(data))
        if line.strip():
            last = number == len(lines) or not any(rest.strip() for rest in lines[number:])
            try:
                event = _event(line, number, len(recording.events))
            except _Truncated:
                if not last or number == 1:
                    raise RecordingError(
                        f"Line {number} is not JSON; this is not a recording."
                        if number == 1
                        else f"Line {number} is broken: it is not a whole JSON object."
                    ) from None
                recording.notices.append(f"The last line ({number}) is cut off and was left out.")
                break
            try:
                debate = fold([event]) if debate is None else debate.apply(event)
            except ValueError as error:
                raise RecordingError(f"Line {number} cannot follow: {error}.") from None
            recording.events.append(event)
        recording.good_bytes = start = end
    if not recording.events:
        raise RecordingError("The file is empty; it holds no recording.")
    if recording.interrupted:
        recording.notices.append("The run was interrupted: it has no verdict yet, and can be resumed.")
    return recording


class _Truncated(Exception):
    """A line that is not JSON: cut off if it is the last."""


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_BYTES:
            return b"\0" * (MAX_BYTES + 1)
        return path.read_bytes()
    except FileNotFoundError:
        raise RecordingError(f"There is no recording {path.name!r}.") from None
    except IsADirectoryError:
        raise RecordingError(f"{path.name!r} is a folder, not a recording.") from None
    except OSError as error:
        raise RecordingError(f"{path.name!r} cannot be read: {error.strerror}.") from None


def _event(line: bytes, number: int, seq: int) -> Any:
    """Validate one line."""
    try:
        raw = json.loads(line)
    except (ValueError, RecursionError):
        raise _Truncated from None
    if not isinstance(raw, dict) or "event" not in raw:
        raise RecordingError(f"Line {number} is no event of a recording: it has no field 'event'.")
    name = raw["event"]
    if number == 1 or seq == 0:
        if name != "run_started":
            raise RecordingError(f"Line {number} should be run_started; this is not the beginning of a recording.")
        schema = raw.get("schema")
        if isinstance(schema, int) and schema > SCHEMA:
            raise RecordingError(
                f"Line {number}: the recording has schema {schema}, and this program reads up to {SCHEMA}; "
                "update the program."
            )
    try:
        event = EVENTS.validate_python(raw)
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "union_tag_invalid":
            shown = str(name)[:40]
            raise RecordingError(f"Line {number}: unknown event {shown!r}; it may come from a newer program.") from None
        where = ".".join(str(p) for p in first["loc"][1:]) or "event"
        raise RecordingError(f"Line {number} ({str(name)[:40]}): {where}: {first['msg']}.") from None
    if event.seq != seq:
        raise RecordingError(f"Line {number}: event number {event.seq} where {seq} should be.")
    return event


@dataclass(frozen=True)
class RunInfo:
    """What a list of runs shows, read from the head and the tail of a file."""

    run_id: str
    path: Path
    question: str
    protocol: str
    models: tuple[str, ...]
    agents: int
    simulated: bool
    parent: str | None
    started: str
    verdict: Any = None
    totals: Any = None
    """None for both: interrupted, or still running."""
    kind: Kind = "math"
    reference: str | None = None
    right: bool | None = None
    """Whether the verdict's answer is the reference; None: no reference, no verdict yet, or only algebra could tell."""
    api_base: str | None = None
    """Where the models are served; None: at their providers."""
    steps: int | None = None
    """Whole events in the file; None where its last line does not tell at once."""
    method: str = ""
    """The protocol, or ``protocol:option`` where its settings make it another method: a key of ``VARIANTS``."""

    @property
    def interrupted(self) -> bool:
        """True if the run has no verdict: it broke off, or is still running."""
        return self.verdict is None


_seen: dict[str, dict[str, tuple[tuple[int, int], RunInfo | None]]] = {}
"""By folder and file name: (time of change in nanoseconds, size), and what was read then."""
_seen_lock = threading.Lock()


def list_runs(folder: Path) -> list[RunInfo]:
    """The recordings of a folder, newest first; files that are none are left out.

    A file is read again only when its time or its size has changed: one new run in a folder of thousands costs one
    file. A folder that is not there has no runs.
    """
    where = os.path.abspath(folder)
    with _seen_lock:
        known, now = _seen.get(where, {}), {}
        for entry, stamp in _files(folder):
            before = known.get(entry.name)
            unchanged = before is not None and before[0] == stamp
            now[entry.name] = before if unchanged else (stamp, read_info(Path(entry.path)))
        _seen[where] = now
    return sorted((info for _, info in now.values() if info), key=lambda info: info.started, reverse=True)


def _files(folder: Path) -> Iterator[tuple[os.DirEntry[str], tuple[int, int]]]:
    """The files of a folder that are named as a recording is, each with its stamp."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        stem, ending = os.path.splitext(entry.name)
        try:
            # a pipe that has such a name would block whoever opens it
            if ending == ".jsonl" and RUN_ID.fullmatch(stem) and entry.is_file():
                status = entry.stat()
                yield entry, (status.st_mtime_ns, status.st_size)
        except OSError:
            continue


def read_info(path: Path) -> RunInfo | None:
    """The first and the last line of a recording, or None if it is none or its name is not its run's."""
    try:
        head, tail, whole = _ends(path)
        started = RunStarted.model_validate_json(head.removeprefix(b"\xef\xbb\xbf"))
    except (OSError, ValueError):
        return None
    if started.run_id != path.stem or started.schema_ > SCHEMA:
        return None
    finished = _finished(tail)
    verdict = finished.verdict if finished else None
    return RunInfo(
        run_id=started.run_id,
        path=path,
        question=started.problem.question,
        protocol=started.protocol,
        models=tuple(dict.fromkeys(a.model for a in started.agents)),
        agents=len(started.agents),
        simulated=started.simulated,
        parent=started.parent,
        started=started.at,
        verdict=verdict,
        totals=finished.totals if finished else None,
        kind=started.problem.kind,
        reference=started.problem.reference,
        right=_is_right(started.problem, verdict),
        api_base=started.settings.api_base,
        steps=_steps(tail, whole),
        method=variant_of(started.protocol, started.settings),
    )


def _ends(path: Path) -> tuple[bytes, bytes, bool]:
    """The first and the last line of a file, and whether the last one's end is written too."""
    # unbuffered: most runs are small enough for one read, and thousands of files are opened
    with open(path, "rb", buffering=0) as file:
        head = tail = file.read(_ONE_READ)
        end = os.fstat(file.fileno()).st_size
        if end > len(head):
            if b"\n" not in head:
                head += file.read(MAX_HEAD)
            for size in (_ONE_READ, MAX_HEAD):
                file.seek(max(0, end - size))
                tail = file.read(size)
                if b"\n" in tail.rstrip():
                    break
    return head.partition(b"\n")[0], tail.rstrip().rpartition(b"\n")[2], tail.endswith(b"\n")


def _finished(line: bytes) -> RunFinished | None:
    """The last event of a finished run, or None if the line is another."""
    if b'"run_finished"' not in line[:200]:
        return None
    try:
        return RunFinished.model_validate_json(line)
    except ValueError:
        return None


def _steps(line: bytes, whole: bool) -> int | None:
    """How many whole events a file holds, by the number that begins its last line."""
    begun = _SEQ.match(line)
    if begun is None:
        return None
    if not whole:
        try:
            json.loads(line)
        except (ValueError, RecursionError):
            return int(begun[1])
    return int(begun[1]) + 1


def _is_right(problem: Problem, verdict: Verdict | None) -> bool | None:
    if problem.reference is None or verdict is None:
        return None
    if verdict.answer is None:
        # who stopped a run before it had an answer did not get a wrong one
        return None if verdict.reason == "stopped" else False
    return same_answer_fast(verdict.answer, problem.reference, problem.kind)


@dataclass(frozen=True)
class Departure:
    """Where a recording departs from what its protocol decides."""

    seq: int
    message: str


def verify(recording: Recording | Sequence[Any]) -> Departure | None:
    """Re-decide every step with the protocol.

    Parameters
    ----------
    recording
        A recording or its events.

    Returns
    -------
    Departure or None
        The first event that the protocol would not have decided, or None.
    """
    events = recording.events if isinstance(recording, Recording) else list(recording)
    try:
        next_step = protocol(events[0].protocol).next_step
    except ValueError as error:
        return Departure(0, str(error))
    debate = fold(events[:1])
    for event in events[1:]:
        if event.event not in ("paused", "resumed"):
            wrong = _departs(event, next_step(debate), debate)
            if wrong is not None:
                return Departure(event.seq, wrong)
        try:
            debate.apply(event)
        except ValueError as error:
            return Departure(event.seq, str(error))
    return None


def _departs(event: Any, step: Any, debate: Debate) -> str | None:
    """Why an event is not what the step asks for, or None."""
    expected = describe(step)
    match event.event:
        case "answered":
            if not (isinstance(step, Answer) and event.agent in step.agents):
                return f"{event.agent} answers, but the protocol would {expected}"
            prior, signal = prior_of(event.turn, debate.settings.prior)
            if (event.prior_signal, round(event.prior, 9)) != (signal, round(prior, 9)):
                return f"the prior of {event.agent} is {prior:.4f} by {signal}, not {event.prior:.4f}"
        case "receiver_chosen":
            same = isinstance(step, Choose) and (event.round, event.receiver, tuple(event.challengers)) == (
                step.round,
                step.receiver,
                step.challengers,
            )
            if not same:
                return (
                    f"{event.receiver} is challenged by {', '.join(event.challengers) or 'nobody'}, "
                    f"but the protocol would {expected}"
                )
            if [_rounded(row) for row in event.ranking] != [_rounded(row) for row in step.ranking]:
                return "the ranking is not the protocol's"
        case "debated":
            asked = isinstance(step, Challenge) and step.receiver == event.receiver
            if not (asked and event.round == step.round and event.challenger in step.challengers):
                return f"{event.receiver} hears {event.challenger}, but the protocol would {expected}"
        case "revised":
            asks = step.asks if isinstance(step, Revise) and step.round == event.round else ()
            heard = (event.agent, tuple(event.heard), tuple(event.summaries))
            if heard not in [(a.agent, a.heard, a.summaries) for a in asks]:
                return f"{event.agent} hears {', '.join(event.heard)}, but the protocol would {expected}"
        case "summarized":
            asks = step.asks if isinstance(step, Summarize) and step.round == event.round else ()
            if (event.agent, tuple(event.heard)) not in [(a.agent, a.heard) for a in asks]:
                return f"{event.agent} sums up {', '.join(event.heard)}, but the protocol would {expected}"
        case "turn_failed":
            if event.summary is not isinstance(step, Summarize) or (event.agent, tuple(event.heard)) not in _asked(
                step
            ):
                return f"a turn of {event.agent} fails, but the protocol would {expected}"
        case "run_finished":
            final = vote(debate).verdict.model_copy(update={"reason": "stopped"})
            allowed = [final] if event.verdict.reason == "stopped" else []
            if isinstance(step, Finish):
                allowed.append(step.verdict)
            if not any(_same_verdict(event.verdict, v) for v in allowed):
                found = f"{event.verdict.answer!r} ({event.verdict.reason})"
                return f"the verdict is {found}, but the protocol would {expected}"
    return None


def _rounded(row: Sequence[Any]) -> tuple[str, float, float]:
    return row[0], round(row[1], 9), round(row[2], 9)


def _same_verdict(a: Any, b: Any) -> bool:
    return (a.answer, a.belief, a.reason, a.agent, a.votes) == (
        b.answer,
        b.belief,
        b.reason,
        b.agent,
        b.votes,
    )


def _asked(step: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    match step:
        case Answer(agents):
            yield from ((name, ()) for name in agents)
        case Challenge(_, receiver, challengers):
            yield from ((receiver, (c,)) for c in challengers)
        case Revise(_, asks) | Summarize(_, asks):
            yield from ((a.agent, a.heard) for a in asks)
