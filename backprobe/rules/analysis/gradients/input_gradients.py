"""Gradients by an input that `autograd.grad` returned with a graph, and the operations that took them in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record

_TOTALS: Final = frozenset({"sum", "mean"})


@dataclass(frozen=True, slots=True, kw_only=True)
class InputGradient:
    """A gradient of the input's shape.

    Attributes:
        made: The operation whose result is the gradient: the call of `autograd.grad`, or the `[0]` behind it.
        call: Its backward call. by: the input. tensor: the gradient, where it has a row.
        root: What was differentiated: of `u.sum()` the tensor `u`. None: it has no row.
        scores: Shape of that. None: not known.
    """

    made: Operation
    call: BackwardCall
    by: int
    tensor: int | None
    root: int | None
    scores: tuple[int, ...] | None


@table
def input_gradients(record: Record) -> tuple[InputGradient, ...]:
    """Those by one input that is no parameter, in order."""
    index = lookup(record)
    asked = {row.moment_after: row for row in record.backward_calls if _asks_for_an_input(record, row)}
    known, taken = operations_by_number(record), _taken(record)
    found: list[InputGradient] = []
    for row in record.operations:
        call = asked.get(row.moment)
        if call is None or row.result != "tensors" or row.function.rpartition(".")[2] != "grad" or not call.inputs:
            continue
        by = call.inputs[0].tensor
        shape = None if by is None else index.tensors[by].shape
        picked = next((one for one in taken.get(row.operation, []) if one.function == "[]"), None)
        tensor = _unpacked(record, row) if picked is None else picked.tensor
        if by is None or shape is None or (picked is not None and picked.shape != shape):
            continue
        if picked is None and (tensor is None or index.tensors[tensor].shape != shape):
            continue
        root, scores = _root(record, row, call, known)
        made = row if picked is None else picked
        found.append(InputGradient(made=made, call=call, by=by, tensor=tensor, root=root, scores=scores))
    return tuple(found)


def users(record: Record, made: Operation, tensor: int | None) -> list[Operation]:
    """The operations that took a result in, as a tensor or at once, later than it was made."""
    inner = _taken(record).get(made.operation, [])
    given = [] if tensor is None else _given(record).get(tensor, [])
    return [row for row in (*inner, *given) if row.operation > made.operation]


@table
def _taken(record: Record) -> dict[int, list[Operation]]:
    found: dict[int, list[Operation]] = {}
    for row in record.operations:
        for one in row.inner:
            found.setdefault(one, []).append(row)
    return found


@table
def _given(record: Record) -> dict[int, list[Operation]]:
    found: dict[int, list[Operation]] = {}
    for row in record.operations:
        for one in row.operands:
            found.setdefault(one, []).append(row)
    return found


def _asks_for_an_input(record: Record, call: BackwardCall) -> bool:
    inputs = call.inputs or ()
    if call.accumulate_grad or not call.create_graph or len(inputs) != 1 or inputs[0].tensor is None:
        return False
    return call.outcome == "finished" and lookup(record).tensors[inputs[0].tensor].role is None


def _unpacked(record: Record, row: Operation) -> int | None:
    """`(g,) = autograd.grad(...)`: the tensor that the statement bound then."""
    bound = [one for one in record.bindings if one.site == row.statement and one.moment > (row.moment or 0)]
    return min(bound, key=lambda one: one.moment).tensor if bound else None


def _root(
    record: Record, row: Operation, call: BackwardCall, known: dict[int, Operation]
) -> tuple[int | None, tuple[int, ...] | None]:
    """What was differentiated, and its shape: behind a total where that is all that stands between."""
    root = call.roots[0] if len(call.roots) == 1 else None
    if root is None:
        return None, None
    totals = [known[one] for one in row.inner if one in known and _is_total(known[one])]
    if not root.shape and len(totals) == 1:
        total = totals[0]
        if len(total.operands) == 1 and not total.inner:
            return total.operands[0], lookup(record).tensors[total.operands[0]].shape
        inner = [known[one] for one in total.inner if one in known]
        return None, inner[0].shape if len(inner) == 1 and not total.operands else None
    return root.tensor, root.shape


def _is_total(row: Operation) -> bool:
    return row.function.rpartition(".")[2] in _TOTALS and row.shape == ()
