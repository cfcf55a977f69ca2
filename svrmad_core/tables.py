"""A run as pandas tables: turns, scores by step, agents, links.

pandas is imported when a table is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .debate import Debate, fold

if TYPE_CHECKING:
    import pandas as pd

OUTCOMES = {True: "retained", False: "changed", None: "void"}


def turns(events: Sequence[Any]) -> pd.DataFrame:
    """Every turn, one row each.

    Parameters
    ----------
    events
        The events of a run.

    Returns
    -------
    pandas.DataFrame
        ``step`` (the number of events after it), ``round`` (0: initial answer), ``agent``, ``heard`` (names, comma
        between), ``answer``, ``before`` and ``after`` (beliefs as numbers), ``outcome`` (retained, changed, void; empty
        for an initial answer), ``confidence``, ``perplexity``, ``min_logprob`` (nats), ``prompt_tokens``,
        ``completion_tokens``, ``cost`` (US dollars), ``latency`` (seconds), ``model``, ``finish_reason``, ``reply``.
    """
    import pandas as pd

    return pd.DataFrame(list(_turns(events)), columns=_TURN_COLUMNS)


_TURN_COLUMNS = (
    *("step", "round", "agent", "heard", "answer", "before", "after", "outcome", "confidence", "perplexity"),
    *("min_logprob", "prompt_tokens", "completion_tokens", "cost", "latency", "model", "finish_reason", "reply"),
)


def _turns(events: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for event in events:
        turn = getattr(event, "turn", None)
        if turn is None:
            continue
        if event.event == "answered":
            who, heard, before, after, outcome, number = event.agent, "", None, event.belief, "", 0
        elif event.event == "debated":
            who, heard, before, after = event.receiver, event.challenger, event.before, event.after
            outcome, number = OUTCOMES[event.retained], event.round
        else:
            who, heard, before, after = event.agent, ", ".join(event.heard), event.before, event.after
            outcome, number = OUTCOMES[None if after is None else after == before], event.round
        signals = turn.signals
        yield (
            *(event.seq + 1, number, who, heard, turn.answer, before, after, outcome, turn.confidence),
            *((signals.perplexity, signals.min_logprob) if signals else (None, None)),
            *(turn.prompt_tokens, turn.completion_tokens, turn.cost, turn.latency, turn.model),
            *(turn.finish_reason, turn.reply),
        )


def scores(events: Sequence[Any]) -> pd.DataFrame:
    """Every agent after every step, one row each.

    Returns
    -------
    pandas.DataFrame
        ``step``, ``agent``, ``belief`` (a number), ``answer``, ``prior`` (on the scale of the settings), ``D``, ``r``,
        ``c``, ``void``, ``svr`` (in [-1, 1]; empty before the first debate), ``score`` (what it is ranked by; empty
        before its answer).
    """
    import pandas as pd

    debate = Debate(events[0])
    rows = []
    for event in events:
        if event.seq:
            debate.apply(event)
        for s in debate.agents.values():
            score = debate.score(s.name) if s.turns else None
            prior = s.prior if s.turns else None
            rows.append(
                (debate.k, s.name, s.belief, s.answer, prior, s.debates, s.retained, s.changed, s.void, s.svr, score)
            )
    columns = ("step", "agent", "belief", "answer", "prior", "D", "r", "c", "void", "svr", "score")
    return pd.DataFrame(rows, columns=columns)


def agents(events: Sequence[Any], k: int | None = None) -> pd.DataFrame:
    """The agents after ``k`` events, one row each; None takes all.

    Returns
    -------
    pandas.DataFrame
        ``agent``, ``model``, ``first_answer``, ``answer``, ``prior``, ``prior_signal``, ``D``, ``r``, ``c``, ``void``,
        ``svr``, ``score``, ``failed`` (the message; empty if it did not).
    """
    import pandas as pd

    debate = fold(events, k)
    rows = [
        (
            *(s.name, s.agent.model, s.turns[0][1].answer if s.turns else None, s.answer),
            *(s.prior if s.turns else None, s.prior_signal, s.debates, s.retained, s.changed, s.void, s.svr),
            *(debate.score(s.name) if s.turns else None, s.failure.message if s.failure else None),
        )
        for s in debate.agents.values()
    ]
    columns = (
        *("agent", "model", "first_answer", "answer", "prior", "prior_signal", "D", "r", "c", "void"),
        *("svr", "score", "failed"),
    )
    return pd.DataFrame(rows, columns=columns)


def links(events: Sequence[Any], k: int | None = None) -> pd.DataFrame:
    """The links of the first ``k`` events, one row each; None takes all.

    Returns
    -------
    pandas.DataFrame
        ``link`` (1, 2, ...), ``step``, ``round``, ``challenger``, ``receiver``, ``challenger_answer``, ``before`` and
        ``after`` (the receiver's answers), ``outcome`` (retained, changed, void).
    """
    import pandas as pd

    debate = fold(events, k)

    def said(belief: int | None) -> str | None:
        return None if belief is None else debate.beliefs[belief]

    rows = [
        (
            *(i, x.seq + 1, x.round, x.challenger, x.receiver, said(x.challenger_belief)),
            *(said(x.before), said(x.after), OUTCOMES[x.retained]),
        )
        for i, x in enumerate(debate.links, 1)
    ]
    columns = (
        *("link", "step", "round", "challenger", "receiver", "challenger_answer"),
        *("before", "after", "outcome"),
    )
    return pd.DataFrame(rows, columns=columns)
