"""The form of the Live page: the question, who answers, what it will take, and the button that begins."""

from __future__ import annotations

import asyncio
from typing import Any

import streamlit as st
from pydantic import ValidationError

from svrmad_core import Problem, Settings
from svrmad_core.connection import check
from svrmad_core.guess import guess_kind, split_options
from svrmad_core.panels.simulated_panel import PREFIX
from svrmad_core.records import Kind

from . import estimate_box, models_form, policy, runner, settings_form
from .look import plain, short
from .policy import Policy

EXAMPLES = {
    "Dice": ("Two dice are thrown. What is the probability that the sum is 8?", "5/36"),
    "Handshakes": ("Nine people meet, and each shakes hands once with each other. How many handshakes?", "36"),
    "Powers": ("What is 7^100 mod 5?", "1"),
    "Capital": ("What is the capital of Australia?", "Canberra"),
}
_QUESTION, _KIND, _OPTIONS, _REFERENCE = "live_question", "live_kind", "live_options", "live_reference"
_KINDS = {"guess": "guess", "math": "math", "choice": "choice", "text": "text"}
SIMULATED_PACE = 0.6
"""Share of the seconds that simulated agents say they took which they take on this page, so that there is growth."""


def form(rules: Policy) -> None:
    """Draw the form; where the button is pressed, begin the run and put it into the link."""
    _own_jobs()
    models_form.take_found()
    left, right = st.columns([3, 2], gap="large")
    with left:
        problem, wrong = _problem()
        settings_form.preset()
        chosen = models_form.pick(settings_form.agents(), rules)
        protocol, values = settings_form.chosen()
    with right:
        tokens, dollars = estimate_box.caps(rules)
        prices = estimate_box.prices(chosen.models, chosen.api_base) if chosen.models else {}
        priced = prices is not None and all(prices.get(m) is not None for m in chosen.models)
        settings, bad = _settings(
            values | {"api_base": chosen.api_base, "max_tokens_total": tokens, "max_cost": dollars}
        )
        if settings is not None:
            settings = rules.capped(settings, priced)
            if chosen.models and chosen.wrong is None:
                estimate_box.table(problem or Problem(question="?"), protocol, chosen.models, settings)
                bad = rules.refuses(chosen.models, settings, chosen.key is not None)
        refused = chosen.wrong or bad or (None if prices is not None else "Reading the price list, a moment …")
        _buttons(problem, protocol, chosen, settings, refused, wrong, rules)


def _problem() -> tuple[Problem | None, str | None]:
    """The question with its kind, options and hidden reference answer; (problem, why there is none yet)."""
    text = st.text_area(
        "Question",
        key=_QUESTION,
        height=110,
        max_chars=20_000,
        placeholder="Type a question with a closed answer: a number, one of some options, a few words",
        persist_state="session",
    )
    # always there, filled or not: what moves up or down in the page is built anew, and an open box closes
    examples, options = st.container(horizontal=True), st.container()
    if not text.strip():
        with examples:
            for name, (question, answer) in EXAMPLES.items():
                st.button(name, key=f"live_example_{name}", type="tertiary", on_click=_take, args=(question, answer))
    guessed = guess_kind(text)
    names = _KINDS | {"guess": f"guess: {guessed}"} if text.strip() else _KINDS
    left, right = options.columns([1.3, 1], vertical_alignment="bottom")
    st.session_state.setdefault(_KIND, "guess")
    chosen = left.segmented_control(
        "Kind of answer", list(_KINDS), key=_KIND, format_func=names.get, required=True, persist_state="session"
    )
    reference = right.text_input(
        "Right answer, if known (hidden)",
        key=_REFERENCE,
        type="password",
        autocomplete="off",
        persist_state="session",
        help="No agent sees it, and the page hides it until you reveal it.",
    )
    kind: Kind = guessed if chosen in (None, "guess") else chosen  # type: ignore[assignment]
    choices: list[str] = []
    if kind == "choice":
        text, choices = split_options(text)
        if choices:
            options.caption(f"Options read from the question: {', '.join(chr(65 + i) for i in range(len(choices)))}.")
        else:
            lines = options.text_area("Options, one a line", key=_OPTIONS, height=110, persist_state="session")
            choices = [line.strip() for line in lines.splitlines() if line.strip()]
    if not text.strip():
        return None, "Type a question."
    if kind == "choice" and len(choices) < 2:
        return None, "A choice needs at least two options: write one a line."
    if len(choices) > 26:
        return None, "A choice has at most 26 options."
    return Problem(question=text.strip(), kind=kind, choices=choices, reference=reference.strip() or None), None


