"""At which backward call a graph is best looked at first."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.records.reader import at_key
from store.runs.model import RunRow

_n: Final = tables.node
_p: Final = tables.node_pass


def last_folding_call(transaction: Transaction, run: RunRow) -> int | None:
    """Return the last backward call that ran nodes of a known module call; None if there is none.

    Module calls that are made very often are recorded now and then only: the graph of a call without them cannot be
    folded, and is a wall of nodes.
    """
    if run.key is None:
        return None
    newest = sa.select(_n.c.node).where(at_key(_n, run.key), _n.c.module_call.is_not(None))
    node = transaction.execute(newest.order_by(_n.c.node.desc()).limit(1)).scalar()
    if node is None:
        return None
    call = sa.select(sa.func.max(_p.c.call)).where(at_key(_p, run.key), _p.c.node == node)
    return transaction.execute(call).scalar()


def last_walked_call(transaction: Transaction, run: RunRow) -> int | None:
    """Return the last backward call whose graph was walked; None if there is none."""
    if run.key is None:
        return None
    return transaction.execute(sa.select(sa.func.max(_p.c.call)).where(at_key(_p, run.key))).scalar()


def nodes_of_call(transaction: Transaction, run: RunRow, call: int, *, most: int) -> int:
    """How many nodes a backward call met, counted up to `most` and no further."""
    if run.key is None:
        return 0
    met = sa.select(_p.c.node).where(at_key(_p, run.key), _p.c.call == call).limit(most).subquery()
    return transaction.execute(sa.select(sa.func.count()).select_from(met)).scalar_one()
