"""Values that many rows of a record have in common, held once: names of dtypes, devices, functions; shapes."""

from __future__ import annotations

import functools
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from operator import attrgetter
from typing import Any, Final, cast

from msgspec.inspect import IntType, LiteralType, StrType, StructType, Type, UnionType, VarTupleType, type_info
from msgspec.structs import force_setattr

from backprobe.record.rows.fields import Row

_MOST_VALUES: Final = 2048
"""That are remembered: a record in which no value repeats is not held twice."""

_LARGEST_BATCH: Final = 2000
"""Rows that the engine sends at most in one batch; nothing is remembered of larger ones."""

_LONGEST_TEXT: Final = 512


class Shared:
    """What the rows of one record have in common."""

    def __init__(self) -> None:
        self._values: dict[Any, Any] = {}
        self.weight = 0
        """Bytes of memory that these values take."""

    def unify(self, rows: Sequence[Row]) -> None:
        """Let rows of one table that have equal texts, or equal tuples of numbers or texts, have the same ones."""
        if not rows:
            return
        known, before = self._values, len(self._values)
        for name in _fields(type(rows[0])):
            values = list(map(attrgetter(name), rows))
            is_full = len(known) >= _MOST_VALUES or len(rows) > _LARGEST_BATCH
            once = map(known.get if is_full else known.setdefault, values, values)
            deque(map(force_setattr, rows, repeat(name), once), maxlen=0)  # in C: a million rows have ten fields each
        self.weight += sum(map(_weight, islice(known, before, None)))

    def __contains__(self, value: object) -> bool:
        """Return whether the value is held once, however many rows have it."""
        return value in self._values


def _weight(value: str | int | tuple[str | int, ...] | None) -> int:
    """Of a text, or a tuple of numbers or texts; each is taken to be rounded up, and held by nothing else."""
    items = sum(map(_weight, value)) if isinstance(value, tuple) else 0
    return 0 if value is None else sys.getsizeof(value) + 16 + items


@functools.cache
def literals(row: type[Row]) -> frozenset[str]:
    """Collect the words that fields of these rows may have. The decoder holds each of them once."""
    found: set[str] = set()
    todo: list[Type] = [type_info(row)]
    while todo:
        info = todo.pop()
        if isinstance(info, LiteralType):
            found |= {word for word in info.values if isinstance(word, str)}
        elif isinstance(info, StructType):
            todo += [field.type for field in info.fields]
        elif isinstance(info, UnionType):
            todo += info.types
        elif isinstance(info, VarTupleType):
            todo.append(info.item_type)
    return frozenset(found)


@functools.cache
def _fields(row: type[Row]) -> tuple[str, ...]:
    info = cast("StructType", type_info(row))
    return tuple(field.name for field in info.fields if any(map(_repeats, _alternatives(field.type))))


def _alternatives(kind: Type) -> Iterator[Type]:
    yield from kind.types if isinstance(kind, UnionType) else (kind,)


def _repeats(kind: Type) -> bool:
    if isinstance(kind, VarTupleType):
        return isinstance(kind.item_type, IntType | StrType)
    return isinstance(kind, StrType) and kind.max_length is not None and kind.max_length <= _LONGEST_TEXT
