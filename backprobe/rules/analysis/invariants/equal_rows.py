"""Weights whose rows were made equal and stay equal: all units behind them compute the same."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from backprobe.record.rows.values import flat
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, SmallValue

_TIMES: Final = 3
"""Moments after the first step at which the rows must be equal: they may part at the second step."""


@table
def equal_rows(record: Record) -> dict[int, int]:
    """Return the statement that made each trained weight whose rows stay equal while it changes, by tensor."""
    first = next((event.moment for event in record.optimizer_events if event.kind == "step"), None)
    held: defaultdict[int, list[SmallValue]] = defaultdict(list)
    for row in record.small_values:
        is_matrix = row.of == "value" and len(row.shape) == 2 and row.shape[0] > 2 and row.shape[1] > 1
        if is_matrix and first is not None and row.moment > first and in_optimizers(record).get(row.tensor):
            held[row.tensor].append(row)
    found: dict[int, int] = {}
    for tensor, values in held.items():
        rows = [_rows(value) for value in values]
        if (
            len(rows) >= _TIMES
            and all(len(set(parts)) == 1 for parts in rows)
            and len({parts[0] for parts in rows}) > 2
        ):
            written = (
                event.site for event in record.inplace_events if event.tensor == tensor and event.done_by == "statement"
            )
            site = next(written, None) or lookup(record).tensors[tensor].site
            if site is not None:
                found[tensor] = site
    return found


def _rows(value: SmallValue) -> list[tuple[object, ...]]:
    elements, width = list(flat(value)), value.shape[1]
    return [tuple(elements[at : at + width]) for at in range(0, len(elements), width)]
