"""Which two runs stand side by side: a question, and two of the runs that begin from its same initial answers."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from svrmad_core.comparison import NotPaired, check_paired, families, root_of
from svrmad_core.protocols import VARIANTS
from svrmad_core.recording import Recording, RecordingError, RunInfo

from . import library
from .look import plain, short


class Pair(NamedTuple):
    """Two paired runs, and all runs that are paired with them."""

    one: Recording
    two: Recording
    family: list[RunInfo]
    """The root first; also those that are not finished."""


def known_runs() -> dict[str, RunInfo]:
    """All runs that this visitor may list."""
    return {info.run_id: info for shelf in library.shelves() for info in shelf.runs}


def method_title(info: RunInfo) -> str:
    """What a run is a run of."""
    return VARIANTS[info.method].title if info.method in VARIANTS else info.protocol


def newest(family: list[RunInfo]) -> dict[str, RunInfo]:
    """method -> the run that stands for it: the root, else the newest finished; in the order of ``VARIANTS``."""
    found: dict[str, RunInfo] = {}
    for info in sorted(family, key=lambda i: i.started):
        if info.verdict is not None and info.verdict.reason != "stopped":
            found[info.method] = info
    if family and family[0].verdict is not None:
        found[family[0].method] = family[0]
    order = list(VARIANTS)
    return dict(sorted(found.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order)))


def pair() -> Pair | None:
    """The pair in the link, else the first that tells most; says in a sentence why there is none.

    The link is the truth: choosing rewrites it.
    """
    known = known_runs()
    grouped = families(known.values())
    # one run alone can be compared too, once another protocol has replayed it
    roots = [r for r, members in grouped.items() if any(i.verdict is not None for i in members)]
    if not roots and "one" not in st.query_params:
        st.info("There is no finished run to compare yet. Ask a question on the page Live, or open the sample runs.")
        return None
    asked = st.query_params.get("one") or st.query_params.get("run")
    root = root_of(known[asked], known) if asked in known else asked or _first(grouped, roots)
    _questions(root, roots, grouped, known)
    family = grouped.get(root, [])
    one, two = _names(family)
    if one is None:
        st.error("There is no such run among the sample runs and your own.", icon=":material/error:")
        return None
    _methods(one, two, family)
    try:
        left = library.open_run(one)
        right = library.open_run(two or one)
        check_paired(left.events, right.events)
    except (RecordingError, NotPaired) as error:
        st.error(plain(str(error)), icon=":material/error:")
        return None
    return Pair(left, right, family)


def _first(grouped: dict[str, list[RunInfo]], roots: list[str]) -> str:
    """Where no link names a run: a survivor among the questions with most methods."""

    def weight(root: str) -> tuple[bool, int]:
        verdict = grouped[root][0].verdict
        return verdict is not None and verdict.reason == "accepted", len(newest(grouped[root]))

    return max(roots, key=weight)


def _names(family: list[RunInfo]) -> tuple[str | None, str | None]:
    """The runs of the left and of the right: those in the link; else SVR-MAD and its all-to-all."""
    methods = newest(family)
    one, two = st.query_params.get("one"), st.query_params.get("two")
    first = methods.get("svr_mad") or next(iter(methods.values()), None)
    if one is None and first is not None:
        one = first.run_id
    if two is None:
        others = [i for i in methods.values() if i.run_id != one]
        second = next((i for i in others if i.method == "all_to_all"), next(iter(others), None))
        two = second.run_id if second is not None else None
    return one, two


def _questions(root: str, roots: list[str], grouped: dict[str, list[RunInfo]], known: dict[str, RunInfo]) -> None:
    options = [root, *roots] if root not in roots else roots

    def line(name: str) -> str:
        members = grouped.get(name, [])
        if not members:
            return f"{short(name, 60)} (not in the lists)"
        first = members[0]
        mark = " · simulated" if first.simulated else ""
        count = len(newest(members))
        return f"{short(first.question, 80)} · {count} {'method' if count == 1 else 'methods'}{mark} · {name[:15]}"

    st.session_state["compared"] = root
    st.selectbox(
        "Question",
        options,
        key="compared",
        format_func=line,
        label_visibility="collapsed",
        on_change=lambda: st.query_params.from_dict({"one": _left(grouped[st.session_state["compared"]])}),
    )


def _left(family: list[RunInfo]) -> str:
    methods = newest(family)
    return (methods.get("svr_mad") or next(iter(methods.values()), family[0])).run_id


def _methods(one: str, two: str | None, family: list[RunInfo]) -> None:
    """Which method stands on the left and which on the right."""
    titles: dict[str, str] = {}
    for info in family:
        title = method_title(info) + ("" if info.verdict is not None else ", interrupted")
        titles[info.run_id] = f"{title} · {info.run_id}" if title in titles.values() else title
    for column, side, name in zip(st.columns(2), ("one", "two"), (one, two), strict=True):
        options = list(titles) if name in titles or name is None else [name, *titles]
        st.session_state[f"side_{side}"] = name
        column.selectbox(
            "On the left" if side == "one" else "On the right",
            options,
            **({"index": None} if name is None else {}),
            key=f"side_{side}",
            format_func=lambda run: titles.get(run, short(run, 50)),
            placeholder="Nothing to compare with yet",
            on_change=_put,
            args=(one, two, side),
        )


def _put(one: str, two: str | None, side: str) -> None:
    both = {"one": one, "two": two} | {side: st.session_state[f"side_{side}"]}
    st.query_params.update({name: run for name, run in both.items() if run})


__all__ = ["Pair", "known_runs", "method_title", "newest", "pair"]
