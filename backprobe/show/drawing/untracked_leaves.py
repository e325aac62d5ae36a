"""The leaves that need no gradient: autograd has no node for them, so the record tells where they go in.

1. A node that saved such a leaf, or a view of it, takes it in.
2. Else the statement whose result was computed from it does: at its node that has an operand without gradient.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import Lookup, lookup
from backprobe.show.tensor_table import name_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from backprobe.record import Record


def untracked_leaves(record: Record, nodes: Collection[int]) -> dict[int, list[int]]:
    """For each of these nodes, the named leaves that need no gradient and go into it, as far as the record knows."""
    index = lookup(record)
    leaves = {row.tensor for row in record.tensors if _is_untracked_leaf(index, row.tensor)}
    by_storage: defaultdict[int, list[int]] = defaultdict(list)
    for tensor in sorted(leaves):
        storage = index.tensors[tensor].storage
        if storage is not None:
            by_storage[storage].append(tensor)
    open_nodes = {node for node in nodes if any(edge.to_node is None for edge in index.edges_of[node])}
    found: defaultdict[int, list[int]] = defaultdict(list)
    taken: set[tuple[int | None, int]] = set()
    for node in sorted(open_nodes):
        for saved in index.saved_of[node]:
            for tensor in _candidates(saved.tensor, saved.storage, leaves, by_storage):
                if tensor not in found[node]:
                    found[node].append(tensor)
                    taken.add((index.nodes[node].site, tensor))
    _by_statement(record, open_nodes, leaves, found, taken)
    return dict(found)


def _by_statement(
    record: Record,
    open_nodes: set[int],
    leaves: set[int],
    found: defaultdict[int, list[int]],
    taken: set[tuple[int | None, int]],
) -> None:
    """Give the parents that nothing saved to a node of their statement."""
    index = lookup(record)
    of_site: defaultdict[int | None, list[int]] = defaultdict(list)
    for node in sorted(open_nodes):
        of_site[index.nodes[node].site].append(node)
    for made in record.tensor_nodes:
        for binding in index.bindings_of[made.tensor][:1]:
            here = of_site[binding.site]
            for parent in binding.parents:
                if parent in leaves and here and (binding.site, parent) not in taken:
                    found[here[-1]].append(parent)
                    taken.add((binding.site, parent))


def _candidates(
    tensor: int | None, storage: int | None, leaves: set[int], by_storage: dict[int, list[int]]
) -> list[int]:
    if tensor is not None and tensor in leaves:
        return [tensor]
    return by_storage[storage][:1] if storage is not None and storage in by_storage else []


def _is_untracked_leaf(index: Lookup, tensor: int) -> bool:
    history = index.snapshots_of[tensor]
    if not history or not history[-1].is_leaf or history[-1].requires_grad:
        return False
    return name_of(index, tensor) is not None
