"""Rows of one table of a record, as they are: what no other question asks for."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.records.mapping import IN_HEAD, SPECS, plain
from store.records.reader import at_key, decode_row, row_of
from store.runs.model import RunRow

_SPECS: Final = {spec.of: spec for spec in SPECS}
_HEAD: Final = {of: (column, row) for column, (of, row) in IN_HEAD.items()}
LISTABLE: Final = tuple(sorted((*_SPECS, *_HEAD)))
"""Tables whose rows can be listed: all but snapshots, tensor_nodes and streams, which have their own queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPage:
    """Rows by field name, in order of their key. next: how many come before the next page; None: this was the last."""

    items: tuple[Mapping[str, Any], ...]
    next: int | None


def rows(transaction: Transaction, run: RunRow, table: str, *, after: int = 0, limit: int = 100) -> RowPage:
    """Load a page of a table of the run's record, without its first `after` rows. A visible record never changes.

    Raises:
        KeyError: no such table, or none that is listed.
    """
    in_head, spec = _HEAD.get(table), _SPECS.get(table)
    if run.key is None:
        return RowPage(items=(), next=None)
    if in_head is not None:
        column, row = in_head
        head = sa.select(tables.record.c[column]).where(at_key(tables.record, run.key))
        found = [row_of(row, value) for value in (transaction.execute(head).scalar() or ())[after : after + limit + 1]]
    else:
        spec = _SPECS[table]
        query = sa.select(spec.table).where(at_key(spec.table, run.key)).order_by(*spec.table.primary_key.columns)
        stored = transaction.execute(query.offset(after).limit(limit + 1)).mappings()
        found = [decode_row(spec, {str(key): value for key, value in values.items()}) for values in stored]
    items = tuple(_without_bytes(plain(row)) for row in found[:limit])
    return RowPage(items=items, next=after + limit if len(found) > limit else None)


def select_rows(
    transaction: Transaction,
    run: RunRow,
    table: str,
    *,
    line: int | None = None,
    path: str | None = None,
    tensor: int | None = None,
    after: int | None = None,
    limit: int = 100,
    **equal: Any,
) -> RowPage:
    """Rows of a table that has a number for its key, with `path` and `line` of their site.

    Args:
        transaction: To read by.
        run: Whose record.
        table: Of the record: leaf_grads, inplace_events, modules, optimizers, moments.
        line: Only those of this line. path: of this file.
        path: See line.
        after: `RowPage.next` of the page before, a key; None: the first page.
        limit: Rows at most.
        tensor: Only those of this tensor: in their own column, or among their parameters, buffers or tensors.
        equal: Columns, and the value that they must have, or several of them; None: any.
    """
    if run.key is None:
        return RowPage(items=(), next=None)
    spec, s = _SPECS[table], tables.site
    (number,) = (column for column in spec.table.primary_key.columns if column.name not in tables.KEY)
    there = sa.and_(*(s.c[name] == spec.table.c[name] for name in tables.KEY), s.c.site == spec.table.c.site)
    query = (
        sa.select(spec.table, s.c.path.label("its_path"), s.c.line.label("its_line"))
        .select_from(spec.table)
        .outerjoin(s, there)
        .where(at_key(spec.table, run.key))
    )
    for column, value in ((s.c.line, line), (s.c.path, path), *((spec.table.c[name], equal[name]) for name in equal)):
        if value is not None:
            query = query.where(
                column.in_(cast("Sequence[Any]", value)) if isinstance(value, list) else column == value
            )
    if tensor is not None:
        query = query.where(_of_tensor(transaction, spec.table, tensor))
    if after is not None:
        query = query.where(number > after)
    stored = [dict(row) for row in transaction.execute(query.order_by(number).limit(limit + 1)).mappings()]
    items = tuple(
        {**_without_bytes(plain(decode_row(spec, values))), "path": values["its_path"], "line": values["its_line"]}
        for values in stored[:limit]
    )
    return RowPage(items=items, next=stored[limit - 1][number.name] if len(stored) > limit else None)


_WITH_TENSORS: Final = {tables.module: ("parameters", "buffers"), tables.optimizer: ("tensors",)}
"""Tables whose rows have several tensors, in lists of `{"tensor": ...}`."""


def _of_tensor(transaction: Transaction, table: sa.Table, tensor: int) -> sa.ColumnElement[bool]:
    if table not in _WITH_TENSORS:
        return table.c.tensor == tensor
    on_sqlite = transaction.dialect.name == "sqlite"
    found: list[sa.ColumnElement[bool]] = []
    for name in _WITH_TENSORS[table]:
        each = sa.func.json_each if on_sqlite else sa.func.jsonb_array_elements
        element = each(table.c[name]).table_valued(sa.column("value", sa.JSON)).alias(f"one_of_{name}")
        value: Any = (
            sa.func.json_extract(element.c.value, "$.tensor") if on_sqlite else element.c.value["tensor"].as_integer()
        )
        found.append(sa.exists(sa.select(sa.literal(1)).select_from(element).where(value == tensor)))
    return sa.or_(*found)


def _without_bytes(row: dict[str, Any]) -> dict[str, Any]:
    """Bytes as base64, which JSON can hold."""
    return {
        name: base64.b64encode(value).decode() if isinstance(value, bytes) else value for name, value in row.items()
    }
