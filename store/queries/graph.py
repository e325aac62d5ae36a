"""The autograd graph of a run: nodes and edges, capped."""

from __future__ import annotations

from store.queries.answers import Graph
from store.run import RunRow
from store.session import Transaction


def graph(transaction: Transaction, run: RunRow, *, call: int | None = None, limit: int = 400) -> Graph:
    """The graph's first nodes and the edges among them.

    Args:
        call: Only nodes that this backward call met; None: all.
        limit: Nodes at most; `Graph.hidden` counts the others.
    """
    raise NotImplementedError
