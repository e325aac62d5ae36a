"""From a tensor back over the operations of the program, whether their results had names or not."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_calls import written
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import expression_of, operations_of
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record, WatchedCall

_MOST: Final = 60
"""Operations behind one value that are looked at."""
_DRAWS: Final = frozenset({"randn", "randn_like", "rand", "rand_like", "normal", "empty_like"})


def last_name_of(row: Operation) -> str:
    """`randn` of `torch.randn`."""
    return row.function.rpartition(".")[2]


def parts(record: Record, row: Operation) -> Iterator[int | Operation]:
    """What went into an operation: the operations that gave it, or tensors that none gave."""
    for tensor in row.operands:
        made = made_by(record).get(tensor)
        yield tensor if made is None or made.operation >= row.operation else made
    known = operations_by_number(record)
    yield from (known[one] for one in row.inner if one in known)


def start_of(record: Record, tensor: int) -> int | Operation:
    """The operation that gave a tensor, or the tensor."""
    made = made_by(record).get(tensor)
    if made is None and lookup(record).tensors[tensor].view_of is not None:
        base = lookup(record).tensors[tensor].view_of
        made = made_by(record).get(base) if base is not None else None
        return base if made is None and base is not None else made or tensor
    return tensor if made is None else made


def behind(record: Record, start: int | Operation) -> Iterator[int | Operation]:
    """It and what is behind it, the nearest first."""
    waiting, seen = [start], set[int | str]()
    for one in waiting:
        if len(seen) > _MOST:
            return
        key = one if isinstance(one, int) else f"o{one.operation}"
        if key not in seen:
            seen.add(key)
            yield one
            if not isinstance(one, int):
                waiting += parts(record, one)
            else:
                base = lookup(record).tensors[one].view_of if one in lookup(record).tensors else None
                if base is not None:
                    waiting.append(start_of(record, base))


@table
def takers(record: Record) -> dict[int, list[Operation]]:
    """The operations that took a tensor, by tensor."""
    found: dict[int, list[Operation]] = {}
    for row in record.operations:
        for tensor in row.operands:
            found.setdefault(tensor, []).append(row)
    return found


def is_draw(row: int | Operation) -> bool:
    """It drew random numbers."""
    return not isinstance(row, int) and last_name_of(row) in _DRAWS


def slices_of(record: Record, row: Operation) -> list[tuple[str, str]]:
    """The bounds of the slices that a subscript is written with: `("1", "")` of `x[:, 1:]` at its last place."""
    node = expression_of(record, row) if row.function == "[]" else None
    if not isinstance(node, ast.Subscript):
        return []
    places = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return [
        ("" if one.lower is None else ast.unparse(one.lower), "" if one.upper is None else ast.unparse(one.upper))
        for one in places
        if isinstance(one, ast.Slice)
    ]


def argument_of(record: Record, call: WatchedCall, at: int, name: str) -> int | Operation | None:
    """What was handed to a watched call in a place: the operation that gave it, or the tensor."""
    tensor = next((one.tensor for one in call.inputs if one.name == name), None)
    if tensor is not None and tensor in made_by(record):
        return start_of(record, tensor)
    node = written(record, call)
    named = None if node is None else keyword(node, name)
    value = None if node is None else named.value if named else node.args[at] if at < len(node.args) else None
    rows = [] if value is None or isinstance(value, ast.Starred) else operations_of(record, value)
    beside = [one.n for one in _alike(record).get((call.site, call.col), ())]
    if rows and len(rows) == len(beside):
        return rows[beside.index(call.n)]
    return None if tensor is None else start_of(record, tensor)


@table
def _alike(record: Record) -> dict[tuple[int | None, int | None], list[WatchedCall]]:
    """The watched calls of each place of the source."""
    found: dict[tuple[int | None, int | None], list[WatchedCall]] = {}
    for row in record.watched_calls:
        found.setdefault((row.site, row.col), []).append(row)
    return found
