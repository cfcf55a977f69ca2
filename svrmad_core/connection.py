"""One tiny call to each model, to say in a sentence whether it can be used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from .debate import Ask, fold
from .panels import LiteLLMPanel, PanelError, Request
from .panels.simulated_panel import PREFIX
from .prompts import PROMPT_VERSION
from .records import Problem, RunStarted, Settings, Turn

QUESTION = Problem(question="What is 2 + 2?")
MOST_TOKENS = 300
SECONDS = 30.0


@dataclass(frozen=True)
class Finding:
    """What one call told: whether the model can be used, and a sentence on it."""

    model: str
    works: bool
    sentence: str


async def check(
    models: Sequence[str], settings: Settings, api_key: str | None = None, timeout: float = SECONDS
) -> list[Finding]:
    """Call each model once, all at the same time.

    Parameters
    ----------
    models
        LiteLLM ids or simulated agents.
    settings
        Of the run to come: where the models are served, and the prior it asks for.
    api_key
        The key for all of them; None: from the environment.
    timeout
        Seconds for each.

    Returns
    -------
    list of Finding
        In the models' order; no sentence holds a secret.
    """
    return list(await asyncio.gather(*(_check(m, settings, api_key, timeout) for m in dict.fromkeys(models))))


async def _check(model: str, settings: Settings, api_key: str | None, timeout: float) -> Finding:
    if model.startswith(PREFIX):
        return Finding(model, True, f"{model} is simulated: it needs no key and answers at once.")
    panel = LiteLLMPanel(model, api_base=settings.api_base, api_key=api_key, attempts=1)
    asked = settings.model_copy(update={"agents": 1, "max_tokens": MOST_TOKENS, "timeout": timeout, "seed": None})
    started = RunStarted(
        seq=0,
        run_id="connection",
        protocol="self_consistency",
        settings=asked,
        problem=QUESTION,
        agents=panel.agents(asked),
        prompt_version=PROMPT_VERSION,
    )
    try:
        turn = await panel.ask(Request(fold([started]), Ask("A1"), 0))
    except PanelError as error:
        return Finding(model, False, error.message)
    finally:
        await panel.aclose()
    return Finding(model, bool(turn.reply.strip()), _sentence(model, turn, settings, panel))


def _sentence(model: str, turn: Turn, settings: Settings, panel: LiteLLMPanel) -> str:
    if not turn.reply.strip():
        spent = turn.finish_reason == "length" or turn.reasoning
        why = (
            f"it spent its {MOST_TOKENS} tokens thinking: leave it at least 4,096 tokens a reply"
            if spent
            else "its reply was empty: try another model"
        )
        return f"{model} can be reached and the key works, but {why}."
    read = "" if turn.answer is not None else ", but its answer cannot be read (it does not end in the form asked for)"
    told = "log-probabilities come along"
    if turn.signals is None:
        told = "it gives no log-probabilities"
        if settings.prior in ("perplexity", "min_logprob"):
            told += ", so priors will come from stated confidence"
    told += (
        ", and its replies can be watched as they are written"
        if panel.streams(model)
        else ", so its replies come whole: a stream could lose them"
        if turn.signals is not None
        else ""
    )
    dropped = panel.dropped.get(model, set()) - {"logprobs"}
    left_out = f"; it takes no {' and no '.join(sorted(dropped))}" if dropped else ""
    return f"{model} answers in {turn.latency:.1f} s{read}; {told}{left_out}."


__all__ = ["Finding", "check"]
