"""Room that deleted rows left, given back; and the planner's statistics renewed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import sqlalchemy as sa

from store.admin.figures import figures
from store.database.session import Database
from store.records.expiry.partitions import tables_and_partitions


def vacuum(database: Database, told: Callable[[float], None] = lambda _: None) -> tuple[int, int]:
    """Vacuum the whole database; its bytes before and after.

    SQLite rewrites the file: other writers wait meanwhile, and it takes as much free disk again. Afterwards the file
    can shrink by itself when records expire. On PostgreSQL the service goes on.
    """
    before = _bytes(database)
    if database.sqlite:
        with closing(database.watch()) as connection:
            told(0.0)
            connection.execute("PRAGMA auto_vacuum=incremental")
            connection.execute("VACUUM")
            connection.execute("ANALYZE")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        with database.read() as reading:
            tables, _ = tables_and_partitions(reading)  # a partitioned table's take in its months
            for n, table in enumerate(tables):
                told(n / len(tables))
                reading.execute(sa.text(f'VACUUM (ANALYZE) "{table}"'))
    told(1.0)
    return before, _bytes(database)


def _bytes(database: Database) -> int:
    return int(next(figure.value for figure in figures(database) if figure.name == "database_bytes"))
