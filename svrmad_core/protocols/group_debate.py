"""GroupDebate: in each round the agents are divided at random into groups of 3, and each hears its own group.

::

    round 1   A1 ◀▶ A4      A2 ◀▶ A3         new groups each round, drawn with the seed
               ╲▶◀╱          ╲▶◀╱            N (g - 1) links a round for groups of g: 2 N for groups of 3
                A6            A5

    with summaries (the original's stages): the groups stay, and from the second round on

    A1 A4 A6 ──▶ one call writes a summary ──▶ A2, A3 and A5 hear it too

Liu et al., *GroupDebate: Enhancing the Efficiency of Multi-Agent Debate Using Group Discussion*, 2024,
arXiv 2409.14051. Full replies are exchanged by default, as in the SVR-MAD paper's comparison. A summary that an agent
of another group hears counts as a link from who wrote it; reading the group to write it counts in calls and tokens.
"""

from __future__ import annotations

import hashlib

from ..debate import Ask, Debate
from .rounds import in_rounds, speakers
from .steps import Step, Summarize, missing_answers


def next_step(debate: Debate) -> Step:
    """Ask all; then rounds within groups until consensus, T rounds, or a spent budget, and the vote."""
    return missing_answers(debate) or in_rounds(debate, _asks, before=_summaries)


def groups(debate: Debate, number: int) -> list[tuple[str, ...]]:
    """The groups of a round, each in the order of its agents.

    As many groups as it takes for none to be larger than ``group_size``, as even as can be; who is in which depends
    on nothing but the seed (0 if none is set) and, without summaries, the round.
    """
    settings = debate.settings
    names = list(debate.agents)
    drawn = 1 if settings.summaries else number
    shuffled = sorted(names, key=lambda name: _draw(settings.seed or 0, drawn, name))
    count = -(-len(names) // settings.group_size)
    found = [sorted(shuffled[i::count], key=names.index) for i in range(count)]
    return [tuple(group) for group in sorted(found, key=lambda group: names.index(group[0]))]


def _draw(*parts: object) -> bytes:
    """Chance that is the same in every process and version."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()


def _asks(debate: Debate, number: int) -> list[Ask]:
    said, members = set(speakers(debate, number)), set(debate.in_round(number))
    parts = groups(debate, number)
    writers = {part: _writer(debate, part, number) for part in parts}
    asks = {}
    for part in parts:
        told = tuple(w for other, w in writers.items() if other != part and w is not None)
        for name in part:
            heard = tuple(n for n in part if n in said and n != name)
            if name in members and (heard or told):
                asks[name] = Ask(name, heard, told)
    return [asks[name] for name in debate.agents if name in asks]


def _writer(debate: Debate, part: tuple[str, ...], number: int) -> str | None:
    """Who has written the summary of a group that others hear in this round."""
    written = (name for name in part if debate.summaries.get((number, name)) is not None)
    return next(written, None) if debate.settings.summaries else None


def _summaries(debate: Debate, number: int) -> Summarize | None:
    """The summaries still to be written before a round: by the first of each group that can be asked.

    A group whose summary failed goes without.
    """
    if not debate.settings.summaries or number < 2:
        return None
    said, members = set(speakers(debate, number)), set(debate.in_round(number))
    asks = []
    for part in groups(debate, number):
        heard = tuple(name for name in part if name in said)
        able = [name for name in heard if name in members]
        if able and not any((number, name) in debate.summaries for name in part):
            asks.append(Ask(able[0], heard))
    if not asks or debate.lacking(asks, links=False):
        return None
    return Summarize(number, tuple(asks))


def why(debate: Debate, ask: Ask, number: int) -> str:
    """Why an agent hears whom it hears."""
    if not ask.heard and not ask.summaries:
        return ""
    shown = " | ".join(" ".join(part) for part in groups(debate, number))
    drawn = "drawn once" if debate.settings.summaries else f"drawn anew for round {number}"
    told = f"The groups, {drawn} with seed {debate.settings.seed or 0}: {shown}. {ask.agent} hears its own group."
    if ask.summaries:
        told += f" The other groups are heard as summaries, written by {', '.join(ask.summaries)}."
    return told
