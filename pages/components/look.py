"""Colour is belief, and never colour alone: palette, shapes, inks, and text made safe to show."""

from __future__ import annotations

import html
from typing import NamedTuple

# Okabe and Ito's palette without black, which a dark page swallows, and with yellow last, which a light one does
BELIEF_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
_DARK_TEXT_ON = {"#E69F00", "#CC79A7", "#56B4E9", "#F0E442"}
BELIEF_SHAPES = ("circle", "square", "diamond", "hexagon", "pentagon", "triangle-up", "star-square")
BELIEF_GLYPHS = ("●", "■", "◆", "⬢", "⬟", "▲", "✦")
NO_ANSWER_COLOUR = "#8A919C"


class Ink(NamedTuple):
    """The colours that are not belief."""

    text: str
    muted: str
    faint: str
    line: str
    paper: str
    scale: float = 1.0
    """Of type: more on a projector."""


LIGHT = Ink("#1B1F27", "#5B6470", "rgba(91,100,112,0.16)", "#7C8592", "#FFFFFF")
DARK = Ink("#F1F3F5", "#A4ADB9", "rgba(164,173,185,0.18)", "#7F8894", "#0F1216")


def colour(belief: int | None) -> str:
    """The colour of a belief; grey for no answer. More beliefs than colours: they repeat, shapes shift."""
    return NO_ANSWER_COLOUR if belief is None else BELIEF_COLOURS[belief % len(BELIEF_COLOURS)]


def _shape_index(belief: int) -> int:
    return (belief + belief // len(BELIEF_COLOURS)) % len(BELIEF_SHAPES)


def shape(belief: int | None) -> str:
    """The Plotly marker symbol of a belief."""
    return "circle-open" if belief is None else BELIEF_SHAPES[_shape_index(belief)]


def glyph(belief: int | None) -> str:
    """The character that stands for a belief in text."""
    return "○" if belief is None else BELIEF_GLYPHS[_shape_index(belief)]


def text_on(fill: str) -> str:
    """Black or white, whichever can be read on a belief's colour."""
    return "#14171C" if fill in _DARK_TEXT_ON else "#FFFFFF"


def safe(text: object) -> str:
    """Untrusted text for HTML."""
    return html.escape(str(text), quote=True)


def short(text: str | None, limit: int) -> str:
    """One line of at most ``limit`` characters; a dash for no answer."""
    if text is None:
        return "–"
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def plotly_text(text: str) -> str:
    """Untrusted text for Plotly, which reads a little HTML and, between dollars, LaTeX."""
    return html.escape(text, quote=False).replace("$", "＄")


def plain(text: str) -> str:
    """Untrusted text for Streamlit's Markdown: every sign that could mean something is escaped."""
    return "".join(f"\\{c}" if not (c.isalnum() or c.isspace()) and c.isascii() else c for c in text)
