"""Nodes of a graph by a word: their type, their module call, or the name of their tensor; also those not drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.in_clause import in_numbers
from store.database.lower_case import to_lower
from store.database.session import Transaction
from store.queries.graph.graph_answers import GraphMatch
from store.queries.graph.graph_boxes import Fold
from store.queries.tensors.tensor_filter import same_key
from store.records.reader import at_key
from store.runs.model import RunKey

MOST_MATCHES: Final = 20
"""Told; the others are counted."""

_t: Final = tables.tensor
_n: Final = tables.node
_s: Final = tables.site


def matches(transaction: Transaction, key: RunKey, fold: Fold, word: str | None) -> tuple[tuple[GraphMatch, ...], int]:
    """Find the first nodes of a graph that have the word, in upper or lower case, and count all of them."""
    if not word:
        return (), 0
    shared, shown = fold.shared, set(fold.shown)
    found = list(_find_matches(transaction, key, fold, word))
    first = found[:MOST_MATCHES]
    lines = _lines(transaction, key, [node for node, _ in first])
    told = tuple(
        GraphMatch(
            node=node,
            label=label,
            line=lines.get(node),
            box=shared.ids[node] if node in shown else None,
            open=_way_to(fold, node),
        )
        for node, label in first
    )
    return told, len(found)


def _find_matches(transaction: Transaction, key: RunKey, fold: Fold, word: str) -> Iterator[tuple[int, str]]:
    names, chains, low = _find_named_nodes(transaction, key, word), fold.equal.chains, to_lower(word)
    for node, row in fold.equal.rows.items():
        inside = chains.get(row.module_call, "") if row.variable is None else ""
        if row.tensor in names:
            yield node, names[row.tensor]
        elif low in to_lower(row.type) or low in to_lower(inside):
            yield node, f"{inside} {row.type}".strip()


def _way_to(fold: Fold, node: int) -> tuple[str, ...]:
    """Return what to open so that a node stands alone: an instance of a pattern, a module call."""
    first = fold.shared.instance_of.get(node)
    call = fold.equal.rows[node].module_call if fold.equal.rows[node].variable is None else fold.found[node]
    is_inside = call is not None and fold.found[node] is not None
    return (*(() if first is None else (f"p{first}",)), *((f"c{call}",) if is_inside else ()))


def _find_named_nodes(transaction: Transaction, key: RunKey, word: str) -> dict[int, str]:
    like = [sa.cast(column, sa.Text).icontains(word, autoescape=True) for column in (_t.c.name, _t.c.fqn)]
    query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn).where(at_key(_t, key), sa.or_(*like))
    return {row.tensor: row.fqn or row.name for row in transaction.execute(query)}


def _lines(transaction: Transaction, key: RunKey, nodes: Sequence[int]) -> dict[int, int]:
    at = sa.and_(same_key(_s, _n), _s.c.site == _n.c.site)
    query: Any = (
        sa.select(_n.c.node, _s.c.line).join_from(_n, _s, at).where(at_key(_n, key), in_numbers(_n.c.node, nodes))
    )
    return {row.node: row.line for row in transaction.execute(query)}
