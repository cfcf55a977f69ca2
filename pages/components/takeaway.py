"""A run to take along: one HTML file that scrubs offline, and pictures of a step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from svrmad_core.debate import Debate
from svrmad_core.export import NoBrowser, image
from svrmad_core.recording import Recording

from . import figures, told
from .film import Film, still
from .look import DARK, LIGHT, Ink, safe, short
from .timeline import blocks, verdict_block
from .walk import Walk, walk

_HERE = Path(__file__).parent
_STATIC = _HERE.parents[1] / "static"
WIDTH = 900
"""Pixels of a picture."""


def picture(recording: Recording, name: str, k: int, fmt: str, dark: bool = False) -> bytes:
    """A picture of one step.

    Parameters
    ----------
    name
        Of ``figures.PICTURES``: graph, scores, slope or flow.
    k
        The step, 1 ... number of events.
    fmt
        ``png`` or ``svg``.

    Raises
    ------
    NoBrowser
        If this machine has no browser that could draw it; the sentence says what to install.
    """
    ink = DARK if dark else LIGHT
    figure = still(figures.PICTURES[name](walk(recording.events), ink), k)
    figure["layout"] = figure["layout"] | {"paper_bgcolor": ink.paper, "plot_bgcolor": ink.paper, "width": WIDTH}
    return image(figure, fmt, WIDTH, figure["layout"]["height"], 2 if fmt == "png" else 1)


def html(recording: Recording, dark: bool = False) -> bytes:
    """The run as one HTML file that needs no network and no Python: the page's own timeline, pictures and transcript.

    Parameters
    ----------
    dark
        Light letters on a dark ground.
    """
    ink = DARK if dark else LIGHT
    events, w = recording.events, walk(recording.events)
    end = recording.fold()
    made = {name: draw(w, ink) for name, draw in figures.PICTURES.items()}
    data = {
        "run": recording.run_id,
        "ink": ink._asdict(),
        "timeline": {"blocks": blocks(events, end), "verdict": verdict_block(end, len(events)), "n": len(events)},
        "films": {name: _film(film) for name, film in made.items()},
        "steps": _steps(recording),
        "reference": end.problem.reference,
    }
    question = short(end.problem.question, 80)
    filled = _PAGE
    for mark, text in {
        "%TITLE%": _safe(f"SVR-MAD Explorer: {question}"),
        "%POLICY%": _POLICY,
        "%SCHEME%": "dark" if dark else "light",
        "%STYLE%": _style(ink),
        "%PLOTLY%": _script((_STATIC / "plotly-basic.min.js").read_text(encoding="utf-8")),
        "%KATEX%": _script((_STATIC / "katex" / "katex.min.js").read_text(encoding="utf-8")),
        "%CODE%": _script(_code()),
        "%DATA%": _as_json(data),
        "%FOOT%": _safe(_foot(recording, w)),
    }.items():
        filled = filled.replace(mark, text, 1)
    return filled.encode()


def _safe(text: str) -> str:
    """Untrusted text for the page, in which no mark is left to be filled."""
    return safe(text).replace("%", "&#37;")


def _film(film: Film) -> str:
    return json.dumps(film.as_data(), allow_nan=False, separators=(",", ":"))


def _steps(recording: Recording) -> list[dict[str, Any]]:
    """What changes with the step, told once for each; two debates follow the events, one a step behind."""
    events = recording.events
    before: Debate | None = None
    after = Debate(events[0])
    steps = []
    for event in events:
        if event.seq:
            after.apply(event)
        steps.append(
            {
                "head": told.head(after, None),
                "legend": told.legend(after),
                "words": told.in_words(before, event, after),
                "said": told.speeches(before, event, after),
            }
        )
        if before is None:
            before = Debate(events[0])
        else:
            before.apply(event)
    return steps


def _foot(recording: Recording, w: Walk) -> str:
    kind = "A simulated run: no model was asked." if w.started.simulated else "A recorded run."
    return f"{kind} {recording.run_id}, {w.started.at[:16].replace('T', ' ')} UTC, SVR-MAD Explorer."


def _as_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c").replace("%", "\\u0025")


def _script(code: str) -> str:
    return code.replace("</script", "<\\/script")


def _code() -> str:
    """The components' own scripts, each as a function, and what plays Streamlit's part."""
    parts = []
    for name in ("timeline", "plot", "say"):
        source = (_HERE / f"{name}.js").read_text(encoding="utf-8")
        parts.append(
            f"const {name} = (() => {{\n{source.replace('export default function', 'return function')}\n}})();"
        )
    return "\n".join([*parts, (_HERE / "takeaway.js").read_text(encoding="utf-8")])


def _style(ink: Ink) -> str:
    sheets = "\n".join(
        (_HERE / f"{name}.css").read_text(encoding="utf-8") for name in ("story", "timeline", "plot", "say", "takeaway")
    )
    side = "#181C23" if ink.paper == DARK.paper else "#F6F7F9"
    border = "#2A303A" if ink.paper == DARK.paper else "#E3E6EB"
    primary = "#56B4E9" if ink.paper == DARK.paper else "#0072B2"
    root = (
        f":root {{ --st-font: system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif; --st-text-color: {ink.text}; "
        f"--st-background-color: {ink.paper}; --st-secondary-background-color: {side}; "
        f"--st-border-color: {border}; --st-primary-color: {primary}; }}"
    )
    return f"{root}\n{sheets}"


_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
"""The file fetches nothing, whatever is in it."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="%SCHEME%">
<meta http-equiv="Content-Security-Policy" content="%POLICY%">
<title>%TITLE%</title>
<style>%STYLE%</style>
</head>
<body>
<main>
<div id="head"></div>
<div id="timeline"><div class="timeline"></div></div>
<div id="legend"></div>
<div class="stage">
<div id="graph"></div>
<div><div id="views" role="group" aria-label="Picture"></div><div id="view"></div><div id="words"></div></div>
</div>
<div id="switches"></div>
<div id="said"><div class="svr-said"></div></div>
<footer>%FOOT% Keys: arrows, Home, End, space.</footer>
</main>
<script>%PLOTLY%</script>
<script>%KATEX%</script>
<script type="application/json" id="run">%DATA%</script>
<script>%CODE%</script>
</body>
</html>
"""

__all__ = ["NoBrowser", "html", "picture"]
