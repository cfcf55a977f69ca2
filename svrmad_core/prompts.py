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

_ENDINGS = {
    "math": (
        "End with two lines: your answer in a box, then how sure you are, from 0 to 100. "
        "For example, asked for 3 + 4, the last two lines would be:\n"
        "Answer: \\boxed{7}\nConfidence: 90"
    ),
    "choice": (
        "End with two lines: the letter of your choice in a box, then how sure you are, from 0 to 100. "
        "For example, if option C were right, the last two lines would be:\n"
        "Answer: \\boxed{C}\nConfidence: 90"
    ),
    "text": (
        "End with two lines: your answer in a few words in a box, then how sure you are, from 0 to 100. "
        "For example, asked for the capital of France, the last two lines would be:\n"
        "Answer: \\boxed{Paris}\nConfidence: 90"
    ),
}

_SYSTEM = "You solve problems carefully and write briefly: short steps, each one checked."


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
    return (
        f"Question: {problem.question.strip()}{options}\n\n"
        f"Work it out step by step, in at most 200 words. {_ENDINGS[problem.kind]}"
    )


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
        return (
            f"{who} tried the same question.\n\n{told}\n\nCheck the steps, then answer the question yourself."
        )
    return (
        f"{who} worked on the same question.\n\n{told}\n\n"
        "Somebody is mistaken, and it may be either side. Find the first step where you and "
        f"{'they' if several else 'that solver'} differ, and work that step out again from the question. "
        "Keep your answer if your steps hold; change it only if you can name the step of yours that was wrong. "
        f"That somebody disagrees is no reason to change.\n\nReply in at most 150 words. {_ENDINGS[problem.kind]}"
    )
