"""What decoded rows take of memory: an estimate from their values, for a process that holds what strangers sent."""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Sequence
from itertools import chain
from typing import Any, Final

from msgspec.structs import astuple

from backprobe.record.encoding.shared import literals
from backprobe.record.rows.fields import Row

_HELD_BYTES: Final = 24
"""Of each row beside itself: its places in the tuple of its table and in what looks rows up by key."""

_NUMBER_BYTES: Final = 32
"""An integer or a float, as CPython's allocator rounds it up."""

_LARGEST_SHARED: Final = 256
"""CPython holds each integer from -5 to this once."""

_ROUNDING: Final = 16
"""Bytes to which CPython's allocator rounds up; a tuple has as many for the garbage collector."""

MOST_PER_WIRE_BYTE: Final = 112
"""Bytes of memory for one on the wire, beside the rows themselves: statistics that all have their defaults are the
empty array of one byte."""


def weight(rows: Sequence[Row], shared: Container[object] = ()) -> int:
    """Bytes that rows of one table take in this process.

    Args:
        shared: Texts and tuples that are held once for all rows, and so not counted.
    """
    if not rows:
        return 0
    words = literals(type(rows[0]))
    own = type(rows[0]).__basicsize__ + _HELD_BYTES
    return len(rows) * own + sum(_of_values(astuple(row), words, shared) for row in rows)


def most_weight(rows: Sequence[Row], wire_bytes: int) -> int:
    """Bound `weight` from the bytes that the rows had on the wire, without a look at their values."""
    own = type(rows[0]).__basicsize__ + _HELD_BYTES if rows else 0
    return len(rows) * own + MOST_PER_WIRE_BYTE * wire_bytes


def _of_values(values: Iterable[Any], words: Container[object], shared: Container[object]) -> int:
    total = 0
    for value in values:
        kind = value.__class__
        if value is None or kind is bool:
            continue
        if kind is int:
            if not -5 <= value <= _LARGEST_SHARED:
                total += _NUMBER_BYTES
        elif kind is float:
            total += _NUMBER_BYTES
        elif kind is str or kind is bytes:
            if len(value) > 1 and value not in words and value not in shared:  # those of one character are shared
                total += sys.getsizeof(value) + _ROUNDING
        elif kind is tuple:
            if value and value not in shared:
                total += sys.getsizeof(value) + _ROUNDING + _of_values(value, words, shared)
        elif kind is dict:
            total += sys.getsizeof(value) + _ROUNDING + _of_values(chain.from_iterable(value.items()), words, shared)
        else:
            total += kind.__basicsize__ + _ROUNDING + _of_values(astuple(value), words, shared)
    return total
