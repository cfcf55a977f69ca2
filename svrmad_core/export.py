"""A recording in other programs' formats: CSV tables, GraphML, JSON Lines; and a figure as PNG or SVG.

No page is needed for any of them. pandas, NetworkX and Kaleido are imported only when used.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import tables
from .debate import Debate, fold
from .recording import Recording, as_jsonl

if TYPE_CHECKING:
    import networkx as nx
    from pandas import DataFrame

NO_BROWSER = (
    "PNG and SVG need Google Chrome or Chromium on this machine: install one (Debian: apt install chromium), or name "
    "it in the variable BROWSER_PATH; on the Replay page the browser you look with makes them."
)
TIMEOUT = 60.0
"""Seconds for starting the browser and drawing one picture."""
BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser")
_CLOSING = 3.0
"""Seconds for the browser to leave by itself, before it is ended."""
_NOWHERE = "127.0.0.1:9"
"""The browser's proxy, where nobody listens: all it draws is on this machine, and nothing may leave it."""

_FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 forbids, and the carriage return, which its readers turn into a newline."""
_OUTCOMES = {True: "retained", False: "changed", None: "void"}


class NoBrowser(Exception):
    """No picture was drawn: there is no browser here, or it does not start or answer. It says what to do."""


# -- tables --------------------------------------------------------------------------------------------


def to_csv(events: Sequence[Any], out: Path) -> list[Path]:
    """Write the tables of a run as CSV files: turns, scores, agents, links (see ``tables``).

    UTF-8 with a byte-order mark, so that Excel reads it. A text that a spreadsheet would run as a formula gets a
    leading apostrophe; numbers stay numbers.

    Parameters
    ----------
    events
        The events of a run.
    out
        A name ending in ``.zip``: one file with all four in it. Else a folder, made if missing.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if out.suffix.lower() == ".zip":
        out.write_bytes(csv_zip(events))
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, data in _csv_files(events).items():
        (out / name).write_bytes(data)
        written.append(out / name)
    return written


def csv_zip(events: Sequence[Any]) -> bytes:
    """The tables of a run, as ``to_csv`` writes them, in one zip file."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in _csv_files(events).items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _csv_files(events: Sequence[Any]) -> dict[str, bytes]:
    return {
        "turns.csv": _csv(tables.turns(events)),
        "scores.csv": _csv(tables.scores(events)),
        "agents.csv": _csv(tables.agents(events)),
        "links.csv": _csv(tables.links(events)),
    }


def _csv(frame: DataFrame) -> bytes:
    texts = [name for name, kind in frame.dtypes.items() if kind == "str"]
    frame = frame.assign(**{name: frame[name].map(_no_formula, na_action="ignore") for name in texts})
    # with any other line end, a lone carriage return in a reply would go unquoted and begin a row
    return frame.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")


def _no_formula(text: str) -> str:
    """The text with an apostrophe before what a spreadsheet would take for a formula; a plain number is none."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


# -- the graph and the recording -----------------------------------------------------------------------


def graphml(events: Sequence[Any], k: int | None = None) -> bytes:
    """The communication graph after k events as GraphML, which Gephi, yEd, Cytoscape and NetworkX read.

    Parameters
    ----------
    events
        The events of a run.
    k
        How many events to take, at least 1; None takes all.

    Returns
    -------
    bytes
        The graph with ``run_id``, ``protocol`` and ``step``; a node an agent with the attributes of
        ``graph.communication_graph``; an edge a pair challenger -> receiver with ``links`` (how many), ``rounds`` (with
        commas), how many were ``retained``, ``changed`` and ``void``, the ``outcome`` of the last and its ``number``
        among all links, from 1. What is None has no attribute, and what XML forbids is left out of answers.
    """
    import networkx as nx

    debate = fold(events, k)
    buffer = io.BytesIO()
    nx.write_graphml(_flat(debate), buffer)
    return buffer.getvalue()


def _flat(debate: Debate) -> nx.DiGraph:
    """The communication graph with attributes that are single values."""
    import networkx as nx

    from .graph import communication_graph

    full = communication_graph(debate)
    flat = nx.DiGraph(**_attributes(full.graph | {"step": debate.k}))
    for name, data in full.nodes(data=True):
        flat.add_node(name, **_attributes(data))
    for challenger, receiver, data in full.edges(data=True):
        links = data["links"]
        outcomes = [_OUTCOMES[link.retained] for link in links]
        flat.add_edge(
            challenger,
            receiver,
            links=len(links),
            rounds=", ".join(str(link.round) for link in links),
            outcome=outcomes[-1],
            number=data["number"],
            **{outcome: outcomes.count(outcome) for outcome in _OUTCOMES.values()},
        )
    return flat


