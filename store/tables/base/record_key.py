"""The key that every table of the record begins with, and how such a table is made."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from store.tables.base.metadata import METADATA
from store.tables.base.types import Column, i2, i8

KEY = ("part", "run_id", "attempt")
"""Leads every record table's columns, primary key and indices."""


def record_table(
    name: str,
    *columns: Any,
    key: tuple[str, ...],
    indices: tuple[tuple[str, ...], ...] = (),
    comment: str,
    wide: bool = False,
) -> sa.Table:
    """Make a table of the record. It has no foreign keys: rows come in bulk, and months are dropped whole.

    On PostgreSQL it holds rows by `store.records.expiry.partitions` only.

    Args:
        key: Columns of the primary key after `KEY`.
        indices: Columns of each index after `KEY`.
        wide: Its rows hold long texts or bytes; only then SQLite keeps them apart from the primary key.
    """
    table = sa.Table(
        name,
        METADATA,
        i2("part", "Months since 2020-01 of the time in the run's id."),
        i8("run_id", "run.id."),
        i2("attempt", "The attempt whose rows these are; readers see run.result_attempt's."),
        *columns,
        sa.PrimaryKeyConstraint(*KEY, *key),
        comment=comment,
        sqlite_with_rowid=wide,
        postgresql_partition_by="LIST (part)",
    )
    for index in indices:
        sa.Index(f"{name}_{'_'.join(index)}", *[table.c[column] for column in (*KEY, *index)])
    return table


def key_columns(table: sa.Table) -> list[Column]:
    """Return the columns of `KEY` in a record table."""
    return [table.c[name] for name in KEY]
