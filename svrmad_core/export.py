"""A recording for other programs: CSV tables, GraphML, and pictures through a browser of this machine."""

from __future__ import annotations

import io
import os
import re
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import tables
from .debate import fold
from .graph import communication_graph

_SECONDS = 60
_WRITTEN = ("answer", "first_answer", "challenger_answer", "reply", "before", "after", "model", "failed")
"""Columns that hold what a model or a user wrote."""
_FORBIDDEN_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BROWSERS = ("google-chrome", "google-chrome-stable", "chromium", "chromium-browser", "chrome", "msedge")


class NoBrowser(RuntimeError):
    """No browser that could draw a picture; one sentence on what to install."""


def csv_tables(events: Sequence[Any]) -> dict[str, str]:
    """The tables of a run as CSV.

    Parameters
    ----------
    events
        The events of a run.

    Returns
    -------
    dict
        File name (turns, scores, agents, links, each ``.csv``) -> text, with a byte-order mark so that spreadsheets
        read it as UTF-8. A text that a model wrote and a spreadsheet would run as a formula begins with an apostrophe.
    """
    found = {}
    for name in ("turns", "scores", "agents", "links"):
        table = getattr(tables, name)(events)
        for column in table.columns.intersection(_WRITTEN):
            table[column] = table[column].map(_harmless)
        found[f"{name}.csv"] = "\ufeff" + table.to_csv(index=False, lineterminator="\r\n")
    return found


def _harmless(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def csv_zip(events: Sequence[Any]) -> bytes:
    """The tables of a run, zipped."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in csv_tables(events).items():
            archive.writestr(name, text.encode())
    return made.getvalue()


def write_csv(events: Sequence[Any], out: Path) -> list[Path]:
    """Write the tables into a folder, or into one file if its name ends in ``.zip``; returns what was written."""
    if out.suffix.lower() == ".zip":
        out.write_bytes(csv_zip(events))
        return [out]
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in csv_tables(events).items():
        path = out / name
        path.write_bytes(text.encode())
        written.append(path)
    return written


def graphml(events: Sequence[Any], k: int | None = None) -> bytes:
    """The communication graph after ``k`` events as GraphML; None takes all.

    Returns
    -------
    bytes
        Nodes with ``index, belief, answer, prior, score, retained, changed, failed``; an edge challenger -> receiver
        with ``links`` (how many), ``rounds``, ``retained``, ``changed``, ``void`` (how many of each), ``outcome`` and
        ``number`` of the last. What is unknown is left out.
    """
    import networkx as nx

    graph = communication_graph(fold(events, k))
    flat = nx.DiGraph(**graph.graph)
    for name, data in graph.nodes(data=True):
        flat.add_node(name, **{key: _plain(value) for key, value in data.items() if value is not None})
    for challenger, receiver, data in graph.edges(data=True):
        outcomes = [tables.OUTCOMES[link.retained] for link in data["links"]]
        flat.add_edge(
            challenger,
            receiver,
            links=len(outcomes),
            rounds=", ".join(str(link.round) for link in data["links"]),
            outcome=outcomes[-1],
            number=data["number"],
            **{name: outcomes.count(name) for name in ("retained", "changed", "void")},
        )
    made = io.BytesIO()
    nx.write_graphml(flat, made)
    return made.getvalue()


def _plain(value: Any) -> Any:
    return _FORBIDDEN_IN_XML.sub("", value) if isinstance(value, str) else value


def browser() -> str | None:
    """The browser that draws pictures: what ``BROWSER_PATH`` or ``CHROMIUM`` names, else one that is installed."""
    for variable in ("BROWSER_PATH", "CHROMIUM"):
        named = os.environ.get(variable)
        if named and (found := shutil.which(named)):
            return found
    return next(filter(None, map(shutil.which, _BROWSERS)), None)


def image(figure: dict[str, Any], fmt: str, width: int, height: int, scale: float = 2) -> bytes:
    """Draw a Plotly figure.

    Parameters
    ----------
    figure
        Plain data, ``{"data": [...], "layout": {...}}``.
    fmt
        ``png`` or ``svg``.
    width, height
        Pixels.
    scale
        Device pixels a pixel; of a PNG only.

    Raises
    ------
    NoBrowser
        If there is no Chrome or Chromium, or it does not answer; the sentence says what to do.
    """
    path = browser()
    if path is None:
        raise NoBrowser(
            "PNG and SVG need Google Chrome or Chromium on this machine: install one (Debian: apt install chromium), "
            "or name it in the variable BROWSER_PATH; on the Replay page the browser you look with makes them."
        )
    import kaleido

    options = {"format": fmt, "width": width, "height": height, "scale": scale if fmt == "png" else 1}
    try:
        return kaleido.calc_fig_sync(figure, opts=options, kopts={"path": path, "timeout": _SECONDS})
    except Exception as error:
        raise NoBrowser(
            f"{Path(path).name} could not draw the picture: {' '.join(str(error).split())[:200]}"
        ) from error
