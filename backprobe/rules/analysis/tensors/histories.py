"""What became of one tensor: its versions, the gradients that came to it call by call, and who shares its memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, LeafGrad, Record, Saved, Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A `_version` that a tensor had from a moment on; `by` is the change that made it, None for its first."""

    version: int
    moment: int
    site: int | None
    by: InplaceEvent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedSaved:
    """A tensor that a node saved and that was changed in place afterwards: its backward pass refuses, or would have.

    Attributes:
        event: The first change after it was saved.
    """

    saved: Saved
    event: InplaceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Increment:
    """What one backward call brought to a leaf.

    Attributes:
        arrived: The gradient that came; None where it was not measured.
        total: `.grad` after it.
    """

    call: int
    change: LeafGrad
    arrived: Statistics | None
    total: Statistics | None


def versions(record: Record, tensor: int) -> list[Version]:
    """Every version of a tensor that was seen, in order; empty for an inference tensor, which has none."""
    index = lookup(record)
    history = index.snapshots_of[tensor]
    if not history or history[0].version is None:
        return []
    found = [Version(version=history[0].version, moment=history[0].moment, site=index.tensors[tensor].site)]
    found += [
        Version(version=event.version_after, moment=event.moment, site=event.site, by=event)
        for event in index.inplace_of[tensor]
        if event.version_after != event.version_before
    ]
    return found


def changed_after_saving(record: Record) -> list[ChangedSaved]:
    """The saved tensors that were changed while a node still wanted them, each with the first change of it.

    A view of the same base counts: the two share one version.
    """
    index = lookup(record)
    found: list[ChangedSaved] = []
    for row in record.saved:
        if row.tensor is None or row.version is None:
            continue
        node, wanted = index.nodes[row.node], row.version
        freed = None if node.freed_by is None else index.calls[node.freed_by].moment_before
        changes = [
            event
            for alias in aliases(record, row.tensor)
            for event in index.inplace_of[alias]
            if event.version_before == wanted < event.version_after and (freed is None or event.moment < freed)
        ]
        if changes:
            found.append(ChangedSaved(saved=row, event=min(changes, key=lambda event: event.moment)))
    return found


def aliases(record: Record, tensor: int) -> list[int]:
    """The tensor, its base and the views of that base: they share memory and `_version`."""
    tensors = lookup(record).tensors
    base = _base(record, tensor)
    return sorted({base, tensor, *(row.tensor for row in tensors.values() if _base(record, row.tensor) == base)})


def _base(record: Record, tensor: int) -> int:
    tensors = lookup(record).tensors
    for _ in range(8):
        row = tensors.get(tensor)
        if row is None or row.view_of is None:
            break
        tensor = row.view_of
    return tensor


def sharing(record: Record, tensor: int) -> list[int]:
    """The tensors that lie in the same storage, by whatever way: `.data`, `detach`, a view."""
    tensors = lookup(record).tensors
    storage = tensors[tensor].storage
    return [] if storage is None else [row.tensor for row in record.tensors if row.storage == storage]


def increments(record: Record, tensor: int) -> list[Increment]:
    """What each backward call that stored into a leaf brought to it, in order."""
    index = lookup(record)
    nodes = [row.node for row in record.nodes if row.variable == tensor]
    found: list[Increment] = []
    for change in index.leaf_grads_of[tensor]:
        if change.call is None or change.kind == "untouched":
            continue
        passes = [row for node in nodes for row in index.passes_of_node[node] if row.call == change.call]
        arrived = next((row.grad_output for row in passes if row.grad_output is not None), None)
        state = state_at(record, tensor, change.moment)
        total = None if state is None else state.grad_stats
        found.append(Increment(call=change.call, change=change, arrived=arrived, total=total))
    return found


def derivative_orders(record: Record) -> dict[int, int]:
    """The tensors that a pass with `create_graph` made, each with its order: 1 a gradient, 2 a gradient of one."""
    index = lookup(record)
    return {
        row.tensor: index.nodes[row.node].grad_order
        for row in record.tensor_nodes
        if row.node in index.nodes and index.nodes[row.node].grad_order > 0
    }
