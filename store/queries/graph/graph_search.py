"""Nodes of a graph by a word: their type, their module call, or the name of their tensor; also those not drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.in_clause import among
from store.database.session import Transaction
from store.queries.graph.graph_answers import GraphMatch
from store.queries.graph.graph_part import in_pieces
from store.records.reader import at_key
from store.runs.model import RunKey

MOST_MATCHES: Final = 20
"""Told; the others are counted."""

_t: Final = tables.tensor
_n: Final = tables.node
_s: Final = tables.site


def matches(
    transaction: Transaction,
    key: RunKey,
    rows: Mapping[int, Any],
    chains: Mapping[int, str],
    word: str,
) -> tuple[list[tuple[int, str]], int]:
    """The first nodes of a graph that have the word, each with a label, and how many there are.

    Args:
        transaction: To read by.
        key: Of the run's visible attempt.
        rows: The graph's nodes by number.
        chains: Of each module call.
        word: Looked for in lower and upper case alike.
    """
    low = word.casefold()
    names = _named(transaction, key, low)
    found = [
        (node, _label(row, chains, names))
        for node, row in rows.items()
        if row.tensor in names
        or low in row.type.casefold()
        or (row.variable is None and row.module_call is not None and low in chains[row.module_call].casefold())
    ]
    return found[:MOST_MATCHES], len(found)


def _named(transaction: Transaction, key: RunKey, low: str) -> dict[int, str]:
    like = [sa.func.lower(column).contains(low, autoescape=True) for column in (_t.c.name, _t.c.fqn)]
    query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn).where(at_key(_t, key), sa.or_(*like))
    return {row.tensor: row.fqn or row.name for row in transaction.execute(query)}


def _label(row: Any, chains: Mapping[int, str], names: Mapping[int, str]) -> str:
    if row.tensor in names:
        return names[row.tensor]
    inside = chains.get(row.module_call) if row.module_call is not None and row.variable is None else None
    return row.type if inside is None else f"{inside} {row.type}"


def told(
    transaction: Transaction,
    key: RunKey,
    found: list[tuple[int, str]],
    box_of: Mapping[int, str],
    ways: Mapping[int, tuple[str, ...]],
) -> tuple[GraphMatch, ...]:
    """Matches with their lines and boxes; `ways`: what is to be opened so that the node stands alone."""
    lines: dict[int, int] = {}
    for piece in in_pieces([node for node, _ in found]):
        at = sa.and_(*[_s.c[name] == _n.c[name] for name in tables.KEY], _s.c.site == _n.c.site)
        query: Any = sa.select(_n.c.node, _s.c.line).join_from(_n, _s, at)
        lines |= {
            row.node: row.line for row in transaction.execute(query.where(at_key(_n, key), among(_n.c.node, piece)))
        }
    return tuple(
        GraphMatch(node=node, label=label, line=lines.get(node), box=box_of.get(node), open=ways[node])
        for node, label in found
    )
