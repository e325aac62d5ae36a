"""How far audits are, as their streams ask for it."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from store.database.in_clause import among
from store.database.session import Transaction
from store.runs.reading.run_events import Standing
from store.tables import audit


def standing(transaction: Transaction, numbers: Collection[int]) -> dict[int, Standing]:
    """Version of each of these audits, and whether it has ended; one that there is not is not in it."""
    if not numbers:
        return {}
    query = sa.select(audit.c.id, audit.c.version, audit.c.finished_at).where(among(audit.c.id, numbers))
    return {row.id: (row.version, row.finished_at is not None) for row in transaction.execute(query)}
