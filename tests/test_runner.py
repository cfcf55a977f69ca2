"""Runs that begin in the server: steered from outside, watched while they go, and what faults make of them."""

from __future__ import annotations

import time

import pytest

from pages.components import runner
from svrmad_core import Problem, Settings, load, verify
from tests.fakes.provider import BEHAVIOURS

PROBLEM = Problem(question="Which number?", reference="42")
KEY = "sk-live-0123456789abcdefghijkl"


@pytest.fixture(autouse=True)
def no_jobs():
    """No test sees the jobs of another."""
    yield
    for job in runner.jobs():
        job.stop()
        until(lambda job=job: job.done)
        runner.forget(job)


def until(holds, seconds=60):
    """Wait until something holds."""
    end = time.time() + seconds
    while not holds():
        assert time.time() < end, "it never came to that"
        time.sleep(0.01)


def at(provider, *models):
    return [f"openai/{model}" for model in models or ("fake-ok",)], {"api_base": provider.base_url, "seed": 1}


def begin(tmp_path, models, settings, protocol="svr_mad", **more):
    return runner.begin(PROBLEM, protocol, models, Settings(**settings), folder=tmp_path, **more)


def test_a_new_run_is_named_at_once_and_written_to_its_end(tmp_path, provider):
    job = begin(tmp_path, *at(provider), api_key=KEY)
    assert job.path == tmp_path / f"{job.run_id}.jsonl"
    assert runner.named(job.run_id) is job
    assert job.question == PROBLEM.question
    until(lambda: job.done)
    written = load(job.path)
    assert job.error is None
    assert job.verdict == written.events[-1].verdict
    assert [e.seq for e in job.events] == [e.seq for e in written.events]
    assert verify(written) is None
    assert {r.headers["authorization"] for r in provider.requests} == {f"Bearer {KEY}"}
    assert KEY.encode() not in job.path.read_bytes()
    assert KEY not in repr(vars(job))


def test_nothing_is_asked_before_the_first_step_and_stop_keeps_everything(tmp_path, provider):
    job = begin(tmp_path, *at(provider), paused=True)
    until(lambda: job.events and job.events[-1].event == "paused")
    time.sleep(0.3)
    assert provider.requests == []
    job.step()
    until(lambda: sum(e.event == "answered" for e in job.events) == 6 and job.events[-1].event == "paused")
    assert len(provider.requests) == 6
    provider.latency = 0.5
    job.go_on()
    until(lambda: job.asking)
    (asking,) = job.asking
    assert (asking.round, len(asking.heard)) == (1, 1)
    assert asking.since == pytest.approx(time.time(), abs=5)
    job.stop()
    until(lambda: job.done)
    assert job.verdict.reason == "stopped"
    assert verify(load(job.path)) is None
    assert job.asking == []


def test_a_paired_run_asks_for_no_initial_answer_again(tmp_path, provider):
    first = begin(tmp_path, *at(provider))
    until(lambda: first.done)
    asked = len(provider.requests)
    models, settings = at(provider)
    parent = load(first.path)
    second = begin(tmp_path, models, settings, "all_to_all", parent=parent)
    until(lambda: second.done)
    started = second.events[0]
    assert (started.protocol, started.parent) == ("all_to_all", first.run_id)
    answers = [[e.turn.reply for e in job.events if e.event == "answered"] for job in (first, second)]
    assert sorted(answers[0]) == sorted(answers[1])
    assert len(provider.requests) - asked == second.events[-1].totals.calls - 6


def test_while_a_provider_limits_it_the_wait_is_told(tmp_path, provider):
    provider.retry_after = "1"
    job = begin(tmp_path, *at(provider, "fake-429-once"))
    until(lambda: any(asking.waits_until for asking in job.asking))
    (waiting,) = (asking for asking in job.asking if asking.waits_until)
    assert waiting.why == "rate_limit"
    assert 0 < waiting.waits_until - time.time() < 3
    until(lambda: job.done)
    assert job.error is None
    assert not any(e.event == "turn_failed" for e in job.events)


@pytest.mark.parametrize(
    ("model", "says"), [("fake-401", "key"), ("fake-402", "credit"), ("fake-404", "does not know")]
)
def test_one_faulty_model_silences_its_agents_and_the_debate_goes_on(tmp_path, provider, model, says):
    job = begin(tmp_path, *at(provider, "fake-ok", model))
    until(lambda: job.done)
    failed = {e.agent: e.message for e in job.events if e.event == "turn_failed"}
    assert set(failed) == {"A2", "A4", "A6"}
    assert all(says in message for message in failed.values())
    assert job.verdict.answer is not None
    assert (job.error, job.advice) == (None, None)


