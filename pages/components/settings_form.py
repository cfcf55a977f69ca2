"""The settings of a run: three presets, and all of METHOD's choices behind an expander."""

from __future__ import annotations

from typing import Any

import streamlit as st

from svrmad_core.protocols import PROTOCOLS
from svrmad_core.protocols.sid_et import SIGNAL_TITLES
from svrmad_core.records import Settings

PRESETS: dict[str, dict[str, Any]] = {
    "Quick demo": {"agents": 4, "challengers": 3, "round_mode": "parallel", "max_tokens": 1024},
    "As in the paper": {"agents": 6, "challengers": 3, "round_mode": "sequential", "max_tokens": 4096},
    "Thorough": {"agents": 8, "challengers": 4, "round_mode": "sequential", "max_tokens": 8192},
}
_CHOICES: dict[str, tuple[str, dict[str, str]]] = {
    "prior": (
        "Prior",
        {
            "confidence": "stated confidence",
            "perplexity": "perplexity",
            "min_logprob": "least likely token",
            "uniform": "uniform",
        },
    ),
    "prior_scale": ("Scale of priors", {"probability": "probability", "rank": "rank"}),
    "score": ("Score", {"svr": "SVR", "prior": "prior, frozen", "beta": "Beta posterior"}),
    "round_mode": ("Debates of a round", {"sequential": "one after the other", "parallel": "at the same time"}),
    "memory": ("An agent remembers", {"full": "all it said and heard", "last": "its last reply"}),
    "accept_after": ("Accept after each", {"round": "round", "debate": "debate"}),
}
_NUMBERS: dict[str, tuple[str, dict[str, Any]]] = {
    "agents": ("N, agents", {"min_value": 2, "max_value": 24}),
    "challengers": ("S, challengers", {"min_value": 1, "max_value": 12}),
    "tau": ("τ, acceptance", {"min_value": -1.0, "max_value": 1.0, "step": 0.05}),
    "max_tokens": ("Tokens of one reply", {"min_value": 16, "max_value": 64_000, "step": 256}),
    "timeout": ("Seconds for one call", {"min_value": 1.0, "max_value": 1800.0, "step": 10.0}),
}
_OPTIONAL: dict[str, tuple[str, dict[str, Any]]] = {
    "quorum": ("Quorum", {"min_value": 1, "max_value": 24, "placeholder": "0.8 N"}),
    "max_rounds": ("Rounds at most", {"min_value": 0, "max_value": 100, "placeholder": "N"}),
    "max_links": ("Links at most", {"min_value": 0, "max_value": 10_000, "placeholder": "no limit"}),
    "temperature": ("Temperature", {"min_value": 0.0, "max_value": 2.0, "step": 0.1, "placeholder": "provider's"}),
    "seed": ("Seed", {"min_value": 0, "max_value": 2**31, "placeholder": "none"}),
}


_ONLY_FOR: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "sparse": {"neighbours": ("k, neighbours heard", {"min_value": 1, "max_value": 23})},
    "group_debate": {"group_size": ("Agents of a group", {"min_value": 2, "max_value": 24})},
    "sid_et": {
        "exit_threshold": ("Leave at or below, nats", {"min_value": 0.0, "step": 0.1, "placeholder": "the signal's"}),
        "exit_confidence": ("Else at or above, confidence", {"min_value": 0.0, "max_value": 1.0, "step": 0.05}),
    },
}
_CHOICES_ONLY_FOR: dict[str, dict[str, tuple[str, dict[Any, str]]]] = {
    "group_debate": {"summaries": ("Groups hear", {False: "nobody else", True: "each other's summaries"})},
    "sid_et": {
        "exit_variant": ("Who may leave", {"per_agent": "each agent", "gate_first": "the first, for all"}),
        "exit_signal": ("Signal", SIGNAL_TITLES),
    },
}
_A_ROW = 3


def _key(name: str) -> str:
    return f"live_{name}"


def preset() -> None:
    """The presets; choosing one sets what it is about."""

    def choose() -> None:
        for name, value in PRESETS.get(st.session_state["live_preset"], {}).items():
            st.session_state[_key(name)] = value

    _defaults()
    st.session_state.setdefault("live_preset", "Quick demo")
    st.segmented_control(
        "Preset",
        list(PRESETS),
        key="live_preset",
        on_change=choose,
        label_visibility="collapsed",
        persist_state="session",
    )


def _names() -> list[str]:
    own = [name for each in (_ONLY_FOR, _CHOICES_ONLY_FOR) for fields in each.values() for name in fields]
    return [*_CHOICES, *_NUMBERS, *_OPTIONAL, *own]


def _defaults() -> None:
    given = Settings().model_dump() | PRESETS["Quick demo"]
    for name in _names():
        st.session_state.setdefault(_key(name), given[name])


def fill(settings: Settings) -> None:
    """Put the settings of another run into the form."""
    given = settings.model_dump()
    for name in _names():
        st.session_state[_key(name)] = given[name]
    st.session_state["live_preset"] = None


def chosen() -> tuple[str, dict[str, Any]]:
    """The expander with all settings; returns the protocol and the settings' values."""
    _defaults()
    with st.expander("Settings", icon=":material/tune:"):
        st.session_state.setdefault("live_protocol", "svr_mad")
        protocol = st.selectbox(
            "Protocol",
            list(PROTOCOLS),
            format_func=lambda name: PROTOCOLS[name].title,
            key="live_protocol",
            persist_state="session",
        )
        values = _row(
            _NUMBERS, lambda label, more, key: st.number_input(label, key=key, persist_state="session", **more)
        )
        values |= _row(
            _CHOICES,
            lambda label, options, key: st.selectbox(
                label, list(options), key=key, format_func=options.get, persist_state="session"
            ),
        )
        values |= _row(
            _OPTIONAL, lambda label, more, key: st.number_input(label, key=key, persist_state="session", **more)
        )
        if protocol in _ONLY_FOR:
            values |= _row(
                _ONLY_FOR[protocol],
                lambda label, more, key: st.number_input(label, key=key, persist_state="session", **more),
            )
        if protocol in _CHOICES_ONLY_FOR:
            values |= _row(
                _CHOICES_ONLY_FOR[protocol],
                lambda label, options, key: st.selectbox(
                    label, list(options), key=key, format_func=options.get, persist_state="session"
                ),
            )
        if note := PROTOCOLS[protocol].note:
            st.caption(note)
        st.caption("What is left empty is the method's: quorum ⌈0.8 N⌉, N rounds (2 for the other protocols).")
    return protocol, values


def _row(fields: dict[str, tuple[str, Any]], draw: Any) -> dict[str, Any]:
    """Fields side by side; returns their values by name."""
    found = {}
    named = list(fields.items())
    for row in range(0, len(named), _A_ROW):
        for column, (name, (label, more)) in zip(st.columns(_A_ROW), named[row : row + _A_ROW], strict=False):
            with column:
                found[name] = draw(label, more, _key(name))
    return found


def agents() -> int:
    """How many agents are set, before the field is drawn."""
    _defaults()
    return int(st.session_state[_key("agents")] or 2)


__all__ = ["PRESETS", "agents", "chosen", "fill", "preset"]
