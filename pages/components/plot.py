"""A film of a run, redrawn in the browser as the timeline moves.

``st.plotly_chart`` takes a changed figure for a new chart and builds it from nothing at every step, which costs more
than the step. This draws with the plotly.js in ``static/``, follows the timeline without asking the server, and lets
Plotly redraw only what differs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import streamlit as st

from .look import Ink

_HERE = Path(__file__).parent
HTML = (
    '<div class="svr-picture"><div class="svr-plot" role="img"></div><div class="svr-take">'
    '<button type="button" data-format="png" title="Save this picture as PNG">PNG</button>'
    '<button type="button" data-format="svg" title="Save this picture as SVG">SVG</button></div></div>'
)
CSS = (_HERE / "plot.css").read_text(encoding="utf-8")
JS = (_HERE / "plot.js").read_text(encoding="utf-8")
_component = st.components.v2.component("svrmad_plot", html=HTML, css=CSS, js=JS, isolate_styles=False)


def plot(
    run: str,
    film: str,
    name: str,
    ink: Ink,
    agent: str | None = None,
    predict: bool = False,
    on_choose: Callable[[str | None], None] | None = None,
    key: str | None = None,
) -> None:
    """Draw the step at which the cursor of this run stands.

    Parameters
    ----------
    run
        The run's name; the picture follows the cursor that moves it. A picture of one step needs none.
    film
        A film as JSON. As long as it is the same, Streamlit sends it once.
    name
        What is drawn, of ``figures.PICTURES``; part of the file's name when it is saved.
    ink
        The colours that are not belief.
    agent
        The agent brought forward, if any.
    predict
        Do not let the axis tell how long the run is.
    on_choose
        Called with an agent that is clicked, or None when it is clicked again.
    key
        The element's key, where a page has several pictures of one name.
    """
    key = key or f"plot_{name}"

    def chosen() -> None:
        choice = st.session_state[key].get("agent")
        if on_choose is not None and isinstance(choice, dict):
            on_choose(choice.get("name"))

    _component(
        key=key,
        data={
            "run": run,
            "film": film,
            "name": name,
            "agent": agent,
            "predict": predict,
            "choose": on_choose is not None,
            "text": ink.text,
            "paper": ink.paper,
        },
        on_agent_change=chosen,
    )
