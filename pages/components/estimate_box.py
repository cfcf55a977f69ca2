"""What a debate will take, beside all-to-all, and the caps that are held."""

from __future__ import annotations

import gc
import threading

import streamlit as st

from svrmad_core.estimate import Estimate, Pace, Prices, estimate, prices_of
from svrmad_core.panels.litellm_panel import is_ready, warm_up
from svrmad_core.panels.simulated_panel import PREFIX
from svrmad_core.protocols import PROTOCOLS
from svrmad_core.records import Problem, Settings

from .look import safe
from .policy import Policy

SIMULATED = Pace((1e6, 1e6), 1e9, 1000, 1.2)
"""Simulated agents on this page take a little time, so that there is growth."""
_CSS = """<style>
.svr-estimate table { border-collapse: collapse; width: 100%; font-size: 1rem; }
.svr-estimate th, .svr-estimate td { text-align: right; padding: 3px 0 3px 12px; font-variant-numeric: tabular-nums; }
.svr-estimate th:first-child { text-align: left; padding-left: 0; font-weight: 400; opacity: .75; }
.svr-estimate thead th { font-weight: 700; opacity: 1; border-bottom: 1px solid rgba(128,128,128,.35); }
</style>"""


def caps(rules: Policy) -> tuple[int | None, float | None]:
    """The caps on tokens and money of one run, on at first; returns (tokens, US dollars)."""
    st.session_state.setdefault("live_cap", True)
    st.session_state.setdefault("live_cap_tokens", min(100_000, rules.run_tokens or 100_000))
    st.session_state.setdefault("live_cap_cost", min(0.5, 0.5 if rules.run_cost is None else rules.run_cost))
    on = st.toggle(
        "Stop at a cap",
        key="live_cap",
        persist_state="session",
        help="A step that would pass a cap is not begun; the debate then ends in a vote over the answers there are.",
    )
    left, right = st.columns(2)
    tokens = left.number_input(
        "tokens",
        min_value=100,
        max_value=rules.run_tokens or 100_000_000,
        step=10_000,
        key="live_cap_tokens",
        disabled=not on,
        persist_state="session",
    )
    dollars = right.number_input(
        "US dollars",
        min_value=0.0,
        max_value=rules.run_cost,
        step=0.1,
        key="live_cap_cost",
        disabled=not on,
        persist_state="session",
    )
    return (int(tokens), float(dollars)) if on else (None, None)


def prices(models: list[str], api_base: str | None) -> Prices | None:
    """What the models cost, or None while the price list is still being read (which takes seconds, once)."""
    if all(m.startswith(PREFIX) for m in models) or is_ready():
        return prices_of(models, api_base)
    warm()
    return None


def priced(models: list[str], api_base: str | None) -> bool:
    """Whether every model has a known price, so that money can be counted; waits for the price list if it must."""
    return all(price is not None for price in prices_of(list(dict.fromkeys(models)), api_base).values())


@st.cache_resource(show_spinner=False)
def warm() -> threading.Thread:
    """Import LiteLLM in the background, once."""

    def work() -> None:
        warm_up()
        # its half a million objects stay anyway: no collection need look at them again
        gc.freeze()

    thread = threading.Thread(target=work, name="warm-up", daemon=True)
    thread.start()
    return thread


def table(problem: Problem, protocol: str, models: list[str], settings: Settings, parent: object = None) -> None:
    """The estimate as a table, looked at again until the prices are known."""
    ready = prices(models, settings.api_base) is not None
    st.fragment(_table, run_every=None if ready else 1.0)(problem, protocol, models, settings, parent, ready)


def _table(problem: Problem, protocol: str, models: list[str], settings: Settings, parent: object, ready: bool) -> None:
    known = prices(models, settings.api_base)
    if known is not None and not ready:
        # the button waits for the prices too
        st.rerun()
    costs = known if known is not None else dict.fromkeys(models)
    names = list(dict.fromkeys([protocol, "all_to_all"]))
    # the rounds of the one are not those of the other, and what caps the one would make the other look cheap
    bare = settings.model_copy(
        update={"max_rounds": None, "max_links": None, "max_tokens_total": None, "max_cost": None}
    )
    made = [
        estimate(
            name,
            settings if name == protocol else bare,
            models,
            problem,
            prices=costs,
            parent=parent,
            pace=SIMULATED if all(m.startswith(PREFIX) for m in models) else None,
        )
        for name in names
    ]
    head = "".join(f"<th>{safe(PROTOCOLS[name].title)}</th>" for name in names)
    rows = {
        "calls": [_whole(e.calls) for e in made],
        "links": [_whole(e.links) for e in made],
        "tokens": [_whole(tuple(map(_rounded, e.tokens))) for e in made],
        "money": ["reading the price list …" if known is None else _money(e) for e in made],
        "time": [_time(e.seconds) for e in made],
    }
    body = "".join(f"<tr><th>{n}</th>{''.join(f'<td>{c}</td>' for c in cells)}</tr>" for n, cells in rows.items())
    st.html(
        f'{_CSS}<div class="svr-estimate"><table><thead><tr><th>Estimate</th>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
    st.caption("From agreement at once to all rounds and long replies.")


def line(made: Estimate) -> str:
    """An estimate in a line: calls, tokens, money, time."""
    tokens = _whole(tuple(map(_rounded, made.tokens)))
    return f"{_whole(made.calls)} calls · {tokens} tokens · {_money(made)} · {_time(made.seconds)}"


def _rounded(value: float) -> int:
    """Two significant digits: an estimate knows no more."""
    return int(float(f"{value:.2g}"))


def _whole(pair: tuple[int, ...]) -> str:
    low, high = pair
    return f"{low:,}" if low == high else f"{low:,} – {high:,}"


def _money(made: Estimate) -> str:
    if made.cost is None:
        return "no known price"
    low, high = made.cost
    if high == 0:
        return "free"
    return f"{low:.2g} – {high:.2g} USD" if high < 1 else f"{low:.2f} – {high:.2f} USD"


def _time(pair: tuple[float, float]) -> str:
    low, high = pair
    if high < 1:
        return "at once"
    return f"{_seconds(low)} – {_seconds(high)}"


def _seconds(value: float) -> str:
    if value < 90:
        return f"{max(1, round(value))} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


__all__ = ["caps", "line", "priced", "prices", "table", "warm"]
