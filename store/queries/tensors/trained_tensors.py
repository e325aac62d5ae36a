"""Which tensors a question is about that names none: those that are trained."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.queries.history.curves import MOST_ROWS, MOST_VALUES
from store.queries.tensors.tensor_filter import TensorFilter
from store.records.reader import at_key
from store.runs.model import RunRow

_t: Final = tables.tensor
_MOST: Final = min(MOST_ROWS, MOST_VALUES // 500)
"""Number of rows that answer at the 500 moments returned at most by default."""

_NONE: Final = TensorFilter(numbers=(-1,))


def select_trained_tensors(transaction: Transaction, run: RunRow) -> TensorFilter:
    """Select the first 400 parameters; if there are none, the leaves that require grad."""
    if run.key is None:
        return _NONE
    for chosen in (_t.c.role == "parameter", sa.and_(_t.c.is_leaf.is_(True), _t.c.requires_grad.is_(True))):
        query = sa.select(_t.c.tensor).where(at_key(_t, run.key), chosen).order_by(_t.c.tensor).limit(_MOST)
        numbers = tuple(transaction.execute(query).scalars())
        if numbers:
            return TensorFilter(numbers=numbers)
    return _NONE
