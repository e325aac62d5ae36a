"""What the rows tell of a box of a graph beside its nodes: gradients that came to them, and leaves that lie in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from backprobe.show.drawing.box_badges import Leaf
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.graph.graph_part import flags_told, in_pieces
from store.queries.history.value_series import state_at
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

_p: Final = tables.node_pass
_t: Final = tables.tensor
_k: Final = tables.backward_call

Norms = Mapping[int, tuple[float | None, bool]]


def norms_of(transaction: Transaction, key: RunKey, call: int, moment: int | None) -> Norms:
    """Of each node that the call ran: the largest finite norm that came to it, and whether NaN or Inf did.

    Args:
        transaction: To read by.
        key: Of the run's visible attempt.
        call: Which backward call.
        moment: The moment that is seen: before the call had ended nothing came to any node.
    """
    if moment is not None:
        query = sa.select(sa.func.coalesce(_k.c.moment_after, _k.c.moment_before + 1)).where(
            at_key(_k, key), _k.c.call == call
        )
        over = transaction.execute(query).scalar()
        if over is None or over > moment:
            return {}
    rows = sa.select(_p.c.node, _p.c.norm, _p.c.nan, _p.c.inf).where(
        at_key(_p, key), _p.c.call == call, _p.c.counted.is_not(None)
    )
    found: dict[int, tuple[float | None, bool]] = {}
    for node, norm, nan, inf in transaction.execute(rows):
        bad = bool(nan or inf)
        before, was_bad = found.get(node, (None, False))
        finite = None if bad else norm
        known = [value for value in (before, finite) if value is not None]
        found[node] = (max(known, default=None), bad or was_bad)
    return found


def leaves_of(
    transaction: Transaction, run: RunRow, key: RunKey, numbers: Sequence[int], moment: int | None
) -> dict[int, Leaf]:
    """Names and gradients of leaves, as they were at a moment; None: at the end."""
    found: dict[int, Leaf] = {}
    then: dict[int, str] = {}
    for piece in in_pieces(numbers):
        if moment is not None:
            seen = state_at(transaction, run, moment, ("flags",), piece)
            pairs = zip(seen["tensor"].tolist(), seen["flags"].tolist(), strict=True)
            then |= {tensor: str(flags_told(bits)["grad"]) for tensor, bits in pairs}
        query = sa.select(_t.c.tensor, _t.c.name, _t.c.fqn, _t.c.grad).where(
            at_key(_t, key), in_numbers(_t.c.tensor, piece)
        )
        for row in transaction.execute(query):
            grad = then.get(row.tensor, "not-read") if moment is not None else row.grad or "not-read"
            found[row.tensor] = Leaf(tensor=row.tensor, name=row.fqn or row.name or f"tensor {row.tensor}", grad=grad)
    return found