def _take(question: str, answer: str) -> None:
    st.session_state.update({_QUESTION: question, _REFERENCE: answer, _KIND: "guess"})


def fill(problem: Problem, settings: Settings) -> None:
    """Put the question and the settings of another run into the form."""
    st.session_state.update(
        {
            _QUESTION: problem.question,
            _KIND: problem.kind,
            _OPTIONS: "\n".join(problem.choices),
            _REFERENCE: problem.reference or "",
        }
    )
    settings_form.fill(settings)


def _settings(values: dict[str, Any]) -> tuple[Settings | None, str | None]:
    """The settings, or why they cannot be."""
    try:
        return Settings.model_validate(values), None
    except ValidationError as error:
        first = error.errors()[0]
        return None, f"{'.'.join(str(p) for p in first['loc']).replace('_', ' ')}: {first['msg']}."


def _buttons(
    problem: Problem | None,
    protocol: str,
    chosen: models_form.Chosen,
    settings: Settings | None,
    refused: str | None,
    missing: str | None,
    rules: Policy,
) -> None:
    """Start, step by step, and the test of the connection; ``refused`` and ``missing`` say why one cannot start."""
    stepwise = st.toggle(
        "Step by step",
        key="live_stepwise",
        persist_state="session",
        help="Nothing is sent until you press Step, and the page says what will be asked of whom",
    )
    wrong = refused or missing
    begin = st.button(
        "Start the debate",
        type="primary",
        icon=":material/play_arrow:",
        width="stretch",
        disabled=wrong is not None,
        key="live_start",
    )
    if wrong is not None:
        st.caption(plain(wrong))
    elif begin and problem is not None and settings is not None:
        _begin(problem, protocol, chosen, settings, stepwise, rules)
    if settings is None or not chosen.models or chosen.models[0].startswith(PREFIX):
        return
    if st.button("Test the connection", icon=":material/network_check:", width="stretch", disabled=refused is not None):
        with st.spinner("One tiny call to each model …"):
            found = asyncio.run(check(chosen.models, settings, chosen.key))
        for finding in found:
            tell = st.success if finding.works else st.error
            tell(plain(finding.sentence), icon=":material/check:" if finding.works else ":material/error:")


def _begin(
    problem: Problem,
    protocol: str,
    chosen: models_form.Chosen,
    settings: Settings,
    stepwise: bool,
    rules: Policy,
) -> None:
    try:
        job = runner.begin(
            problem,
            protocol,
            chosen.models,
            settings,
            api_key=chosen.key,
            owner=policy.visitor(),
            paused=stepwise,
            pace=SIMULATED_PACE,
            limits=rules.limits,
            hidden=rules.library == "private",
        )
    except runner.CannotStart as error:
        st.error(str(error), icon=":material/error:")
        return
    st.query_params.from_dict({"run": job.run_id})
    st.rerun()


def _own_jobs() -> None:
    """The visitor's runs under way, each a way to it."""
    me = policy.visitor()
    for job in runner.jobs():
        if job.owner == me and not job.done:
            label = f"Under way: {short(job.question, 70)}"
            if st.button(plain(label), key=f"live_watch_{job.run_id}", icon=":material/visibility:"):
                st.query_params.from_dict({"run": job.run_id})
                st.rerun()


__all__ = ["EXAMPLES", "fill", "form"]
