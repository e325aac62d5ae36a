"""The backward calls of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.queries.graph.graph_answers import BackwardCallRow, BackwardRoot
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

LISTED: Final = 1000
"""Nodes and leaves listed per call."""

_b: Final = tables.backward_call
_s: Final = tables.site
_p: Final = tables.node_pass


def backward_calls(
    transaction: Transaction, run: RunRow, *, call: int | None = None, after: int | None = None, limit: int = 100
) -> tuple[BackwardCallRow, ...]:
    """Backward calls in order; only `call` if that is given. A next page follows the last one's `call`."""
    key = run.key
    if key is None:
        return ()
    query = (
        sa.select(_b, _s.c.path, _s.c.line)
        .select_from(_b)
        .outerjoin(_s, sa.and_(*[_s.c[name] == _b.c[name] for name in tables.KEY], _s.c.site == _b.c.site))
        .where(at_key(_b, key))
    )
    if call is not None:
        query = query.where(_b.c.call == call)
    if after is not None:
        query = query.where(_b.c.call > after)
    rows = transaction.execute(query.order_by(_b.c.call).limit(limit)).all()
    exceptions = _exceptions(transaction, key) if any(row.exception is not None for row in rows) else {}
    return tuple(_row(transaction, key, row, exceptions) for row in rows)


def _exceptions(transaction: Transaction, key: RunKey) -> dict[int, str]:
    head = sa.select(tables.record.c.exceptions).where(at_key(tables.record, key))
    raised: Sequence[Mapping[str, Any]] = transaction.execute(head).scalar() or ()
    return {exception["n"]: f"{exception['type']}: {exception['message']}" for exception in raised}


def _row(transaction: Transaction, key: RunKey, row: Any, exceptions: Mapping[int, str]) -> BackwardCallRow:
    freed, held = _nodes(transaction, key, row.call)
    facts = {name: getattr(row, name) for name in _AS_THEY_ARE}
    return BackwardCallRow(
        **facts,
        roots=_roots(row.roots) or (),
        inputs=_roots(row.inputs),
        returned=None if row.returned is None else tuple(row.returned),
        exception=None if row.exception is None else exceptions.get(row.exception),
        freed_nodes=freed,
        held_nodes=held,
        leaves=_leaves(transaction, key, row.call),
    )


_AS_THEY_ARE: Final = (
    "call", "entry", "path", "line", "thread", "parent", "retain_graph", "retain_graph_given", "create_graph",
    "accumulate_grad", "allow_unused", "nodes_met", "nodes_run", "nodes_freed", "held_bytes", "freed_bytes",
    "duration_ns", "own_ns", "outcome", "truncated", "moment_before", "moment_after",
)  # fmt: skip


def _roots(stored: Sequence[Mapping[str, Any]] | None) -> tuple[BackwardRoot, ...] | None:
    if stored is None:
        return None
    return tuple(
        BackwardRoot(
            tensor=root["tensor"],
            name=root["name"],
            shape=None if root["shape"] is None else tuple(root["shape"]),
            gradient_given=root["gradient_given"],
        )
        for root in stored
    )


def _nodes(transaction: Transaction, key: RunKey, call: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Numbers of the nodes that the call freed, and of those that it ran and left held."""
    found: dict[bool, list[int]] = defaultdict(list)
    for freed in (True, False):
        query = (
            sa.select(_p.c.node)
            .distinct()
            .where(at_key(_p, key), _p.c.call == call, _p.c.freed.is_(freed), _p.c.position.is_not(None))
            .order_by(_p.c.node)
            .limit(LISTED)
        )
        found[freed] = list(transaction.execute(query).scalars())
    return tuple(found[True]), tuple(found[False])


def _leaves(transaction: Transaction, key: RunKey, call: int) -> tuple[int, ...]:
    g = tables.leaf_grad
    query = sa.select(g.c.tensor).distinct().where(at_key(g, key), g.c.call == call, g.c.kind != "untouched")
    return tuple(transaction.execute(query.order_by(g.c.tensor).limit(LISTED)).scalars())
