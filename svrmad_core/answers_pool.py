"""One worker process for algebra, from any thread, killed and replaced when it takes too long."""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

SECONDS = 1.4
"""One comparison's computing time, once the worker is ready."""
START_SECONDS = 20.0
_SECRET_ENDINGS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")


class _Worker:
    """A running ``answers_worker`` and a thread that reads its lines."""

    def __init__(self) -> None:
        env = {k: v for k, v in os.environ.items() if not k.upper().endswith(_SECRET_ENDINGS)}
        self.process = subprocess.Popen(
            # as a file and with -P: neither the package nor its folder is imported, so it starts at once
            [sys.executable, "-P", str(Path(__file__).with_name("answers_worker.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            text=True,
            encoding="utf-8",
            bufsize=1,
        )
        self.ready = False
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True, name="answers-worker-reader").start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def wait_ready(self) -> bool:
        """Wait for the first line, which says that the imports are done."""
        if not self.ready:
            self.ready = self._line(START_SECONDS) is not None
        return self.ready

    def ask(self, a: str, b: str, seconds: float) -> bool | None:
        """True or False, or None if it took too long or died."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps([a, b]) + "\n")
            self.process.stdin.flush()
        except OSError:
            return None
        line = self._line(seconds)
        return None if line is None else line.strip() == "true"

    def _line(self, seconds: float) -> str | None:
        try:
            return self.lines.get(timeout=seconds)
        except queue.Empty:
            return None

    def died(self) -> bool:
        """Whether it ended by itself; its pipe closes a moment before its end can be seen."""
        try:
            self.process.wait(0.05)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                # what was not sent yet to the dead worker cannot be flushed
                pass


_lock = threading.Lock()
_worker: _Worker | None = None
_too_slow: set[str] = set()


def warm_up() -> None:
    """Start the worker in the background, so that the first comparison need not wait for its imports."""
    threading.Thread(target=_start, daemon=True, name="answers-warm-up").start()


def _start() -> _Worker:
    global _worker
    with _lock:
        if _worker is None or _worker.process.poll() is not None:
            _worker = _Worker()
        return _worker


def ready() -> bool:
    """Wait until the worker has started; its imports take about a second, once a process."""
    with _lock:
        return _ready_worker() is not None


def _ready_worker() -> _Worker | None:
    """The worker, ready to be asked; the lock must be held."""
    global _worker
    if _worker is None or _worker.process.poll() is not None:
        _worker = _Worker()
    if not _worker.wait_ready():
        _worker.kill()
        _worker = None
    return _worker


def algebra_agrees(a: str, b: str, seconds: float = SECONDS) -> bool:
    """Whether two single expressions are equal by algebra; False if that cannot be decided in time.

    The time runs once the worker is ready. A worker that overruns is killed and replaced at once.
    """
    global _worker
    with _lock:
        if a in _too_slow or b in _too_slow:
            return False
        worker = _ready_worker()
        if worker is None:
            return False
        result = worker.ask(a, b, seconds)
        if result is None and worker.died():
            # it was killed from outside, which says nothing about the answers
            worker.kill()
            _worker = None
            worker = _ready_worker()
            result = None if worker is None else worker.ask(a, b, seconds)
        if worker is None:
            return False
        if result is None:
            overran = worker.process.poll() is None and seconds >= SECONDS
            worker.kill()
            _worker = _Worker()
            if overran:
                # whichever of the two it was, the next comparison must not pay for it again
                _too_slow.add(max(a, b, key=len))
        return bool(result)


@atexit.register
def _close() -> None:
    if _worker is not None:
        _worker.kill()
