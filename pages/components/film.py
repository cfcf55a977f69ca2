"""A film: one Plotly figure for all steps of a run, in which every point says from which step until which it is shown.

Scrubbing is choosing points, which the browser does without asking the server (``plot.js``), and so does ``still``
for a picture of one step. A run of 500 steps so costs little more than its last step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Figure = dict[str, Any]
"""A Plotly figure as plain data, ``{"data": [...], "layout": {...}}``, which ``plotly.graph_objects.Figure`` takes."""


NOW = "now"
"""As the x of a point: the cursor's place, so that a line reaches to it."""
EDGE = "edge"
"""As the x of a point: the right edge of the axis, for what stands in the margin."""


class Layer:
    """One trace of a film.

    Parameters
    ----------
    end
        The step after the last one.
    base
        What stays: the trace without its points.
    """

    def __init__(self, end: int, base: dict[str, Any]) -> None:
        self.end = end
        self.base = base
        self.columns: dict[str, list[Any]] = {}
        self.start: list[int] = []
        self.until: list[int] = []

    def add(self, start: int, until: int | None = None, **point: Any) -> None:
        """Add a point that is shown after step ``start`` and before step ``until``.

        The names of the point's fields are Plotly's, with two underscores for a dot: ``marker__color``.
        """
        if not self.columns:
            self.columns = {name.replace("__", "."): [] for name in point}
        for column, value in zip(self.columns.values(), point.values(), strict=True):
            column.append(value)
        self.start.append(start)
        self.until.append(self.end if until is None else until)

    def line(self, points: Iterable[tuple[Any, float]], start: int, until: int | None = None, **same: Any) -> None:
        """Add a piece of line, and a gap after it."""
        for x, y in points:
            self.add(start, until, x=x, y=y, **same)
        self.add(start, until, x=None, y=None, **dict.fromkeys(same))


class Film:
    """A figure for each of the steps 1 ... ``steps``.

    Parameters
    ----------
    steps
        How many there are.
    layout
        Plotly's layout, the same for all.
    at
        The cursor's place on the x axis after each step, for lines that reach to it.
    alt
        The picture in a sentence after each step.
    fit
        Pixels of width below which signs and letters shrink; 0: never.
    """

    def __init__(
        self,
        steps: int,
        layout: dict[str, Any],
        at: Sequence[float] = (),
        alt: Sequence[str] = (),
        fit: int = 0,
    ) -> None:
        self.steps = steps
        self.layout = layout
        self.at = list(at)
        self.alt = list(alt)
        self.fit = fit
        self.layers: list[Layer] = []

    def layer(self, name: str, **base: Any) -> Layer:
        """Begin a trace, drawn above those before it."""
        made = Layer(self.steps + 1, {"type": "scatter", "name": name, **base})
        self.layers.append(made)
        return made

    def as_data(self) -> dict[str, Any]:
        """The film as plain data, for the browser: coordinates rounded, texts that come again written once."""
        return {
            "layout": self.layout,
            "at": self.at,
            "alt": self.alt,
            "fit": self.fit,
            "layers": [
                {
                    "base": x.base,
                    "columns": {name: _packed(column) for name, column in x.columns.items()},
                    "start": x.start,
                    "until": x.until,
                }
                for x in self.layers
                if x.start
            ],
        }


def _packed(column: list[Any]) -> Any:
    """A column of numbers rounded; one of texts as the different ones, and for each point which."""
    if any(isinstance(value, float) for value in column):
        return [round(value, 4) if isinstance(value, float) else value for value in column]
    if len(column) > 8 and any(isinstance(value, str) and value not in (NOW, EDGE) for value in column):
        different = list(dict.fromkeys(column))
        number = {value: i for i, value in enumerate(different)}
        return {"of": different, "which": [number[value] for value in column]}
    return column


def still(film: Film, k: int) -> Figure:
    """The figure after step ``k``; what ``plot.js`` does in the browser.

    Traces of which nothing is shown are there without points.
    """
    data = []
    for layer in film.layers:
        shown = [i for i, (start, until) in enumerate(zip(layer.start, layer.until, strict=True)) if start <= k < until]
        trace: dict[str, Any] = {**layer.base, "x": [], "y": []}
        for name, column in layer.columns.items():
            values = [column[i] for i in shown]
            *outer, last = name.split(".")
            place = trace
            for key in outer:
                place[key] = dict(place.get(key, {}))
                place = place[key]
            place[last] = [_place(film, k, x) for x in values] if name == "x" else values
        data.append(trace)
    return {"data": data, "layout": film.layout}


def _place(film: Film, k: int, x: Any) -> Any:
    if x == NOW:
        return film.at[k - 1]
    return film.layout["xaxis"]["range"][1] if x == EDGE else x


def spans(values: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """Runs of equal values over the steps 1 ... len(values), as (first step, step after the last, value)."""
    found: list[tuple[int, int, Any]] = []
    begin = 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[begin]:
            found.append((begin + 1, i + 1, values[begin]))
            begin = i
    return found
