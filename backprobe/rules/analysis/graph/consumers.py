"""What became of a value in the run: the operations that took it in, one after another, and whether it was measured.

out = net(x)                      taken in by `criterion`
total += criterion(out, y).item() a number comes out: `out` was measured against `y`
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.modules.module_sites import expressions_of, outermost_call
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import region_in
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Operation, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of the result of one call.

    Attributes:
        made: The operation of the call itself.
        uses: The operations that took the result in, directly or through others, by number.
        measured_at: The statements where a number, or a comparison with another tensor, came of it.
        is_trained_on: It went, with or without its history, into a tracked value that was made of other tracked ones.
    """

    made: Operation
    uses: frozenset[int]
    measured_at: frozenset[int]
    is_trained_on: bool


@table
def operation_of(record: Record) -> dict[int, Operation]:
    """The operation of the program that each outermost call of a module was, by the call's number.

    Left out where the statement has not as many such operations as calls.
    """
    by_site: defaultdict[int, list[ModuleCall]] = defaultdict(list)
    for call in record.module_calls:
        if call.site is not None and outermost_call(record, call) is call:
            by_site[call.site].append(call)
    found: dict[int, Operation] = {}
    for site, calls in by_site.items():
        made = _written_as(record, site, calls)
        if len(made) == len(calls):
            found.update({call.module_call: row for call, row in zip(calls, made, strict=True)})
    return found


def _written_as(record: Record, site: int, calls: list[ModuleCall]) -> list[Operation]:
    """The operations of a statement that stand where the source calls one of these modules."""
    places: set[tuple[int, int]] = set()
    for call in {one.module: one for one in calls}.values():
        written = expressions_of(record, call)
        for part in written[1] if written is not None else ():
            region = region_in(record, written[0], part) if written is not None else None
            if region is not None:
                places.add((region.start_line, region.start_col))
                places.add((region.end_line, region.end_col))
    rows = operations_at(record).get(site, [])
    return [row for row in rows if (row.line, row.col) in places and (row.end_line, row.end_col) in places]


@table
def operations_at(record: Record) -> dict[int, list[Operation]]:
    """The operations of each statement, in order."""
    found: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in record.operations:
        found[row.statement].append(row)
    return dict(found)


@table
def _takers(record: Record) -> tuple[dict[int, list[Operation]], dict[int, list[Operation]]]:
    """The operations that took a tensor in, by tensor; and those that took an operation's result in, by operation."""
    of_tensor: defaultdict[int, list[Operation]] = defaultdict(list)
    of_operation: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in record.operations:
        for tensor in row.operands:
            of_tensor[tensor].append(row)
        for one in row.inner:
            of_operation[one].append(row)
    return dict(of_tensor), dict(of_operation)


def fate_of(record: Record, made: Operation) -> Fate:
    """What became of the result of an operation."""
    of_tensor, of_operation = _takers(record)
    tensors, operations = set(_given(record, made)), {made.operation}
    uses: dict[int, Operation] = {}
    waiting = [row for one in tensors for row in of_tensor.get(one, ())] + of_operation.get(made.operation, [])
    while waiting:
        row = waiting.pop()
        if row.operation <= made.operation or row.operation in uses:
            continue
        uses[row.operation] = row
        operations.add(row.operation)
        waiting += of_operation.get(row.operation, [])
        for tensor in _given(record, row):
            if tensor not in tensors:
                tensors.add(tensor)
                waiting += of_tensor.get(tensor, [])
    compared = any(_takes_another(record, row, tensors, operations) for row in uses.values())
    measured = (row.statement for row in uses.values() if compared and row.result == "number")
    trained = any(_joins_another_graph(record, row, tensors, uses, made) for row in uses.values())
    return Fate(made=made, uses=frozenset(uses), measured_at=frozenset(measured), is_trained_on=trained)


def _given(record: Record, row: Operation) -> list[int]:
    """The tensors that an operation gave: of several, those that its statement bound then."""
    if row.tensor is not None:
        return [row.tensor]
    if row.result != "tensors" or not row.is_value or row.moment is None:
        return []
    bound = [one for one in _bound_at(record).get(row.statement, []) if one[0] > row.moment]
    return [tensor for moment, tensor in bound if moment == bound[0][0]]


@table
def _bound_at(record: Record) -> dict[int, list[tuple[int, int]]]:
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for row in record.bindings:
        found[row.site].append((row.moment, row.tensor))
    return dict(found)


def _takes_another(record: Record, row: Operation, tensors: set[int], operations: set[int]) -> bool:
    """A tensor goes in that is not made of the value: a target."""
    own = bool(tensors.intersection(row.operands)) or bool(operations.intersection(row.inner))
    others = [one for one in row.operands if one not in tensors]
    return own and (
        any(lookup(record).tensors[one].role is None for one in others) or not operations.issuperset(row.inner)
    )


def _joins_another_graph(
    record: Record, row: Operation, tensors: set[int], uses: dict[int, Operation], made: Operation
) -> bool:
    """The result is tracked, and not because of the value: none of what is made of it and goes in is tracked."""
    if not row.requires_grad:
        return False
    known = {**uses, made.operation: made}
    inner = any(known[one].requires_grad for one in row.inner if one in known)
    own = (one for one in row.operands if one in tensors)
    states = (state_at(record, one, row.moment + 1 if row.moment is not None else 0) for one in own)
    return not inner and not any(state is not None and state.requires_grad for state in states)
