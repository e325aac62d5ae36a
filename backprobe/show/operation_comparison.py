"""The operations of two records beside each other: the first one at which they part.

1. Operations are equal by function, kind of result, shapes and dtypes; file, line and names of tensors do not count.
2. A function is known by its last part as written: `F.relu` and `torch.relu` are one, `self.net` and `model` two.
3. Only recorded operations are compared: in a long loop those of one place thin out, in both runs alike.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from backprobe.rules.analysis.rows.lookup import Lookup, lookup

if TYPE_CHECKING:
    from collections.abc import Hashable

    from backprobe.record import Record
    from backprobe.record.rows.operations import Operation


def operations_json(a: Record, b: Record) -> dict[str, Any]:
    """How many operations each record has, and the first place, counted from 0, at which they differ; else null."""
    rows_a, rows_b = _in_order(a), _in_order(b)
    index_a, index_b = lookup(a), lookup(b)
    first = None
    for place, (row_a, row_b) in enumerate(zip_longest(rows_a, rows_b)):
        if row_a is None or row_b is None or _structure(index_a, row_a) != _structure(index_b, row_b):
            first = {"place": place, "a": _operation_json(index_a, row_a), "b": _operation_json(index_b, row_b)}
            break
    return {"in_a": len(rows_a), "in_b": len(rows_b), "first": first}


def _in_order(record: Record) -> list[Operation]:
    """Thread by thread: which of two threads is first is chance."""
    return sorted(record.operations, key=lambda row: (row.thread, row.operation))


def _structure(index: Lookup, row: Operation) -> Hashable:
    tensors = index.tensors
    operands = tuple((tensors[number].shape, tensors[number].dtype) for number in row.operands if number in tensors)
    return row.function.rpartition(".")[2], row.result, row.shape, row.dtype, operands


def _operation_json(index: Lookup, row: Operation | None) -> dict[str, Any] | None:
    """None: the record has no operation there."""
    if row is None:
        return None
    operands = [index.tensors[number] for number in row.operands if number in index.tensors]
    return {
        "path": index.sources[index.sites[row.statement].source].path,
        "line": row.line,
        "function": row.function,
        "operands": [{"shape": tensor.shape, "dtype": tensor.dtype} for tensor in operands],
        "result": row.result,
        "shape": row.shape,
        "dtype": row.dtype,
    }
