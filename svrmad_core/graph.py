"""The communication graph of a debate as a networkx.DiGraph."""

from __future__ import annotations

import networkx as nx

from .debate import Debate


def communication_graph(debate: Debate) -> nx.DiGraph:
    """Who has challenged whom so far.

    Parameters
    ----------
    debate
        The state after k events.

    Returns
    -------
    networkx.DiGraph
        A node an agent with ``index``, ``belief``, ``answer``, ``prior``, ``score``, ``retained``, ``changed``,
        ``failed``; an edge challenger -> receiver with ``links`` (list of ``Link``, oldest first) and
        ``number`` (the place of the last one among all links, from 1).
    """
    graph = nx.DiGraph(protocol=debate.protocol, run_id=debate.started.run_id)
    for state in debate.agents.values():
        graph.add_node(
            state.name,
            index=state.index,
            belief=state.belief,
            answer=state.answer,
            prior=state.prior,
            score=debate.score(state.name) if state.turns else None,
            retained=state.retained,
            changed=state.changed,
            failed=state.failure is not None,
        )
    for place, link in enumerate(debate.links, 1):
        if graph.has_edge(link.challenger, link.receiver):
            edge = graph.edges[link.challenger, link.receiver]
            edge["links"].append(link)
            edge["number"] = place
        else:
            graph.add_edge(link.challenger, link.receiver, links=[link], number=place)
    return graph


def all_to_all_links(agents: int, rounds: int = 2) -> int:
    """Links of an all-to-all debate, N (N - 1) a round, for comparison."""
    return agents * (agents - 1) * rounds
