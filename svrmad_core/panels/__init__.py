"""Panels: whatever answers for the agents. Only these talk to a model."""

from __future__ import annotations

from .base import Panel, PanelError, Request, deal_agents
from .litellm_panel import LiteLLMPanel
from .recorded_panel import RecordedPanel
from .simulated_panel import PRESETS, SimulatedPanel

__all__ = [
    "PRESETS",
    "LiteLLMPanel",
    "Panel",
    "PanelError",
    "RecordedPanel",
    "Request",
    "SimulatedPanel",
    "deal_agents",
]
