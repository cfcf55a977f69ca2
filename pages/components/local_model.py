"""The project's own local model, started and stopped from the page; whoever sits at this computer may."""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import streamlit as st

from svrmad_core import available

from .look import plain

ROOT = Path(__file__).resolve().parents[2]
_WEIGHTS = ROOT / "local_model" / "weights" / "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
_SETUP = "python local_model/setup.py"


class LocalModel:
    """The process that serves the model; at most one, and it ends with this server.

    Attributes
    ----------
    error
        Why it ended by itself, in a sentence, or None.
    since
        When it was started, in seconds since the epoch.
    """

    def __init__(self) -> None:
        self.error: str | None = None
        self.since = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._said: Any = None
        self._lock = threading.Lock()
        atexit.register(self.stop)

    @property
    def under_way(self) -> bool:
        """Whether the process runs, ready or still loading."""
        with self._lock:
            process = self._process
            if process is not None and process.poll() is not None:
                self._said.seek(0)
                last = self._said.read().decode(errors="replace").strip().splitlines()
                self.error = f"The local model ended: {last[-1] if last else f'exit code {process.returncode}'}"
                self._process = process = None
            return process is not None

    def start(self) -> None:
        """Start it; ``ready`` tells when it answers."""
        if self.under_way:
            return
        with self._lock:
            self.error, self.since = None, time.time()
            self._said = tempfile.TemporaryFile()  # noqa: SIM115 - read when the process has ended
            command = [
                str(python()),
                str(ROOT / "local_model" / "serve.py"),
                "--port",
                str(port()),
                "--model",
                str(weights()),
            ]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said, env=_without_keys()
            )

    def stop(self) -> None:
        """End it and wait until it has ended."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


def _without_keys() -> dict[str, str]:
    """The environment without keys, which the model's process has no use for."""
    return {k: v for k, v in os.environ.items() if not k.upper().endswith(("_KEY", "_TOKEN", "_SECRET", "_PASSWORD"))}


def python() -> Path:
    """The Python that has what the model needs: ``SVRMAD_LOCAL_PYTHON``, else that of ``.venv-local``."""
    inside = "Scripts/python.exe" if sys.platform == "win32" else "bin/python"
    return Path(os.environ.get("SVRMAD_LOCAL_PYTHON") or ROOT / ".venv-local" / inside)


def port() -> int:
    """Where it listens on loopback: ``SVRMAD_LOCAL_PORT``, else 8080."""
    text = os.environ.get("SVRMAD_LOCAL_PORT", "")
    return int(text) if text.isdecimal() else 8080


def weights() -> Path:
    """The model's file: ``SVRMAD_LOCAL_WEIGHTS``, else where it is fetched to."""
    return Path(os.environ.get("SVRMAD_LOCAL_WEIGHTS") or _WEIGHTS)


def is_set_up() -> bool:
    """Whether it can be started."""
    return python().exists() and weights().is_file()


@st.cache_resource(show_spinner=False)
def the_model() -> LocalModel:
    """The one of this server."""
    return LocalModel()


def ready() -> available.Server | None:
    """The server at the model's port, if one answers."""
    found = available.local_servers([port()])
    return found[0] if found else None


def controls(on_ready: Any) -> None:
    """Start, progress while it loads, and stop; ``on_ready`` is told its server when it has begun to answer."""
    model = the_model()
    if model.under_way:
        _under_way(model, on_ready)
    elif model.error is not None:
        st.error(plain(model.error), icon=":material/error:")
    if model.under_way:
        return
    if ready() is not None:
        st.caption(f"A model answers at port {port()} and was started elsewhere.")
    elif is_set_up():
        st.button("Start the local model", icon=":material/memory:", on_click=model.start, width="stretch")
    else:
        st.caption(f"No local model is set up. One command does it: `{_SETUP}`")


def _under_way(model: LocalModel, on_ready: Any) -> None:
    """Progress until it answers; then a button that stops it."""
    server = ready()
    if server is None:
        st.fragment(_loading, run_every=1.0)(model)
    elif st.session_state.get("local_known") != model.since:
        st.session_state["local_known"] = model.since
        on_ready(server)
    else:
        st.caption(f"{plain(server.models[0])} is ready at port {port()}.")
    st.button("Stop the local model", icon=":material/stop:", on_click=model.stop, width="stretch")


def _loading(model: LocalModel) -> None:
    if not model.under_way or ready() is not None:
        st.rerun()
    seconds = time.time() - model.since
    # it usually takes a few seconds; the bar never says that it is done before it is
    st.progress(min(0.95, seconds / (seconds + 6)), f"Loading the model … {seconds:.0f} s")


__all__ = ["LocalModel", "controls", "is_set_up", "the_model"]
