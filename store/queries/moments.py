"""A moment of a run as clients write it: its number, or its kind and how many of that kind came before."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.records.reader import at_key
from store.runs.model import RunRow

_m: Final = tables.moment


def moment_named(transaction: Transaction, run: RunRow, name: str) -> int | None:
    """Find the moment that a text names: `12`, or `after-backward:3`; None if there is no such moment."""
    if run.key is None:
        return None
    kind, _, number = name.rpartition(":")
    place = int(number)
    if place >= 2**31:
        return None
    wanted = _m.c.moment == place if not kind else sa.and_(_m.c.kind == kind, _m.c.k == place)
    query: Any = sa.select(_m.c.moment).where(at_key(_m, run.key), wanted).order_by(_m.c.moment).limit(1)
    return transaction.execute(query).scalar()
