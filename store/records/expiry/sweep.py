"""Rows of attempts that came to nothing: no reader ever sees them, and this deletes them."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.tables import KEY, METADATA

RECORD_TABLES: Final = tuple(
    table for table in METADATA.sorted_tables if tuple(column.name for column in table.columns)[: len(KEY)] == KEY
)
"""Every table that begins with the key."""

_DELETES: Final = tuple(
    sa.delete(table).where(
        table.c.part == sa.bindparam("of_part", literal_execute=True),  # see store.records.reader.at_key
        table.c.run_id == sa.bindparam("of_run"),
        table.c.attempt < sa.bindparam("below"),
    )
    for table in RECORD_TABLES
)


def delete_records(transaction: Transaction, part: int, run_id: int, *, below: int = 2**15 - 1) -> None:
    """Delete the record rows of a run's attempts below a number; all by default."""
    which = {"of_part": part, "of_run": run_id, "below": below}
    for statement in _DELETES:
        transaction.execute(statement, which)