def _attributes(data: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_XML.sub("", value) if isinstance(value, str) else value
        for name, value in data.items()
        if value is not None
    }


def jsonl(recording: Recording) -> bytes:
    """The recording itself: its file as it is, or its events written anew if it was loaded from bytes."""
    if recording.path is not None:
        return recording.path.read_bytes()
    return as_jsonl(recording.events)


# -- pictures ------------------------------------------------------------------------------------------


def find_browser() -> str | None:
    """The browser that draws pictures.

    Returns
    -------
    str or None
        What the variable BROWSER_PATH names, or CHROMIUM; else Chrome, Chromium or a relative of theirs on the PATH
        (outside Linux also where it is usually installed), or Kaleido's own; None if there is none.
    """
    variable = _variable()
    if variable:
        return shutil.which(os.environ[variable])
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found:
        return found
    from choreographer.browsers.chromium import Chromium

    return Chromium.find_browser(skip_local=False, skip_typical=sys.platform == "linux")


def _variable() -> str | None:
    """The variable that names a browser."""
    return next((name for name in ("BROWSER_PATH", "CHROMIUM") if os.environ.get(name)), None)


def image(figure: dict[str, Any], fmt: str, width: int, height: int, scale: float = 2) -> bytes:
    """Draw a Plotly figure with a browser of this machine.

    Nothing is fetched: plotly.js comes from the installed package, formulas are not typeset, and the browser is cut
    off from the network. May be called with or without a running event loop; it blocks for some seconds.

    Parameters
    ----------
    figure
        ``{"data": [...], "layout": {...}}``, as ``pages.components.figures`` makes it.
    fmt
        ``png`` or ``svg``.
    width, height
        In pixels of the layout.
    scale
        Pixels of the PNG for one of the layout.

    Returns
    -------
    bytes

    Raises
    ------
    NoBrowser
        If no browser is found, it does not start, or it takes longer than ``TIMEOUT``.
    """
    browser = find_browser()
    if browser is None:
        variable = _variable()
        raise NoBrowser(f"The variable {variable} names no program. {NO_BROWSER}" if variable else NO_BROWSER)
    options = {"format": fmt, "width": width, "height": height, "scale": scale}
    # root has no sandbox in Chromium; elsewhere it may be forbidden too (containers, AppArmor), which only a try tells
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with ThreadPoolExecutor(1) as own_loop:
        for enable_sandbox in (False,) if root else (True, False):
            with suppress(_NotStarted):
                return own_loop.submit(asyncio.run, _draw(figure, options, browser, enable_sandbox)).result()
    raise NoBrowser(
        f"The browser {Path(browser).name} did not start, or ended before the picture was drawn; start it by hand to "
        "see why, or name another in the variable BROWSER_PATH."
    )


class _NotStarted(Exception):
    """The browser ended by itself."""


async def _draw(figure: dict[str, Any], options: dict[str, Any], browser: str, enable_sandbox: bool) -> bytes:
    from choreographer.errors import BrowserClosedError, BrowserFailedError, ChannelClosedError
    from kaleido import Kaleido

    # what these would log of a browser that fails is said in the sentence
    logging.getLogger("choreographer").setLevel(logging.CRITICAL)
    drawing = Kaleido(path=browser, mathjax=False, timeout=None, enable_sandbox=enable_sandbox, proxy_server=_NOWHERE)
    limit = asyncio.timeout(TIMEOUT)
    try:
        async with limit:
            await drawing.open()
            return await drawing.calc_fig(figure, options)
    except (TimeoutError, BrowserClosedError, BrowserFailedError, ChannelClosedError):
        # a start that is cut short comes as BrowserFailedError too
        if limit.expired():
            raise NoBrowser(
                f"The browser {Path(browser).name} did not draw the picture within {TIMEOUT:g} s; try again, or name "
                "another in the variable BROWSER_PATH."
            ) from None
        raise _NotStarted from None
    finally:
        with suppress(TimeoutError):
            await asyncio.wait_for(drawing.close(), _CLOSING)
