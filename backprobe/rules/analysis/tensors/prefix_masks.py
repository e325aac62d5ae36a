"""Masks whose rows begin with ones and go on with zeros, of different lengths: what pads sequences to one length."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, SmallValue

_FORMATS: Final = {"float32": "f", "float64": "d", "bool": "?", "int64": "q", "int32": "i", "uint8": "B"}


def is_prefix_mask(record: Record, tensor: int) -> bool:
    """Its elements, where they were kept, are such a mask of at least two rows; it was never tracked."""
    history = lookup(record).snapshots_of[tensor]
    return tensor in _masks(record) and not any(row.requires_grad for row in history)


@table
def _masks(record: Record) -> frozenset[int]:
    return frozenset(row.tensor for row in record.small_values if row.of == "value" and _marks_lengths(row))


def _marks_lengths(row: SmallValue) -> bool:
    if len(row.shape) != 2 or row.dtype not in _FORMATS:
        return False
    height, width = row.shape
    numbers = struct.unpack(f"<{height * width}{_FORMATS[row.dtype]}", row.elements)
    if height < 2 or not set(numbers) <= {0, 1}:
        return False
    rows = [numbers[at * width : (at + 1) * width] for at in range(height)]
    falling = all(one >= other for line in rows for one, other in pairwise(line))
    return falling and len({sum(line) for line in rows}) > 1 and all(line[0] for line in rows)
