"""A run under way: who is thinking, the buttons that steer it, and the stage that follows its end."""

from __future__ import annotations

import time
from collections.abc import Callable

import streamlit as st

from svrmad_core.debate import Debate
from svrmad_core.protocols import describe, protocol

from . import faults, inspector, policy, runner, stage
from .look import safe, short
from .timeline import jump

EVERY = 0.2
"""Seconds between two looks at a run that is under way."""
_DRAWN, _WHOLE = "live_drawn", "live_whole"
_CSS = """<style>
.svr-signs { display: flex; flex-wrap: wrap; gap: 6px; align-items: center; min-height: 2.2rem; }
.svr-signs .chip { border: 1px solid rgba(128,128,128,.4); border-radius: 999px; padding: 2px 12px; }
.svr-signs .wait { border-style: dashed; }
.svr-signs .dead { opacity: .55; text-decoration: line-through; }
.svr-signs .dots::after { content: "…"; animation: svr-think 1.2s steps(4, end) infinite; display: inline-block;
  width: 1em; overflow: hidden; vertical-align: bottom; }
@keyframes svr-think { from { width: 0; } to { width: 1em; } }
@media (prefers-reduced-motion: reduce) { .svr-signs .dots::after { animation: none; } }
.svr-next { border-left: 4px solid #0072B2; padding: 2px 12px; font-size: 1.05rem; }
</style>"""


def watch(job: runner.Job) -> None:
    """Everything about a run under way; begins the page anew once it is done."""
    st.session_state[_WHOLE] = True
    _ticker(job)
    _scene(job)


@st.fragment(run_every=EVERY)
def _ticker(job: runner.Job) -> None:
    """What changes by itself; tells the scene when there is more to draw."""
    if job.done:
        st.rerun()
    recording = job.recording()
    mine = job.owner is None or job.owner == policy.visitor()
    if mine:
        _buttons(job)
    else:
        st.caption("You are watching somebody else's debate as it happens.")
    if recording is None:
        st.html(f'{_CSS}<div class="svr-signs"><span class="dots">Starting</span></div>')
    else:
        st.html(_CSS + _signs(job, recording.fold()))
    whole = st.session_state.pop(_WHOLE, False)
    if not whole and job.steps != st.session_state.get(_DRAWN):
        st.rerun()


def _buttons(job: runner.Job) -> None:
    held, scrubbed = job.paused, "step" in st.query_params

    def back() -> None:
        st.query_params.pop("step", None)
        jump()
        # the scene is to be drawn even if nothing new has come
        st.session_state[_DRAWN] = None

    with st.container(horizontal=True, vertical_alignment="center"):
        if held:
            _button("Go on", "play_arrow", job.go_on, job.stopping, "Run on without pauses")
        else:
            _button("Pause", "pause", job.pause, job.stopping, "Hold before the next step; calls under way finish")
        _button("Step", "skip_next", job.step, job.stopping or bool(job.asking), "Make one step, then hold")
        _button("Stop", "stop", job.stop, job.stopping, "End now with a vote over the answers so far; all is kept")
        if scrubbed:
            _button("Back to the live end", "last_page", back, False, "Follow the debate again")


def _button(label: str, icon: str, act: Callable[[], None], disabled: bool, tip: str) -> None:
    st.button(label, icon=f":material/{icon}:", on_click=act, disabled=disabled, help=tip, key=f"live_do_{icon}")


def _signs(job: runner.Job, debate: Debate) -> str:
    """Who is thinking, who waits for the provider, who has failed; while held, what will be asked of whom."""
    if job.stopping:
        return '<div class="svr-signs"><span class="dots">Stopping</span></div>'
    chips = [_chip(asking) for asking in job.asking]
    gone = [s for s in debate.agents.values() if s.failure is not None]
    chips += [f'<span class="chip dead" title="{safe(s.failure.message)}">{s.name}</span>' for s in gone if s.failure]
    if not job.asking and job.paused and debate.finished is None:
        step = describe(protocol(debate.protocol).next_step(debate))
        return (
            f'<div class="svr-next">Held. The next step: {safe(step)}. Nothing is sent until you press Step.</div>'
            f'<div class="svr-signs">{"".join(chips)}</div>'
        )
    return f'<div class="svr-signs">{"".join(chips) or "<span class=dots>Deciding</span>"}</div>'


def _chip(asking: runner.Asking) -> str:
    heard = f" on {', '.join(asking.heard[:3])}{' and others' if len(asking.heard) > 3 else ''}" if asking.heard else ""
    now = time.time()
    if asking.waits_until is not None and asking.waits_until > now:
        why = faults.WAITS.get(asking.why or "", "the provider failed")
        left = max(1, round(asking.waits_until - now))
        return f'<span class="chip wait">{asking.agent}: {why}, tries again in {left} s</span>'
    seconds = int(now - asking.since)
    came = f" · {asking.tokens} tokens" if asking.tokens else ""
    return f'<span class="chip"><b>{asking.agent}</b> thinks{heard}<span class="dots"></span> {seconds} s{came}</span>'


@st.fragment
def _scene(job: runner.Job) -> None:
    """The stage at the step in the link, else at the end."""
    recording = job.recording()
    st.session_state[_DRAWN] = len(recording.events) if recording is not None else 0
    if recording is None:
        st.html(f'<div class="svr-head"><div class="q">{safe(short(job.question, 400))}</div></div>')
        return
    k = stage.step_in_link(len(recording.events))
    faults.tell(recording.fold(k))
    stage.draw(recording.run_id, recording, k, None, live=True)
    inspector.transcript(recording, k)


__all__ = ["EVERY", "watch"]
