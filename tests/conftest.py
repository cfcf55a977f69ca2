"""Fixtures that several test modules share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.provider import FakeProvider


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """A real server that plays an OpenAI-compatible provider; a model's name says how it behaves."""
    with FakeProvider() as server:
        yield server
