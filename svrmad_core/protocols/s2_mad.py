"""S2-MAD: a redundancy filter; an agent hears one representative of each *other* belief.

::

    A1 (12) ◀── A3 (15)        A2 holds 12 too: nobody needs to hear it beside A1
    A2 (12) ◀── A3 (15)        (beliefs - 1) links for each participant, T = 2 rounds
    A3 (15) ◀── A1 (12)

Zeng et al., *S2-MAD: Breaking the Token Barrier to Enhance Multi-Agent Debate Efficiency*, 2025, arXiv 2502.04790.
The representative is the highest-ranked holder of its belief. An agent with nobody to hear sits out. The original's
grouping is off, so that it compares (its published link counts exceed GroupDebate's).
"""

from __future__ import annotations

from ..debate import Ask, Debate
from .rounds import in_rounds
from .steps import Step, missing_answers


def next_step(debate: Debate) -> Step:
    """Ask all; then rounds of the filtered debate until consensus, T rounds, or a spent budget, and the vote."""
    return missing_answers(debate) or in_rounds(debate, _asks)


def _held(debate: Debate, number: int) -> dict[str, int | None]:
    """What each agent held when a round began."""
    found = {}
    for name in debate.agents:
        said = debate.last_said(name, number)
        found[name] = said.belief if said is not None else None
    return found


def representatives(debate: Debate, number: int) -> dict[int, str]:
    """belief -> its highest-ranked holder when a round began, in the order of that ranking."""
    held = _held(debate, number)
    found: dict[int, str] = {}
    # scores do not move here: an agent that revises is not debated, so all rank by their priors
    for name in sorted(debate.agents, key=lambda n: (-debate.score(n), debate.agents[n].index)):
        belief = held[name]
        if belief is not None:
            found.setdefault(belief, name)
    return found


def _asks(debate: Debate, number: int) -> list[Ask]:
    held, speak = _held(debate, number), representatives(debate, number)
    asks = [
        Ask(name, tuple(speaker for belief, speaker in speak.items() if belief != held[name]))
        for name in debate.in_round(number)
    ]
    return [ask for ask in asks if ask.heard]


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent hears whom it hears."""
    if not ask.heard:
        return ""
    held = _held(debate, number)
    spared = [n for n, b in held.items() if b is not None and n != ask.agent and n not in ask.heard]
    told = f"One agent for each other answer, the highest-ranked that holds it: {', '.join(ask.heard)}."
    return f"{told} {', '.join(spared)} would only say again what is known." if spared else told
