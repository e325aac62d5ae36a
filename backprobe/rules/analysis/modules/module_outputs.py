"""Which module calls computed a value: the innermost call around a node, and the outermost one."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import below
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record


@table
def _outermost(record: Record) -> dict[int, ModuleCall]:
    """The outermost call around each module call, by its number."""
    found: dict[int, ModuleCall] = {}
    for call in record.module_calls:
        found[call.module_call] = call if call.parent is None else found.get(call.parent, call)
    return found


def innermost_call(record: Record, node: int) -> ModuleCall | None:
    """The innermost module call that a node was made in: as recorded, else by its sequence number; None if in none."""
    row = lookup(record).nodes[node]
    calls = _by_number(record)
    if row.module_call is not None or row.seq is None or row.born_in != "forward":
        return None if row.module_call is None else calls.get(row.module_call)
    mine = _by_start(record).get(row.thread, [])
    at = bisect_right(mine, row.seq, key=lambda call: call.lo) - 1
    call = mine[at] if at >= 0 else None
    while call is not None and call.hi <= row.seq:
        call = None if call.parent is None else calls.get(call.parent)
    return call


def parent_of(record: Record, call: ModuleCall) -> ModuleCall | None:
    """The module call that made this one; None if the program did."""
    return None if call.parent is None else _by_number(record).get(call.parent)


@table
def _by_number(record: Record) -> dict[int, ModuleCall]:
    return {call.module_call: call for call in record.module_calls}


@table
def _by_start(record: Record) -> dict[int, list[ModuleCall]]:
    found: dict[int, list[ModuleCall]] = {}
    for call in record.module_calls:
        found.setdefault(call.thread, []).append(call)
    return {thread: sorted(calls, key=lambda call: (call.lo, call.module_call)) for thread, calls in found.items()}


def call_around(record: Record, node: int) -> ModuleCall | None:
    """The outermost module call that a node was made in; None if it was made in none."""
    inner = innermost_call(record, node)
    return None if inner is None else _outermost(record).get(inner.module_call)


def calls_below(record: Record, node: int) -> dict[int, ModuleCall]:
    """The outermost module calls that a value was computed in, by number."""
    found: dict[int, ModuleCall] = {}
    for one in below(record, node):
        call = call_around(record, one)
        if call is not None:
            found[call.module_call] = call
    return found
