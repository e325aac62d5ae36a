"""What a tensor was made from: the parents of its bindings, or the operands of the operation that it came out of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

_DETACHES: Final = (".detach", ".data")


@table
def operands_below(record: Record) -> dict[int, tuple[int, ...]]:
    """The tensors that went into each operation, also into those whose results never had a row; by operation."""
    found: dict[int, tuple[int, ...]] = {}
    for row in record.operations:  # in the order in which they ended: an inner one stands before the one that uses it
        below = (tensor for one in row.inner for tensor in found.get(one, ()))
        found[row.operation] = tuple(dict.fromkeys((*row.operands, *below)))
    return found


@table
def unnamed_from(record: Record) -> dict[int, tuple[int, ...]]:
    """What each tensor without a binding was made from; none where no operation of the program gave it.

    `loss = f(net(x))`: the parent of `loss` is what `net` gave, which has no name, and that was made from `x`.
    """
    index, found = lookup(record), dict[int, tuple[int, ...]]()
    for row in record.operations:
        if row.tensor is not None and row.tensor not in found and not index.bindings_of[row.tensor]:
            made = tuple(one for one in operands_below(record)[row.operation] if one != row.tensor)
            if made:
                found[row.tensor] = made
    return found


def is_detached(record: Record, tensor: int) -> bool:
    """A `detach()` or `.data` of the program gave the tensor."""
    made = made_by(record).get(tensor)
    return made is not None and made.function.endswith(_DETACHES)


def undetached_from(record: Record, tensor: int) -> set[int]:
    """What went into the operation that gave a tensor without being detached on its way.

    Where no operation of the program gave it, the parents of its first binding.
    """
    made = made_by(record).get(tensor)
    if made is None:
        return {one for bound in lookup(record).bindings_of[tensor][:1] for one in bound.parents}
    found: set[int] = set()
    waiting = [made]
    while waiting:
        row = waiting.pop()
        if not row.function.endswith(_DETACHES):
            found |= set(row.operands)
            waiting += [operations_by_number(record)[one] for one in row.inner if one in operations_by_number(record)]
    return found


@table
def operations_by_number(record: Record) -> dict[int, Operation]:
    """The operations by their number."""
    return {row.operation: row for row in record.operations}


@table
def made_by(record: Record) -> dict[int, Operation]:
    """The first operation that gave a tensor: further ones only hand it on."""
    return {row.tensor: row for row in reversed(record.operations) if row.tensor is not None}
