"""What a tensor was made from: the parents of its bindings, or the operands of the operation that it came out of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.lookup import lookup
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import Record


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
