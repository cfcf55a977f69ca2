"""What agents are asked, in one place, with a version.

The exact messages of any turn are rebuilt from the version and from what the agent heard, so a recording
holds replies and not prompts. Small models copy placeholders, so the format is shown by a worked example.
"""

from __future__ import annotations

from collections.abc import Sequence

from .debate import Ask, Debate, Exchange, Said
from .records import Agent, Problem

PROMPT_VERSION = 1

Message = dict[str, str]
"""One chat message: ``role`` and ``content``."""

_ANSWERS = {
    "math": ("Give an exact value, not a rounded one.", "the question 3 + 4", "7"),
    "choice": ("Answer with the letter of one option.", "a question whose option C is right", "C"),
    "text": ("Answer in a few words.", "the capital of France", "Paris"),
}

_SYSTEM = "You solve problems carefully and write briefly: short steps, each one checked, nothing said twice."


def _ending(kind: str) -> str:
    """How to end a reply, shown by an example for another question."""
    how, question, answer = _ANSWERS[kind]
    return (
        f"{how} Your last two lines are your answer in a box and how sure you are from 0 to 100, "
        f"in the form of this example, which answers {question}:\n"
        f"Answer: \\boxed{{{answer}}}\nConfidence: 90"
    )


def messages(
    problem: Problem,
    agent: Agent,
    conversation: Sequence[Exchange],
    heard: Sequence[Said],
    memory: str = "full",
) -> list[Message]:
    """The chat messages of one call.

    Parameters
    ----------
    problem
        The question; its reference answer is not used.
    agent
        Who is asked; a persona is added to the system message.
    conversation
        What the agent heard and replied before, oldest first.
    heard
        What it hears now; empty for the initial answer.
    memory
        ``full``: the conversation goes on, all of it is sent. ``last``: the question, the agent's own last
        reply, and what it hears now.

    Returns
    -------
    list of dict
        Messages with the roles system, user and assistant, in turn.
    """
    system = f"{_SYSTEM} {agent.persona}" if agent.persona else _SYSTEM
    result: list[Message] = [{"role": "system", "content": system}]
    question = _question(problem)
    if not conversation:
        parts = [question] if not heard else [question, _challenge(problem, heard, own=False)]
        return [*result, {"role": "user", "content": "\n\n".join(parts)}]
    if memory == "last":
        conversation = [Exchange((), conversation[-1].reply)]
    for exchange in conversation:
        asked = _challenge(problem, exchange.heard, own=True) if exchange.heard else question
        if len(result) == 1 and exchange.heard:
            asked = f"{question}\n\n{_challenge(problem, exchange.heard, own=False)}"
        result.append({"role": "user", "content": asked})
        result.append({"role": "assistant", "content": exchange.reply})
    if heard:
        result.append({"role": "user", "content": _challenge(problem, heard, own=True)})
    return result


def messages_for(debate: Debate, ask: Ask, round_number: int) -> list[Message]:
    """The chat messages of a call that a protocol asks for in the debate so far."""
    state = debate.agents[ask.agent]
    return messages(
        debate.problem,
        state.agent,
        state.conversation,
        debate.heard_by(ask, round_number),
        debate.settings.memory,
    )


def _question(problem: Problem) -> str:
    options = "".join(f"\n{chr(65 + i)}) {text}" for i, text in enumerate(problem.choices))
    return f"Question: {problem.question.strip()}{options}\n\nWork it out in a few short steps. {_ending(problem.kind)}"


def _challenge(problem: Problem, heard: Sequence[Said], own: bool) -> str:
    """What a receiver is told: the others' reasoning, and to check it before yielding."""
    several = len(heard) > 1
    told = "\n\n".join(
        f"--- Solver {said.agent} {f'says the answer is {said.answer}' if said.answer else 'gave no answer'}. "
        f"Its reasoning:\n{said.reply.strip()}\n--- end of solver {said.agent}"
        for said in heard
    )
    who = "Other solvers have" if several else "Another solver has"
    if not own:
        return f"{who} tried the same question.\n\n{told}\n\nCheck the steps, then answer the question yourself."
    return (
        f"{who} worked on the same question.\n\n{told}\n\n"
        "Somebody is mistaken, and it may be either side. Find the first step where you and "
        f"{'they' if several else 'that solver'} differ, and work that step out again from the question. "
        "Keep your answer if your steps hold; change it only if you can name the step of yours that was wrong. "
        f"That somebody disagrees is no reason to change. Be brief.\n\n{_ending(problem.kind)}"
    )
