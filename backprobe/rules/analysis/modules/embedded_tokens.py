"""The tokens that go into an embedding, and whether their vectors stay at the places of the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

_SHIFTS: Final = frozenset({
    "[]", "cat", "concat", "concatenate", "hstack", "index_select", "narrow", "pad", "roll", "select", "split",
    "unbind",
})  # fmt: skip
"""What can move places, in functions and methods; modules that pad do so too."""

_PLACEWISE: Final = frozenset({
    "+", "-", "*", "/", "add", "sub", "mul", "div", "dropout", "layer_norm", "transpose", "permute", "contiguous", "to",
})  # fmt: skip
_PLACEWISE_MODULES: Final = ("Dropout", "Norm", "Identity")
"""Ends of the names of module classes that look at one place at a time and leave each where it is."""


@table
def embedded(record: Record) -> dict[int, int]:
    """The whole numbers that went into an embedding, with several places in each row, and the statement."""
    known = modules_by_number(record)
    found: dict[int, int] = {}
    for row in record.operations:
        node = expression_of(record, row) if row.requires_grad and len(row.operands) == 1 else None
        modules = called_modules(record).get(node, frozenset()) if node is not None else frozenset[int]()
        shape = lookup(record).tensors[row.operands[0]].shape if row.operands else None
        if any(known[one].cls == "Embedding" for one in modules) and shape and len(shape) > 1 and shape[-1] > 1:
            found.setdefault(row.operands[0], row.statement)
    return found


@table
def moved_in(record: Record) -> frozenset[int]:
    """The embedded tensors whose vectors are sliced, joined, padded or rolled before any layer mixes the places."""
    tensors: dict[int, int] = {}
    operations: dict[int, int] = {}
    moved = set[int]()
    for row in record.operations:  # in the order in which they ended
        from_tensors = {tensors[one] for one in row.operands if one in tensors}
        sources = from_tensors | {operations[one] for one in row.inner if one in operations}
        classes = classes_called(record, row) if sources or row.operands else frozenset[str]()
        starts = "Embedding" in classes and len(row.operands) == 1 and row.operands[0] in embedded(record)
        name = row.function.rpartition(".")[2]
        if starts:
            sources = {row.operands[0]}
        elif name in _SHIFTS or any("Pad" in one for one in classes):
            moved |= sources
            continue
        elif name not in _PLACEWISE and not any(one.endswith(_PLACEWISE_MODULES) for one in classes):
            continue
        for source in sources:
            operations[row.operation] = source
            if row.tensor is not None:
                tensors[row.tensor] = source
    return frozenset(moved)


def classes_called(record: Record, row: Operation) -> frozenset[str]:
    """The classes of the modules that the operation's expression calls."""
    node = expression_of(record, row)
    known = modules_by_number(record)
    return (
        frozenset(known[one].cls for one in called_modules(record).get(node, ())) if node is not None else frozenset()
    )
