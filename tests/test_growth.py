"""The formulas of growth against the engine's own counts, for N from 2 to 50."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from svrmad_core import Settings, Turn, fold, run
from svrmad_core.growth import AGENTS, FORMULAS, Growth, growth, measured
from svrmad_core.protocols import PROTOCOLS
from tests.scripted import ScriptedPanel

IN_ROUNDS = [name for name in FORMULAS if name != "svr_mad"]


class Counting(ScriptedPanel):
    """Counts the replies in every prompt of a round as it is sent; the third message is the example."""

    read = 0

    async def ask(self, request: Any) -> Turn:
        if request.round:
            sent = request.messages()
            self.read += sum(m["content"].count("--- Solver") + (m["role"] == "assistant") for m in sent) - 1
        return await super().ask(request)


def made(protocol: str, n: int, rounds: int, answers: list[Any] | None = None, **settings: Any) -> list[Any]:
    """A debate in which nobody ever changes, agrees or is accepted."""
    chosen = Settings(agents=n, max_rounds=rounds, quorum=n + 1, tau=1.0, **settings)
    panel = Counting(answers or [str(i) for i in range(n)])

    async def collect() -> list[Any]:
        return [e async for e in run("Q?", protocol, panel, chosen)]

    events = asyncio.run(collect())
    assert measured(events).read == panel.read
    return events


def test_every_protocol_has_its_formulas():
    assert FORMULAS.keys() == PROTOCOLS.keys()


@pytest.mark.parametrize("n", AGENTS)
@pytest.mark.parametrize("protocol", IN_ROUNDS)
def test_the_formulas_are_the_counts_of_the_engine(protocol, n):
    rounds = 1 if protocol == "free_mad" else 2 if n <= 20 else 1
    events = made(protocol, n, rounds)
    assert measured(events) == growth(protocol, n, rounds)
    assert len(fold(events).links) == growth(protocol, n, rounds).links


@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("protocol", ["all_to_all", "sparse", "group_debate", "s2_mad", "sid_et"])
def test_contexts_grow_with_the_rounds(protocol, rounds):
    assert measured(made(protocol, 6, rounds)) == growth(protocol, 6, rounds)


@pytest.mark.parametrize("n", AGENTS)
def test_svr_mad_does_not_grow_with_the_agents(n):
    events = made("svr_mad", n, 2)
    found, bound = measured(events), growth("svr_mad", n, 2)
    assert all(a <= b for a, b in zip(found, bound, strict=True))
    if n > 6:
        # two rounds of three challengers each, all of whom one agent withstood
        assert found == bound == Growth(6, 12, 42)


def test_options_of_the_formulas():
    two = [str(i % 2) for i in range(8)]
    assert measured(made("s2_mad", 8, 2, two)) == growth("s2_mad", 8, 2, beliefs=2)
    sure = [(str(i), 0.95 if i < 3 else 0.5) for i in range(8)]
    assert measured(made("sid_et", 8, 2, sure)) == growth("sid_et", 8, 2, exits=3)
    assert measured(made("sparse", 8, 2, neighbours=4)) == growth("sparse", 8, 2, neighbours=4)
    assert measured(made("group_debate", 8, 2, group_size=4)) == growth("group_debate", 8, 2, group_size=4)


def test_with_memory_last_contexts_do_not_grow():
    assert measured(made("all_to_all", 6, 3, memory="last")) == Growth(90, 6, 6 * 6 * 3)
