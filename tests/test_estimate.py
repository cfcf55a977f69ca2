"""What a run will take is told before, and a run then takes no more and no less."""

from __future__ import annotations

import subprocess
import sys

import pytest

from svrmad_core import PROTOCOLS, Problem, Settings, load
from svrmad_core.cli import SAMPLES
from svrmad_core.estimate import estimate, prices_of

PROBLEM = Problem(question="What is 6 * 7?")
FREE = {"some/model": (0.0, 0.0)}


def made(protocol="svr_mad", parent=None, prices=FREE, **settings):
    return estimate(protocol, Settings(**settings), ["some/model"], PROBLEM, parent=parent, prices=prices)


@pytest.mark.parametrize(
    ("protocol", "calls", "links"),
    [
        ("svr_mad", (6, 24), (0, 18)),
        ("all_to_all", (6, 18), (0, 60)),
        ("self_consistency", (6, 6), (0, 0)),
        ("sparse", (6, 18), (0, 24)),
        ("group_debate", (6, 18), (0, 24)),
        ("s2_mad", (6, 18), (0, 60)),
        ("sid_et", (6, 18), (0, 60)),
        ("free_mad", (6, 12), (0, 30)),
        ("never heard of", (6, 18), (0, 60)),
    ],
)
def test_calls_and_links_are_those_of_the_method(protocol, calls, links):
    found = made(protocol)
    assert (found.calls, found.links) == (calls, links)
    assert found.tokens[0] <= found.tokens[1]
    assert found.seconds[0] <= found.seconds[1]


def test_the_settings_of_the_other_protocols_count():
    assert made("sparse", neighbours=4).links == (0, 48)
    assert made("group_debate", agents=4).links == (0, 8)
    assert made("group_debate", agents=9, max_rounds=1).links == (0, 18)
    # two groups of 3: 12 links, then 12 and a summary heard by each of 6, written in 2 calls
    assert made("group_debate", summaries=True).links == (0, 30)
    assert made("group_debate", summaries=True).calls == (6, 20)
    assert made("sid_et", exit_variant="gate_first").calls == (1, 18)
    assert made("free_mad", max_rounds=2).links == (0, 60)


def test_budgets_bound_the_high_end():
    assert made(max_links=5).links == (0, 5)
    assert made(max_rounds=2).links == (0, 6)
    assert made(max_tokens_total=5000).tokens[1] == 5000
    found = made(prices={"some/model": (1e-5, 1e-5)}, max_cost=0.02)
    assert found.cost[1] == 0.02
    assert made(prices={"some/model": (1e-5, 1e-5)}).cost[1] > 0.5


def test_parallel_rounds_take_less_time_and_no_more_calls():
    one, other = made(), made(round_mode="parallel")
    assert other.seconds[1] < one.seconds[1]
    assert other.calls == one.calls


def test_a_model_without_a_price_makes_the_money_unknown():
    assert made(prices={"some/model": None}).cost is None
    assert estimate("svr_mad", Settings(), ["simulated/hard"], PROBLEM).cost == (0.0, 0.0)
    found = prices_of(["openai/gpt-4o-mini", "openai/no-such-model", "no-such-provider/x"])
    assert found["openai/gpt-4o-mini"][0] > 0
    assert found["openai/no-such-model"] is None
    assert found["no-such-provider/x"] is None
    # whatever its name, at somebody's own server it costs what that costs
    assert prices_of(["openai/gpt-4o-mini"], "http://127.0.0.1:9/v1")["openai/gpt-4o-mini"] is None


def test_without_a_model_it_says_so():
    with pytest.raises(ValueError, match="No model is given"):
        estimate("svr_mad", Settings(), [], PROBLEM)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.jsonl")), ids=lambda p: p.stem)
def test_what_was_recorded_lies_in_the_range(path):
    recording = load(path)
    started, totals = recording.started, recording.events[-1].totals
    models = [a.model for a in started.agents]
    found = estimate(started.protocol, started.settings, models, started.problem, parent=recording)
    anew = totals.tokens - found.taken_over_tokens
    if found.taken_over_calls < len(started.agents):
        pytest.skip("the first agent's answer was final, so that there are no initial answers to begin from")
    assert found.links[0] <= totals.links <= found.links[1]
    assert found.calls[0] <= totals.calls - found.taken_over_calls <= found.calls[1]
    assert found.tokens[0] <= anew <= found.tokens[1]
    new = estimate(started.protocol, started.settings, models, started.problem)
    assert new.calls[0] <= totals.calls <= new.calls[1]
    assert new.links[0] <= totals.links <= new.links[1]
    assert new.tokens[0] / 2 <= totals.tokens <= new.tokens[1]


def test_every_protocol_of_the_registry_is_estimated():
    assert all(made(name).calls[0] == 6 for name in PROTOCOLS)


def test_simulated_agents_need_no_litellm():
    code = (
        "import sys; from svrmad_core import Problem, Settings; from svrmad_core.estimate import estimate; "
        "estimate('svr_mad', Settings(), ['simulated/hard'], Problem(question='Q?')); print('litellm' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
