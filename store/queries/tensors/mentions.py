"""What is said of tensors elsewhere: the names that they had, and the findings about them."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.records.reader import at_key, in_month
from store.runs.model import RunRow

_b: Final = tables.binding
_f: Final = tables.finding

THIN: Final = 4
"""Numbers that lie so thin in their range are written out one by one; else what lies between the ends is read."""

_NAME, _FINDING = 0, 1

Which = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[bool]]
"""Which tensors, as a condition on the column of their numbers."""


def load_mentions(
    transaction: Transaction, run: RunRow, numbers: Sequence[int]
) -> tuple[Mapping[int, Sequence[str]], Mapping[int, Sequence[str]]]:
    """By tensor: every name that it had, in order and each once; and the public ids of the findings about it.

    Both in one statement: to ask again costs more than the rows do.
    """
    names: defaultdict[int, dict[str, None]] = defaultdict(dict)
    findings: defaultdict[int, list[str]] = defaultdict(list)
    if run.key is None or not numbers:
        return defaultdict(list), findings
    first, last = min(numbers), max(numbers)
    key = {"run_id": run.key.run_id, "attempt": run.key.attempt}
    if last - first < THIN * len(numbers):
        found: Any = transaction.execute(_part_query(run.key.part), {**key, "first": first, "last": last})
    else:
        about = in_attempt(_f)
        found = transaction.execute(_both(at_key(_b, run.key), about, lambda column: in_numbers(column, numbers)), key)
    for tensor, what, text, _ in found:
        if what == _NAME:
            names[tensor][text] = None
        else:
            findings[tensor].append(text)
    return defaultdict(list, {tensor: list(each) for tensor, each in names.items()}), findings


def in_attempt(table: sa.Table) -> sa.ColumnElement[bool]:
    """Rows of the parameters `run_id` and `attempt`, in a table that has no months."""
    run, attempt = sa.bindparam("run_id", type_=sa.BigInteger()), sa.bindparam("attempt", type_=sa.SmallInteger())
    return sa.and_(table.c.run_id == run, table.c.attempt == attempt)


@functools.lru_cache(maxsize=64)
def _part_query(part: int) -> sa.CompoundSelect[Any, int, Any, Any]:
    first, last = sa.bindparam("first", type_=sa.Integer()), sa.bindparam("last", type_=sa.Integer())
    return _both(in_month(_b, part), in_attempt(_f), lambda column: column.between(first, last))


def _both(
    bound: sa.ColumnElement[bool], about: sa.ColumnElement[bool], these: Which
) -> sa.CompoundSelect[Any, int, Any, Any]:
    name, finding = (sa.literal_column(str(what), sa.Integer()).label("what") for what in (_NAME, _FINDING))
    names = sa.select(_b.c.tensor, name, _b.c.name.label("said"), _b.c.binding.label("n")).where(
        bound, these(_b.c.tensor)
    )
    findings = sa.select(_f.c.tensor, finding, _f.c.public_id, _f.c.n).where(
        about, these(_f.c.tensor), _f.c.gone_at.is_(None)
    )
    return sa.union_all(names, findings).order_by("what", "n")