def test_where_all_fail_it_ends_and_says_what_to_do(tmp_path, provider):
    job = begin(tmp_path, *at(provider, "fake-401"), api_key=KEY)
    until(lambda: job.done)
    assert job.verdict.reason == "no_answer"
    assert "check the key you gave" in job.advice
    assert not load(job.path).interrupted


def test_what_cannot_begin_says_so_and_leaves_no_file(tmp_path):
    job = begin(tmp_path, ["simulated/hard", "openai/gpt-4o"], {})
    until(lambda: job.done)
    assert "cannot share a run" in job.error
    assert list(tmp_path.iterdir()) == []


def test_a_visitor_has_two_runs_at_once_and_all_together_four(tmp_path, provider):
    provider.latency = 20
    models, settings = at(provider)
    for owner in ("one", "one", "two", None):
        begin(tmp_path, models, settings, owner=owner)
    with pytest.raises(runner.CannotStart, match="4 runs are under way"):
        begin(tmp_path, models, settings, owner="three")
    runner.jobs()[-1].stop()
    until(lambda: runner.jobs()[-1].done)
    with pytest.raises(runner.CannotStart, match="You have 2 runs"):
        begin(tmp_path, models, settings, owner="one")
    begin(tmp_path, models, settings, owner="two")


def test_simulated_agents_take_their_time_if_asked_to(tmp_path):
    quick = begin(tmp_path, ["simulated/hard"], {"seed": 1})
    slow = begin(tmp_path, ["simulated/hard"], {"seed": 1}, pace=0.1)
    until(lambda: quick.done)
    until(lambda: slow.done)
    assert quick.verdict.answer == slow.verdict.answer
    spent = slow.events[-1].totals
    assert spent.seconds > 0.09 * spent.critical_path


def test_no_fault_of_a_provider_ends_a_debate_or_shows_a_key(tmp_path, provider):
    """Every behaviour of the fake provider, beside a model that answers."""
    limits = runner.Limits(most_runs=len(BEHAVIOURS), most_each=len(BEHAVIOURS))
    jobs = {}
    for name in BEHAVIOURS:
        models, settings = at(provider, "fake-ok", name)
        settings |= {"agents": 4, "timeout": 2, "round_mode": "parallel"}
        jobs[name] = begin(tmp_path / name, models, settings, api_key=KEY, owner="one", limits=limits)
    for name, job in jobs.items():
        until(lambda job=job: job.done, 120)
        assert job.error is None, name
        assert job.verdict.answer is not None, name
        assert verify(load(job.path)) is None, name
        assert KEY.encode() not in job.path.read_bytes(), name
        for event in job.events:
            if event.event == "turn_failed":
                assert "Traceback" not in event.message
                assert event.message.endswith(".")
                assert "\n" not in event.message
    kinds = {e.kind for job in jobs.values() for e in job.events if e.event == "turn_failed"}
    assert kinds >= {"auth", "not_found", "credit", "rate_limit", "timeout", "connection", "context_length"}
    assert kinds >= {"content_filter", "bad_reply", "server", "bad_request"}


def test_a_server_that_refuses_connections_is_a_sentence(tmp_path):
    job = begin(tmp_path, ["openai/any"], {"api_base": "http://127.0.0.1:9/v1", "agents": 2})
    until(lambda: job.done)
    assert job.verdict.reason == "no_answer"
    assert job.advice == "Nothing listens at http://127.0.0.1:9/v1: start the server or correct the api base."


def test_a_purse_holds_what_all_runs_of_a_visitor_cost(tmp_path, provider):
    limits = runner.Limits(purse=1.0)
    with pytest.raises(runner.CannotStart, match=r"1 USD in all, and 1.00 are left"):
        begin(tmp_path, ["simulated/hard"], {"max_cost": 1.5}, owner="purse", limits=limits)
    provider.latency = 20
    first = begin(tmp_path, ["simulated/hard"], {"max_cost": 0.8}, owner="purse", limits=limits, paused=True)
    with pytest.raises(runner.CannotStart, match=r"0.20 are left"):
        begin(tmp_path, ["simulated/hard"], {"max_cost": 0.3}, owner="purse", limits=limits)
    first.stop()
    until(lambda: first.done)
    # what it did not spend is left again
    begin(tmp_path, ["simulated/hard"], {"max_cost": 0.9}, owner="purse", limits=limits)


def test_a_hidden_run_has_a_name_that_cannot_be_guessed(tmp_path):
    job = begin(tmp_path, ["simulated/hard"], {}, hidden=True)
    assert len(job.run_id.rsplit("-", 1)[1]) == 24
