"""The autograd graph of a run: nodes and edges, capped."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.graph.graph_answers import EdgeRow, Graph, NodeRow
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

_n: Final = tables.node
_s: Final = tables.site
_p: Final = tables.node_pass
_e: Final = tables.edge


def graph(transaction: Transaction, run: RunRow, *, call: int | None = None, limit: int = 400) -> Graph:
    """Load the graph's first nodes and the edges among them.

    Args:
        transaction: To read by.
        run: Whose graph.
        call: Only nodes that this backward call met; None: all.
        limit: Nodes at most; `Graph.hidden` counts the others.
    """
    key = run.key
    if key is None:
        return Graph(nodes=(), edges=(), hidden=0)
    wanted = at_key(_n, key)
    if call is not None:
        met = sa.select(_p.c.node).where(at_key(_p, key), _p.c.call == call)
        wanted = sa.and_(wanted, _n.c.node.in_(met))
    total = transaction.execute(sa.select(sa.func.count()).select_from(_n).where(wanted)).scalar_one()
    query = (
        sa.select(_n, _s.c.path, _s.c.line)
        .select_from(_n)
        .outerjoin(_s, sa.and_(*[_s.c[name] == _n.c[name] for name in tables.KEY], _s.c.site == _n.c.site))
        .where(wanted)
        .order_by(_n.c.node)
        .limit(limit)
    )
    rows = transaction.execute(query).all()
    numbers = [row.node for row in rows]
    return Graph(
        nodes=node_rows(transaction, key, rows),
        edges=_edges(transaction, key, numbers),
        hidden=total - len(rows),
    )


def node_rows(transaction: Transaction, key: RunKey, rows: Sequence[Any]) -> tuple[NodeRow, ...]:
    """Rows of `node` with path and line, told with the tensors that they made and the calls that ran them."""
    numbers = [row.node for row in rows]
    t = tables.tensor
    made: dict[int, list[int]] = defaultdict(list)
    for row in transaction.execute(
        sa.select(t.c.node, t.c.tensor).where(at_key(t, key), in_numbers(t.c.node, numbers)).order_by(t.c.tensor)
    ):
        made[row.node].append(row.tensor)
    ran: dict[int, list[int]] = defaultdict(list)
    for row in transaction.execute(
        sa.select(_p.c.node, _p.c.call)
        .distinct()
        .where(at_key(_p, key), in_numbers(_p.c.node, numbers), _p.c.position.is_not(None))
        .order_by(_p.c.call)
    ):
        ran[row.node].append(row.call)
    return tuple(
        NodeRow(
            node=row.node,
            type=row.type,
            seq=row.seq,
            path=row.path,
            line=row.line,
            born_in=row.born_in,
            grad_order=row.grad_order,
            variable=row.variable,
            custom=row.custom,
            saved_bytes=row.saved_bytes,
            freed_by=row.freed_by,
            first_seen=row.first_seen,
            died=row.died,
            tensors=tuple(made[row.node]),
            calls=tuple(ran[row.node]),
        )
        for row in rows
    )


def _edges(transaction: Transaction, key: RunKey, numbers: list[int]) -> tuple[EdgeRow, ...]:
    query = sa.select(_e).where(
        at_key(_e, key),
        in_numbers(_e.c.node, numbers),
        sa.or_(_e.c.to_node.is_(None), in_numbers(_e.c.to_node, numbers)),
    )
    return tuple(
        EdgeRow(node=row.node, slot=row.slot, to_node=row.to_node, input_nr=row.input_nr)
        for row in transaction.execute(query.order_by(_e.c.node, _e.c.slot))
    )
