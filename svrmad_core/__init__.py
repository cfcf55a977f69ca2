"""SVR-MAD, step by step: run a debate, record it, fold it, check it. No Streamlit and no Plotly in here."""

from __future__ import annotations

from .answers import ReadReply, read_reply, same_answer
from .debate import AgentState, Ask, Debate, Link, fold
from .engine import Control, resume, run
from .panels import LiteLLMPanel, Panel, PanelError, RecordedPanel, SimulatedPanel
from .protocols import PROTOCOLS
from .recording import Departure, Recorder, Recording, RecordingError, load, verify
from .records import (
    APP_VERSION,
    SCHEMA,
    Agent,
    Answered,
    Debated,
    Paused,
    Problem,
    ReceiverChosen,
    Resumed,
    Revised,
    RunFinished,
    RunStarted,
    Settings,
    Signals,
    Totals,
    Turn,
    TurnFailed,
    Verdict,
)
from .what_if import WhatIf, what_if

__version__ = APP_VERSION

__all__ = [
    "APP_VERSION",
    "PROTOCOLS",
    "SCHEMA",
    "Agent",
    "AgentState",
    "Answered",
    "Ask",
    "Control",
    "Debate",
    "Debated",
    "Departure",
    "Link",
    "LiteLLMPanel",
    "Panel",
    "PanelError",
    "Paused",
    "Problem",
    "ReadReply",
    "ReceiverChosen",
    "RecordedPanel",
    "Recorder",
    "Recording",
    "RecordingError",
    "Resumed",
    "Revised",
    "RunFinished",
    "RunStarted",
    "Settings",
    "Signals",
    "SimulatedPanel",
    "Totals",
    "Turn",
    "TurnFailed",
    "Verdict",
    "WhatIf",
    "fold",
    "load",
    "read_reply",
    "resume",
    "run",
    "same_answer",
    "verify",
    "what_if",
]
