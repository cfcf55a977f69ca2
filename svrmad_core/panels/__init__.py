"""Panels: whatever answers for the agents. Only these talk to a model."""

from __future__ import annotations

from ..records import Settings
from .base import Panel, PanelError, Request, deal_agents
from .litellm_panel import LiteLLMPanel
from .recorded_panel import RecordedPanel
from .simulated_panel import PREFIX, PRESETS, SimulatedPanel


def panel_for(models: list[str], settings: Settings, api_key: str | None = None) -> Panel:
    """The panel that answers for these models: a simulated one, or one through LiteLLM.

    Parameters
    ----------
    models
        Names of simulated agents (``simulated/hard``) or LiteLLM ids, not both.
    settings
        Where the models are served, and the budget in dollars, which needs a price for each of them.
    api_key
        The key for all of the models; None: from the environment.

    Raises
    ------
    ValueError
        If no panel can be made of them; one sentence.
    PanelError
        If LiteLLM knows no provider of a model whose price the budget needs.
    """
    simulated = [m for m in models if m.startswith(PREFIX)]
    if simulated:
        if len(simulated) < len(models):
            raise ValueError("simulated agents and real models cannot share a run")
        return SimulatedPanel(models)
    panel = LiteLLMPanel(models, api_base=settings.api_base, api_key=api_key)
    # only a budget needs prices, and asking for them imports LiteLLM
    if settings.max_cost is not None and (unknown := panel.unpriced()):
        raise ValueError(
            f"--max-cost cannot be held: there is no known price for {', '.join(unknown)}; use --max-tokens-total"
        )
    return panel


__all__ = [
    "PRESETS",
    "LiteLLMPanel",
    "Panel",
    "PanelError",
    "RecordedPanel",
    "Request",
    "SimulatedPanel",
    "deal_agents",
    "panel_for",
]
