"""Who answers: a picker that offers what can be asked from here, and a field for a key of one's own."""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from svrmad_core import available
from svrmad_core.records import Settings
from svrmad_core.secrets import public_base

from . import local_model
from .policy import Policy

_AT = " @ "
_MODELS, _SERVERS, _KEY = "live_models", "live_servers", "live_key"


class Chosen(NamedTuple):
    """Who is to answer.

    ``models`` are dealt to the agents in turn; ``api_base`` is where all of them are served, or None; ``key`` is the
    visitor's own, or None; ``wrong`` says in a sentence why that cannot be, or None.
    """

    models: list[str]
    api_base: str | None
    key: str | None
    wrong: str | None = None


def pick(agents: int, rules: Policy) -> Chosen:
    """The picker; returns what is chosen."""
    offered = _offered(rules)
    st.session_state.setdefault(_MODELS, offered[:1])
    with st.container(horizontal=True, vertical_alignment="bottom"):
        labels = st.multiselect(
            "Who answers",
            list(dict.fromkeys([*offered, *st.session_state[_MODELS]])),
            key=_MODELS,
            accept_new_options=True,
            persist_state="session",
            placeholder="Choose models, or type any LiteLLM id such as openai/gpt-4o",
            help="Several are dealt to the agents in turn. Found here: keys in the environment, and servers on this "
            "computer (Ollama, LM Studio, vLLM, llama.cpp, the project's own local model).",
        )
        with st.popover("Key, server", icon=":material/key:", key="live_key_server"):
            key = _key(rules)
            _server(key, rules)
            if rules.local and rules.addresses is None:
                local_model.controls(_found)
    if st.toggle("A model for each agent", key="live_each", persist_state="session"):
        labels = _each(labels, agents)
    return _read(labels, key)


def _offered(rules: Policy) -> list[str]:
    """The labels of what can be asked, the likeliest first."""
    servers = list(st.session_state.get(_SERVERS, ()))
    if rules.addresses is None:
        servers += local_servers()
    else:
        servers += [s for s in (_listed(base) for base in rules.addresses) if s is not None]
    served = [f"{model}{_AT}{server.base}" for server in servers for model in server.models]
    keyed = available.keyed_models()
    allowed = [x for x in (*served, *keyed) if _allowed(x, rules)]
    return list(dict.fromkeys([*allowed, *available.SIMULATED]))


def _allowed(label: str, rules: Policy) -> bool:
    chosen = _read([label], None)
    return rules.refuses(chosen.models, Settings(api_base=chosen.api_base), own_key=False) is None


@st.cache_data(ttl=20, show_spinner=False)
def local_servers() -> list[available.Server]:
    """The servers on this computer, looked for now and then."""
    return available.local_servers()


@st.cache_data(ttl=60, show_spinner=False)
def _listed(base: str) -> available.Server | None:
    try:
        return available.server_at(base, timeout=2)
    except (available.NoServer, ValueError):
        return None


def _key(rules: Policy) -> str | None:
    """The visitor's own key; it lives in this session's memory and nowhere else."""
    if not rules.own_keys:
        return None
    typed = st.text_input(
        "A key of your own",
        type="password",
        key=_KEY,
        persist_state="session",
        autocomplete="off",
        placeholder="only for this browser session",
        help="Sent to the models you choose, for this session only: never written to a file, a log or a link.",
    )
    return typed.strip() or None


def _server(key: str | None, rules: Policy) -> None:
    """Another OpenAI-compatible server, by its address."""
    if rules.addresses is not None:
        st.caption("Which servers can be asked is set by whoever runs this app.")
        return
    base = st.text_input("An OpenAI-compatible server", placeholder="http://127.0.0.1:8080/v1", key="live_base")
    left, right = st.columns(2)
    if left.button("Ask for its models", width="stretch"):
        try:
            server = available.server_at(base, key)
        except (available.NoServer, ValueError) as error:
            st.error(str(error), icon=":material/error:")
        else:
            _found(server)
    if right.button("Look again", width="stretch", help="Look once more for servers on this computer"):
        local_servers.clear()
        st.rerun()


def _found(server: available.Server) -> None:
    """Offer a server's models and choose the first."""
    st.session_state[_SERVERS] = [*st.session_state.get(_SERVERS, ()), server]
    st.session_state["live_add"] = f"{server.models[0]}{_AT}{server.base}"
    local_servers.clear()
    st.rerun()


def take_found() -> None:
    """Choose the model of a server that was just found; before the picker is drawn."""
    if (found := st.session_state.pop("live_add", None)) is not None:
        st.session_state[_MODELS] = [found]


def _each(labels: list[str], agents: int) -> list[str]:
    """One box an agent; at first the models in turn."""
    if not labels:
        return []
    chosen = []
    for row in range(0, agents, 4):
        columns = st.columns(4)
        for i in range(row, min(row + 4, agents)):
            key = f"live_model_{i + 1}"
            if st.session_state.get(key) not in labels:
                st.session_state[key] = labels[i % len(labels)]
            chosen.append(columns[i - row].selectbox(f"A{i + 1}", labels, key=key))
    return chosen


def _read(labels: list[str], key: str | None) -> Chosen:
    """Models and their address out of the labels."""
    parted = [(model.strip(), base.strip() or None) for model, _, base in (x.partition(_AT) for x in labels)]
    models = [model for model, _ in parted]
    if not models:
        return Chosen([], None, key, "Choose who answers: a model, or the simulated panel.")
    try:
        bases = {public_base(base) for _, base in parted}
    except ValueError as error:
        return Chosen(models, None, key, str(error))
    simulated = [m for m in models if m.startswith("simulated/")]
    if simulated and len(simulated) < len(models):
        return Chosen(models, None, key, "Simulated agents and real models cannot share a run: choose one kind.")
    if unknown := [m for m in simulated if m not in available.SIMULATED]:
        return Chosen(models, None, key, f"There is no simulated panel {unknown[0]}: choose one that is offered.")
    if len(bases) > 1:
        return Chosen(models, None, key, "All models of a run are served at one address: choose those of one server.")
    (base,) = bases
    if base is not None and any("/" not in m for m in models):
        # a server tells bare names; LiteLLM wants to know what it speaks
        models = [m if m.startswith("openai/") else f"openai/{m}" for m in models]
    return Chosen(models, base, key)


__all__ = ["Chosen", "local_servers", "pick", "take_found"]
