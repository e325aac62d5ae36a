"""Snapshots: up to 480 moments of one tensor in a row, one byte column per field. See `store.records.chunk_format`."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from sqlalchemy import event

from store.records.chunk_format import COLUMNS
from store.tables.base.record_key import key_columns, record_table
from store.tables.base.types import blob, f4, i2, i4, i8

OVERVIEW: Final = (
    "Highest grad_norm of each 16 snapshots, f4. NULL: no gradient norm in the chunk, or it is one such block."
)

snapshot_chunk: Final = record_table(
    "snapshot_chunk",
    i4("tensor", "Whose snapshots."),
    i4("first_moment", "Moment of the first."),
    i4("last_moment", "Moment of the last."),
    i2("n", "How many, 1 to 480."),
    i2("moment_step", "Distance of their moments; 0: see moments."),
    i2("flags_and", "Bits that all flags have."),
    i2("flags_or", "Bits that any flags have."),
    f4("grad_norm_min", "Least grad_norm that is a number; NULL: none is.", null=True),
    f4(
        "grad_norm_max", "Greatest grad_norm that is a number; NULL: none is. NaN would head every top list.", null=True
    ),
    i8("nan_total", "NaN in values and gradients, summed."),
    i8("inf_total", "Infinities in values and gradients, summed."),
    i2("version_step", "version[i] = version[0] + version_step x i; 0: version is constant or listed."),
    blob("moments", "i4; moments of the snapshots. NULL: they are first_moment + moment_step x i.", null=True),
    *(blob(name, column.comment, null=True) for name, column in COLUMNS.items()),
    blob("overview", OVERVIEW, null=True),
    key=("tensor", "first_moment"),
    wide=True,
    comment="Up to 480 snapshots of one tensor; the history behind the last state in tensor.",
)
sa.Index("snapshot_chunk_grad_norm", *key_columns(snapshot_chunk), snapshot_chunk.c.grad_norm_max.desc())
_odd: Final = sa.text("nan_total + inf_total > 0")
sa.Index(
    "snapshot_chunk_nonfinite",
    *key_columns(snapshot_chunk),
    snapshot_chunk.c.tensor,
    postgresql_where=_odd,
    sqlite_where=_odd,
)
EXTERNAL: Final = tuple(
    f"ALTER TABLE snapshot_chunk ALTER COLUMN {name} SET STORAGE EXTERNAL" for name in ("moments", *COLUMNS, "overview")
)
"""PostgreSQL: no futile compression, and one column can be read without the others."""

for _statement in EXTERNAL:
    event.listen(snapshot_chunk, "after_create", sa.DDL(_statement).execute_if(dialect="postgresql"))
