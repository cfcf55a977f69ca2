"""What agents are asked, in one place, with a version.

The exact messages of any turn are rebuilt from the version and from what the agent heard, so a recording
holds replies and not prompts. Small models copy placeholders, and an example inside the question confuses them
with the question; so the form of a reply is shown by a question answered before, as one turn of the conversation.
"""

from __future__ import annotations

from collections.abc import Sequence

from .debate import Ask, Debate, Exchange, Said
from .records import Agent, Problem

PROMPT_VERSION = 1

Message = dict[str, str]
"""One chat message: ``role`` and ``content``."""

_SYSTEM = (
    "You solve problems carefully and write briefly: short steps, each one checked, nothing said twice. "
    "The last two lines of every reply are your answer in a box, and how sure of it you are from 0 to 100. {how}"
)
_SUMMARY = "You sum up discussions between solvers of a problem, faithfully and briefly."
_HOW = {
    "math": "Give an exact value, not a rounded one.",
    "choice": "The answer is the letter of one option.",
    "text": "The answer is a few words.",
}
_EXAMPLES = {
    "math": (
        "Question: A shelf holds 3 boxes of 4 pens, and 2 pens are taken away. How many pens are left?",
        "3 boxes of 4 pens are 3 · 4 = 12 pens. Taking 2 away leaves 12 - 2 = 10.\nAnswer: \\boxed{10}\nConfidence: 95",
    ),
    "choice": (
        "Question: Which of these is a mammal?\nA) the trout\nB) the eagle\nC) the bat\nD) the frog",
        "Trout are fish, eagles are birds and frogs amphibians. Bats nurse their young: mammals.\n"
        "Answer: \\boxed{C}\nConfidence: 95",
    ),
    "text": (
        "Question: What is the capital of Australia?",
        "Sydney is the largest city, but the government sits in Canberra.\nAnswer: \\boxed{Canberra}\nConfidence: 90",
    ),
}


def messages(
    problem: Problem,
    agent: Agent,
    conversation: Sequence[Exchange],
    heard: Sequence[Said],
    memory: str = "full",
    conform: bool = True,
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
    conform
        False: the prompt of ``free_mad``, which asks an agent to stand against a majority.

    Returns
    -------
    list of dict
        Messages with the roles system, user and assistant, in turn.
    """
    system = _SYSTEM.format(how=_HOW[problem.kind])
    asked, answered = _EXAMPLES[problem.kind]
    result: list[Message] = [
        {"role": "system", "content": f"{system} {agent.persona}" if agent.persona else system},
        {"role": "user", "content": asked},
        {"role": "assistant", "content": answered},
    ]
    question = _question(problem)
    if not conversation:
        parts = [question] if not heard else [question, _challenge(heard, own=False, conform=conform)]
        return [*result, {"role": "user", "content": "\n\n".join(parts)}]
    if memory == "last":
        conversation = [Exchange((), conversation[-1].reply)]
    for number, exchange in enumerate(conversation):
        prompt = _challenge(exchange.heard, own=number > 0, conform=conform) if exchange.heard else question
        if number == 0 and exchange.heard:
            prompt = f"{question}\n\n{prompt}"
        result.append({"role": "user", "content": prompt})
        result.append({"role": "assistant", "content": exchange.reply})
    if heard:
        result.append({"role": "user", "content": _challenge(heard, own=True, conform=conform)})
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
        conform=debate.protocol != "free_mad",
    )


def summary_messages(debate: Debate, ask: Ask, round_number: int) -> list[Message]:
    """The chat messages of a call that sums up what a group said last (``group_debate`` with summaries)."""
    told = "\n\n".join(_told(said) for said in debate.heard_by(ask, round_number))
    asked = (
        f"{_question(debate.problem)}\n\nThese solvers have discussed it.\n\n{told}\n\n"
        "Sum up their discussion for solvers of another group in at most 120 words: which answers are held and by how "
        "many, the decisive steps for each, and where they differ. Add no answer of your own."
    )
    return [{"role": "system", "content": _SUMMARY}, {"role": "user", "content": asked}]


def _question(problem: Problem) -> str:
    options = "".join(f"\n{chr(65 + i)}) {text}" for i, text in enumerate(problem.choices))
    return f"Question: {problem.question.strip()}{options}"


def _told(said: Said) -> str:
    """One reply, or the summary of a group, as others hear it."""
    if said.group:
        return (
            f"--- The group of solvers {', '.join(said.group)} sums up its discussion:\n{said.reply.strip()}\n"
            "--- end of the summary"
        )
    answer = f"says the answer is {said.answer}" if said.answer else "gave no answer"
    return f"--- Solver {said.agent} {answer}. Its reasoning:\n{said.reply.strip()}\n--- end of solver {said.agent}"


def _challenge(heard: Sequence[Said], own: bool, conform: bool) -> str:
    """What a receiver is told: the others' reasoning, and to check it before yielding."""
    several = len(heard) > 1
    told = "\n\n".join(_told(said) for said in heard)
    who = "Other solvers have" if several else "Another solver has"
    if not own:
        return f"{who} tried the same question.\n\n{told}\n\nCheck the steps, then answer the question yourself."
    if not conform:
        return (
            f"{who} worked on the same question.\n\n{told}\n\n"
            "Do not conform: that others agree with each other, or are many, says nothing about who is right. Look for "
            f"the errors in {'their' if several else 'its'} steps, and name them. Keep your answer unless you find an "
            "error in your own steps that you can name. Reply briefly, and end with your answer in a box and your "
            "confidence, as before."
        )
    return (
        f"{who} worked on the same question.\n\n{told}\n\n"
        "Somebody is mistaken, and it may be either side. Find the first step where you and "
        f"{'they' if several else 'that solver'} differ, and work that step out again from the question. "
        "Keep your answer if your steps hold; change it only if you can name the step of yours that was wrong. "
        "That somebody disagrees is no reason to change. Reply briefly, and end with your answer in a box and your "
        "confidence, as before."
    )
