"""The autograd graph, read from a value back to what it was computed from; what only changes a shape is passed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Record

RESHAPES: Final = frozenset({
    "View", "UnsafeView", "Reshape", "ReshapeAlias", "Squeeze", "Unsqueeze", "Transpose", "T", "Permute", "Alias",
    "Clone", "ToCopy", "Slice", "Select", "Expand", "Index", "Gather", "Cat", "Stack", "MaskedSelect", "IndexSelect",
    "AsStrided", "Unbind", "Split", "SplitWithSizes",
})  # fmt: skip
"""Operations that hand elements on as they are, in another shape, order, number or dtype."""

_NUMBERED: Final = re.compile(r"Backward\d*$")
_WORD_START: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def op(node: Node) -> str:
    """`Softmax` of `SoftmaxBackward0`."""
    return op_of(node.type)


@lru_cache(maxsize=4096)
def op_of(kind: str) -> str:
    """The same of a node's type."""
    return _NUMBERED.sub("", kind)


def operation_name(kind: str) -> str:
    """Return torch's name of the operation of a node's type: `log_softmax` of `LogSoftmaxBackward0`."""
    return _WORD_START.sub("_", op_of(kind)).lower()


def operands(record: Record, node: int) -> list[int | None]:
    """The nodes of a node's operands, by slot; None where no gradient is wanted."""
    edges = sorted(lookup(record).edges_of[node], key=lambda edge: edge.slot)
    return [edge.to_node for edge in edges]


def behind_shapes(record: Record, node: int | None) -> int | None:
    """The node that computed the elements which a node hands on: views, casts and selections are gone through."""
    seen: set[int] = set()
    while node is not None and node not in seen and op(lookup(record).nodes[node]) in RESHAPES:
        seen.add(node)
        wanted = [one for one in operands(record, node) if one is not None]
        node = wanted[0] if len(wanted) == 1 else None
    return node


def all_behind_shapes(record: Record, node: int | None) -> set[int]:
    """The nodes that computed the elements which a node hands on, of a stack or a concatenation each of its parts."""
    seen, waiting = set[int](), [] if node is None else [node]
    found: set[int] = set()
    while waiting:
        at = waiting.pop()
        if at not in seen:
            seen.add(at)
            if op(lookup(record).nodes[at]) in RESHAPES:
                waiting += [operand for operand in operands(record, at) if operand is not None]
            else:
                found.add(at)
    return found


def node_of(record: Record, tensor: int | None) -> int | None:
    """The node that made a tensor; None if none is known."""
    made = None if tensor is None else lookup(record).node_of.get(tensor)
    return None if made is None else made.node


def below(record: Record, start: int) -> Iterator[int]:
    """A node and all that it was computed from, each once, the nearest first."""
    seen, waiting = {start}, [start]
    for node in waiting:
        yield node
        for one in operands(record, node):
            if one is not None and one not in seen:
                seen.add(one)
                waiting.append(one)


@table
def walked(record: Record) -> frozenset[int]:
    """The nodes that backward calls met."""
    return frozenset(node for reach in reaches(record).values() for node in reach.met)


@table
def tensors_of(record: Record) -> dict[int, list[int]]:
    """The tensors that a node made, in order, by node."""
    found: dict[int, list[int]] = {}
    for row in record.tensor_nodes:
        found.setdefault(row.node, []).append(row.tensor)
    return found
