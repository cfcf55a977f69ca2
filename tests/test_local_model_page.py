"""The local model as the page starts and stops it: a real process, and why it may not start."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from pages.components.local_model import LocalModel, is_set_up
from tests.browser.conftest import free_port


@pytest.fixture
def model(monkeypatch, tmp_path):
    """A model whose Python is this one, which lacks what the model needs, or a script that stands still."""
    (tmp_path / "weights.gguf").write_bytes(b"GGUF")
    monkeypatch.setenv("SVRMAD_LOCAL_PYTHON", sys.executable)
    monkeypatch.setenv("SVRMAD_LOCAL_WEIGHTS", str(tmp_path / "weights.gguf"))
    monkeypatch.setenv("SVRMAD_LOCAL_PORT", str(free_port()))
    made = LocalModel()
    yield made
    made.stop()


def test_it_can_be_started_once_it_is_set_up(model, monkeypatch, tmp_path):
    assert is_set_up()
    monkeypatch.setenv("SVRMAD_LOCAL_WEIGHTS", str(tmp_path / "none.gguf"))
    assert not is_set_up()


def test_why_it_ended_is_a_sentence_and_it_can_be_started_again(model):
    for _ in range(2):
        model.start()
        end = time.time() + 30
        while model.under_way:
            assert time.time() < end
            time.sleep(0.05)
        assert model.error.startswith("The local model ended: ")
        assert "Traceback" not in model.error


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_stopping_ends_the_process_and_keys_do_not_reach_it(model, monkeypatch, tmp_path):
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\necho "$OPENAI_API_KEY$$" > {tmp_path}/told\nexec sleep 60\n')
    script.chmod(0o755)
    monkeypatch.setenv("SVRMAD_LOCAL_PYTHON", str(script))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-local-0123456789abcdef")
    model.start()
    while not (tmp_path / "told").exists() or not (tmp_path / "told").read_text().strip():
        time.sleep(0.02)
    pid = int((tmp_path / "told").read_text())
    assert model.under_way
    model.start()
    assert model.under_way
    model.stop()
    assert not model.under_way
    assert model.error is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)
