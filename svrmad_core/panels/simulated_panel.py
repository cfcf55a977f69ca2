"""A simulated panel: seeded agents, instant and free, for teaching, tests and offline demos."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass

from ..debate import Said
from ..records import Agent, Settings, Signals, Turn
from .base import Request, deal_agents

PREFIX = "simulated/"


@dataclass(frozen=True)
class Character:
    """What a simulated agent is like; all rates are probabilities in [0, 1].

    Attributes
    ----------
    skill
        Finds the right answer alone.
    hallucination
        If it does not, falls for the one wrong answer that others fall for too, and is very sure of it.
    yields_to_right, yields_to_wrong
        Takes over a right (a wrong) answer it hears, when its own is another one.
    """

    skill: float
    hallucination: float
    yields_to_right: float
    yields_to_wrong: float


PRESETS: dict[str, Character] = {
    "simulated/easy": Character(0.8, 0.2, 0.6, 0.1),
    "simulated/hard": Character(0.35, 0.3, 0.5, 0.25),
    "simulated/hallucination": Character(0.25, 0.85, 0.5, 0.2),
}
UNKNOWN_REFERENCE = "42"
"""The right answer of a simulated problem that comes without a reference answer."""
_WRONG = ("17", "23", "8", "60", "99", "5")


class SimulatedPanel:
    """Answers from seeded characters; the same seed gives the same debate.

    Parameters
    ----------
    models
        Preset names, dealt to the agents round-robin.
    seed
        Used when the settings give none.

    Raises
    ------
    ValueError
        If a name is not a preset.
    """

    simulated = True

    def __init__(self, models: list[str] | str = "simulated/hard", seed: int = 0) -> None:
        self.models = [models] if isinstance(models, str) else list(models)
        self.seed = seed
        for model in self.models:
            if model not in PRESETS:
                raise ValueError(f"no simulated panel {model!r}; there are {', '.join(PRESETS)}")

    def agents(self, settings: Settings) -> list[Agent]:
        seeded = settings if settings.seed is not None else settings.model_copy(update={"seed": self.seed})
        return deal_agents(self.models, seeded)

    async def ask(self, request: Request) -> Turn:
        state = request.debate.agents[request.ask.agent]
        agent = request.agent
        character = PRESETS[agent.model]
        chance = random.Random(
            _number(agent.seed, agent.name, request.round, request.ask.heard, request.debate.problem.question)
        )
        right, lure, wrong = _answers(request.debate.problem)
        heard = request.debate.heard_by(request.ask, request.round)
        if request.task == "summary":
            return _summary(heard, agent, chance)
        if request.round == 0:
            if chance.random() < character.skill:
                answer, confidence = right, chance.uniform(0.45, 0.9)
            elif chance.random() < character.hallucination:
                answer, confidence = lure, chance.uniform(0.8, 0.99)
            else:
                answer, confidence = chance.choice(wrong), chance.uniform(0.2, 0.7)
            why = "Working it out alone"
        else:
            answer, confidence = state.answer or chance.choice(wrong), chance.uniform(0.4, 0.9)
            why = f"The steps of {', '.join(s.agent for s in heard)} do not convince me"
            for said in heard:
                rate = character.yields_to_right if said.answer == right else character.yields_to_wrong
                if said.answer is not None and said.answer != answer and chance.random() < rate:
                    answer = said.answer
                    why = f"{said.agent} found a slip in my steps"
        confidence = round(confidence, 2)
        reply = f"{why}, I get {answer}.\nAnswer: \\boxed{{{answer}}}\nConfidence: {round(confidence * 100)}"
        mean = -0.6 * (1 - confidence) - 0.02
        replies = sum(len(e.reply) + sum(len(s.reply) for s in e.heard) for e in state.conversation)
        return Turn(
            reply=reply,
            answer=answer,
            confidence=confidence,
            signals=Signals(
                min_logprob=mean * 6,
                mean_logprob=mean,
                perplexity=2.718281828**-mean,
                tokens=120,
                nll_quantiles={"q90": -mean * 2.5, "q95": -mean * 3.5, "q99": -mean * 5},
            ),
            prompt_tokens=150 + (replies + sum(len(s.reply) for s in heard)) * 2,
            completion_tokens=120 + chance.randrange(80),
            cost=0.0,
            latency=round(1.0 + chance.random() * 2, 3),
            model=agent.model,
            finish_reason="stop",
        )


def _summary(heard: tuple[Said, ...], agent: Agent, chance: random.Random) -> Turn:
    held = ", ".join(f"{said.agent} says {said.answer or 'nothing'}" for said in heard)
    return Turn(
        reply=f"In our group {held}.",
        prompt_tokens=100 + sum(len(said.reply) for said in heard) * 2,
        completion_tokens=40 + chance.randrange(40),
        cost=0.0,
        latency=round(0.5 + chance.random(), 3),
        model=agent.model,
        finish_reason="stop",
    )


def _number(*parts: object) -> int:
    """A seed from any parts, the same in every process (``hash`` is not)."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest(), "big")


def _answers(problem: object) -> tuple[str, str, list[str]]:
    """(right, the shared wrong one, other wrong ones) for a problem."""
    kind, choices = getattr(problem, "kind", "math"), getattr(problem, "choices", [])
    reference = getattr(problem, "reference", None)
    if kind == "choice":
        letters = [chr(65 + i) for i in range(len(choices) or 4)]
        right = reference if reference in letters else letters[0]
        others = [x for x in letters if x != right]
        return right, others[0], others[1:] or others
    right = reference or UNKNOWN_REFERENCE
    others = [x for x in _WRONG if x != right]
    return right, others[0], others[1:]
