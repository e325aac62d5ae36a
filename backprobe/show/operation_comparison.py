"""The operations of two records beside each other: the first one at which they part.

1. Operations are equal by function, kind of result, shapes and dtypes; file, line and names of tensors do not count.
2. A function is known by its last part as written: `F.relu` and `torch.relu` are one, `self.net` and `model` two.
3. Only recorded operations are compared: in a long loop those of one place thin out, in both runs alike.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.show.amounts import format_shape
from backprobe.show.plain_text import cut, plain

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from backprobe.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tensor that went into an operation."""

    shape: tuple[int, ...] | None
    dtype: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedOperation:
    """An operation, and where the program has it.

    Attributes:
        function: As written in the program.
        operands: The recorded tensors that went in, in source order.
        result: tensor, tensors, number, array or other; shape and dtype are those of a tensor.
    """

    path: str
    line: int
    function: str
    operands: tuple[Operand, ...]
    result: str
    shape: tuple[int, ...] | None
    dtype: str

    def structure(self) -> Hashable:
        """Return what two equal operations have in common."""
        return self.function.rpartition(".")[2], self.result, self.shape, self.dtype, self.operands


def placed_operations(record: Record) -> Iterator[PlacedOperation]:
    """Yield the operations of a record thread by thread: which of two threads is first is chance."""
    index = lookup(record)
    for row in sorted(record.operations, key=lambda row: (row.thread, row.operation)):
        operands = [index.tensors[number] for number in row.operands if number in index.tensors]
        yield PlacedOperation(
            path=index.sources[index.sites[row.statement].source].path,
            line=row.line,
            function=row.function,
            operands=tuple(Operand(shape=tensor.shape, dtype=tensor.dtype) for tensor in operands),
            result=row.result,
            shape=row.shape,
            dtype=row.dtype,
        )


def first_difference(a: Iterable[PlacedOperation], b: Iterable[PlacedOperation]) -> dict[str, Any] | None:
    """Return the first place, counted from 0, at which the operations differ, with both; None: they never do."""
    for place, (row_a, row_b) in enumerate(zip_longest(a, b)):
        if row_a is None or row_b is None or row_a.structure() != row_b.structure():
            return {"place": place, "a": row_a and asdict(row_a), "b": row_b and asdict(row_b)}
    return None


def operation_text(told: Mapping[str, Any]) -> str:
    """Return one side of `first_difference` in words: "`torch.relu` of ([2, 3] float32) gives [2, 3] float32".

    Without recorded operands: "`.sum` gives [] float32".
    """
    operands = ", ".join(f"{format_shape(tensor['shape'])} {tensor['dtype']}" for tensor in told["operands"])
    result = f"{format_shape(told['shape'])} {told['dtype']}" if told["result"] == "tensor" else told["result"]
    function = f"`{cut(plain(told['function']), 60)}`"
    return f"{function} of ({operands}) gives {result}" if operands else f"{function} gives {result}"
