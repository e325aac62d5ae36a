"""Backward calls in the order in which they begin, which is not that of their rows where one runs inside another."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record


def call_begun_before(record: Record, moment: int) -> BackwardCall | None:
    """The last call that began up to a moment; None: none had."""
    calls = _in_order(record)
    at = bisect_right(calls, moment, key=lambda call: call.moment_before)
    return calls[at - 1] if at else None


def call_begun_after(record: Record, moment: int) -> BackwardCall | None:
    """The first call that began after a moment; None: none did."""
    calls = _in_order(record)
    at = bisect_right(calls, moment, key=lambda call: call.moment_before)
    return calls[at] if at < len(calls) else None


@table
def _in_order(record: Record) -> list[BackwardCall]:
    return sorted(record.backward_calls, key=lambda call: call.moment_before)
