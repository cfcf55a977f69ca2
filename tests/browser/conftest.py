"""A real Chromium and a real Streamlit server."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[..., str]]:
    """Start a Streamlit script with these environment variables; returns its address."""
    started: list[subprocess.Popen[bytes]] = []

    def start(script: Path = ROOT / "app.py", **environment: str) -> str:
        port = free_port()
        command = [sys.executable, "-m", "streamlit", "run", str(script), "--server.port", str(port)]
        command += ["--server.headless", "true", "--server.address", "127.0.0.1", "--server.fileWatcherType", "none"]
        # what listens on the machine that runs the tests is no part of them
        env = {**os.environ, "SVRMAD_LOCAL_PORTS": "none", **environment}
        process = subprocess.Popen(command, cwd=script.parent, env=env, stdout=subprocess.DEVNULL)
        started.append(process)
        address = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(f"{address}/_stcore/health", timeout=1)
                return address
            except OSError:
                time.sleep(0.2)
        raise RuntimeError("Streamlit did not start")

    # for a test that kills a server
    start.started = started  # type: ignore[attr-defined]
    yield start
    for process in started:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    """One browser a module, since Playwright holds the event loop; without one tests are skipped, never in CI."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing: apt install chromium")
        pytest.skip("Chromium is missing: apt install chromium, or name one in the variable CHROMIUM")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium):
    """A fresh window; the test fails if the page logs an error of its own."""
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    window = context.new_page()
    window.set_default_timeout(60_000)
    errors: list[str] = []
    window.on("pageerror", lambda error: errors.append(str(error)))
    yield window
    context.close()
    assert errors == []
