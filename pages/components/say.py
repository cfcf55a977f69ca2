"""What was said, drawn in the browser out of plain data: no model text becomes HTML on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
HTML = '<div class="svr-said"></div>'
CSS = (_HERE / "say.css").read_text(encoding="utf-8")
JS = (_HERE / "say.js").read_text(encoding="utf-8")
_component = st.components.v2.component("svrmad_say", html=HTML, css=CSS, js=JS, isolate_styles=False)


def say(speeches: Sequence[dict[str, Any]], key: str) -> None:
    """Show what was said side by side; ``speeches`` as ``told.speeches`` makes them."""
    _component(key=key, data={"speeches": list(speeches)})
