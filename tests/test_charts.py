"""The pictures of the Compare page as data."""

from __future__ import annotations

import asyncio

import pytest

from pages.components import charts, twins
from pages.components.film import still
from pages.components.look import LIGHT
from svrmad_core.comparison import compare, course
from tests.scripted import debate


@pytest.fixture(scope="module")
def pair():
    _, one = asyncio.run(debate(["1", "2", "3"], tau=1.0, max_rounds=2))
    _, two = asyncio.run(debate(["1", "2", "3"], protocol="all_to_all"))
    return one, two


def test_stops_by_round_are_the_rounds_of_the_longer_run(pair):
    one, two = map(course, pair)
    places = twins.stops(one, two, "round")
    assert [s.value for s in places] == [0, 1, 2]
    assert (places[-1].one, places[-1].two) == (len(pair[0]), len(pair[1]))


def test_stops_by_tokens_are_every_sum_that_either_has_spent(pair):
    one, two = map(course, pair)
    values = [s.value for s in twins.stops(one, two, "tokens")]
    assert values == sorted(set(values))
    assert {p.tokens for p in (*one, *two)} == set(values)


def test_what_a_run_has_at_each_step(pair):
    told = twins.standing(pair[1])
    assert told[0] == {"had": "nothing yet", "used": "0 tokens · 0 links"}
    assert told[3] == {"had": "1 × 1 · 2 × 1 · 3 × 1", "used": "450 tokens · 0 links"}
    assert told[-1] == {"had": "vote: 1", "used": "1,350 tokens · 12 links"}


@pytest.mark.parametrize("what", charts.COURSES)
def test_the_dots_of_a_course_stand_where_the_cursor_is(pair, what):
    one, two = map(course, pair)
    places = twins.stops(one, two, "tokens")
    film = charts.courses(one, two, places, ("SVR-MAD", "All-to-all"), what, LIGHT)
    assert film.steps == len(places)
    last = {t["name"]: t for t in still(film, film.steps)["data"]}
    expected = {"tokens": (one[-1].tokens, two[-1].tokens), "links": (one[-1].links, two[-1].links)}
    if what in expected:
        assert (last["cursor 0"]["y"], last["cursor 1"]["y"]) == tuple([v] for v in expected[what])
    # a budget of nothing has bought no call
    first = {t["name"]: t for t in still(film, 1)["data"]}
    assert first["cursor 0"]["y"] == []


def test_methods_of_one_verdict_stand_together_and_the_right_one_first_once_revealed(pair):
    rows = [r.__class__(**{**r.as_dict(), "right": r.method == "all_to_all"}) for r in compare(list(pair))]
    hidden = still(charts.methods(rows, False, LIGHT), 1)["data"]
    revealed = still(charts.methods(rows, True, LIGHT), 1)["data"]
    texts = {t["name"]: t.get("text", []) for t in revealed}
    assert all("right" not in text for t in hidden for text in t.get("text", []))
    assert texts["answers"][0].startswith("<b>✓ right: ")
    assert texts["methods"][0].startswith("All-to-all")


def test_growth_marks_n_and_shows_what_was_measured():
    seen = [charts.Seen("all_to_all", 4, 24, "a run"), charts.Seen("unknown", 4, 24, "no sign for it")]
    film = charts.grown({"svr_mad": "SVR-MAD", "all_to_all": "All-to-all"}, 6, 2, "links", seen, LIGHT)
    data = {t["name"]: t for t in still(film, 1)["data"]}
    assert (data["all_to_all at N"]["x"], data["all_to_all at N"]["y"]) == ([6], [60])
    assert (data["measured"]["x"], data["measured"]["y"]) == ([4], [24])
