"""The flow of values: which recorded operation made a value, and which operations took it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

_MOST: Final = 600
"""Operations that one search looks at."""

_NEAR: Final = 2
"""Moments between an operation that gives several tensors and the binding of one of them."""


class ValueFlow:
    """The operations of a record as a graph of values.

    Attributes:
        operations: By number. makers: the operation that made a tensor, by tensor; an operation that returns one of its
            operands, as an in-place one does, made none.
    """

    def __init__(self, record: Record) -> None:
        self.operations: Mapping[int, Operation] = {row.operation: row for row in record.operations}
        self.makers: dict[int, Operation] = {}
        self._takers_of_tensor: defaultdict[int, list[Operation]] = defaultdict(list)
        self._takers_of_operation: defaultdict[int, list[Operation]] = defaultdict(list)
        for row in record.operations:
            if row.tensor is not None and row.tensor not in row.operands:
                self.makers.setdefault(row.tensor, row)
            for tensor in row.operands:
                self._takers_of_tensor[tensor].append(row)
            for inner in row.inner:
                self._takers_of_operation[inner].append(row)
        self._add_elements(record)

    def _add_elements(self, record: Record) -> None:
        """One of several results was made by the last operation of its statement that gave several."""
        several: defaultdict[int, list[Operation]] = defaultdict(list)
        for row in record.operations:
            if row.result == "tensors":
                several[row.statement].append(row)
        for binding in record.bindings:
            if binding.tensor not in self.makers and several[binding.site]:
                before = [row for row in several[binding.site] if (row.moment or 0) <= binding.moment]
                if before and before[-1].moment is not None and binding.moment - before[-1].moment <= _NEAR:
                    self.makers[binding.tensor] = before[-1]

    def takers(self, row: Operation) -> list[Operation]:
        """Return the operations that took the result of an operation."""
        by_tensor = [] if row.tensor is None else self._takers_of_tensor[row.tensor]
        return self._takers_of_operation[row.operation] + by_tensor

    def inputs(self, row: Operation) -> list[Operation]:
        """Return the operations whose results went into an operation."""
        inner = [self.operations[number] for number in row.inner if number in self.operations]
        made = [self.makers[tensor] for tensor in row.operands if tensor in self.makers]
        return inner + [maker for maker in made if maker.operation < row.operation]

    def first_cuts(self, starts: Iterable[Operation]) -> list[Operation]:
        """Return the first operations behind some tracked results whose own results are not tracked and are used."""
        cuts: list[Operation] = []
        seen: set[int] = set()
        waiting = deque(starts)
        while waiting and len(seen) < _MOST:
            row = waiting.popleft()
            if row.operation in seen:
                continue
            seen.add(row.operation)
            for taker in self.takers(row):
                if taker.result == "tensors" or (taker.result == "tensor" and taker.requires_grad):
                    waiting.append(taker)
                elif self.takers(taker) or taker.result in ("number", "array"):
                    cuts.append(taker)
        return cuts

    def reaches(self, row: Operation, tensors: frozenset[int], *, is_tracked: bool = False) -> bool:
        """Return whether the result of an operation went, by any way or a tracked one, into one of some tensors."""
        seen: set[int] = set()
        waiting = [row]
        while waiting and len(seen) < _MOST:
            at = waiting.pop()
            if at.operation in seen:
                continue
            seen.add(at.operation)
            if at.tensor in tensors:
                return True
            takers = self.takers(at)
            waiting += [row for row in takers if row.requires_grad or row.result == "tensors"] if is_tracked else takers
        return False

    def comes_from(self, row: Operation, statements: frozenset[int], tensors: frozenset[int]) -> bool:
        """Return whether the value came from a tracked value, a computation of some statements, or some tensors."""
        seen: set[int] = set()
        waiting = [row]
        while waiting and len(seen) < _MOST:
            at = waiting.pop()
            if at.operation in seen:
                continue
            seen.add(at.operation)
            is_computed = bool(at.operands or at.inner)  # not `torch.tensor(0.5)` beside the call of a model
            if at.requires_grad or (is_computed and at.statement in statements) or not tensors.isdisjoint(at.operands):
                return True
            waiting += self.inputs(at)
        return False


@table
def value_flow(record: Record) -> ValueFlow:
    """Return the flow of values of a record."""
    return ValueFlow(record)
