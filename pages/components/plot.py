"""A Plotly figure for every step of a run, redrawn in the browser as the timeline moves.

``st.plotly_chart`` takes a changed figure for a new chart and builds it from nothing at every step, which costs more
than the step. This draws with the plotly.js in ``static/``, follows the timeline without asking the server, and lets
Plotly redraw only what differs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import streamlit as st

from .figures import Figure

MOST_BYTES = 6 * 2**20
"""Figures of all steps that together are larger are not sent; the step shown is, by the server."""

_HERE = Path(__file__).parent
_component = st.components.v2.component(
    "svrmad_plot",
    html='<div class="svr-plot" role="img"></div>',
    js=(_HERE / "plot.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def steps_as_json(draw: Callable[[int], tuple[Figure, str]], last: int, only: int | None = None) -> dict[int, str]:
    """The figure and its alternative text of every step, as JSON; empty if that is too much to send.

    Parameters
    ----------
    draw
        From a step to its figure and the figure in a sentence.
    last
        The last step.
    only
        Draw this step alone, whatever its size.
    """
    made: dict[int, str] = {}
    size = 0
    # the last step is the largest: a run that is too long is known at once
    for k in range(last, 0, -1) if only is None else [only]:
        figure, alt = draw(k)
        made[k] = json.dumps({**figure, "alt": alt}, allow_nan=False)
        size += len(made[k])
        if only is None and (size > MOST_BYTES or len(made[last]) * last > 2 * MOST_BYTES):
            return {}
    return made


def plot(run: str, steps: Mapping[int, str], key: str, height: int) -> None:
    """Draw the step at which the timeline of this run stands; ``steps`` as ``steps_as_json`` makes them.

    As long as they are the same, Streamlit sends them once.
    """
    _component(key=key, data={"run": run, "steps": {str(k): spec for k, spec in steps.items()}, "height": height})
