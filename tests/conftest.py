"""Fixtures that several test modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.provider import FakeProvider


@pytest.fixture(autouse=True)
def no_local_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What listens on the machine that runs the tests is no part of them."""
    monkeypatch.setenv("SVRMAD_LOCAL_PORTS", "none")


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """A real server that plays an OpenAI-compatible provider; a model's name says how it behaves."""
    with FakeProvider() as server:
        yield server
