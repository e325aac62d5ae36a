"""When the program trained: optimizer steps, and leaves that it wrote by hand from their gradients."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import statement
from backprobe.rules.analysis.training.restored_values import restored
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.analysis.training.written_values import takes_gradient
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """One training update.

    Attributes:
        optimizer: Whose step it was; None where the program wrote the leaf itself.
        tensors: Leaves that it may have changed: those that the optimizer holds, or the leaf that was written.
    """

    moment: int
    site: int | None
    optimizer: int | None
    tensors: frozenset[int]


@table
def updates(record: Record) -> tuple[Update, ...]:
    """All updates, in order."""
    held = {row.optimizer: frozenset(one.tensor for one in row.tensors) for row in record.optimizers}
    found = [
        Update(
            moment=event.moment, site=event.site, optimizer=event.optimizer,
            tensors=held.get(event.optimizer, frozenset()) if event.optimizer is not None else frozenset(),
        )
        for event in record.optimizer_events
        if event.kind == "step"
    ]  # fmt: skip
    found += [
        Update(moment=event.moment, site=event.site, optimizer=None, tensors=frozenset((event.tensor,)))
        for event in record.inplace_events
        if _is_by_hand(record, event) and event.n not in restored(record)
    ]
    found += _assigned(record, {(one.site, next(iter(one.tensors), None)) for one in found if one.optimizer is None})
    return tuple(sorted(found, key=lambda update: update.moment))


def _assigned(record: Record, known: set[tuple[int | None, int | None]]) -> Iterator[Update]:
    """Leaves that `x.data = ...` gave other memory: where they are large, nothing in the record tells of the change."""
    for site in record.sites if _read(record) else ():
        node = statement(record, site) if site.kind in ("assign", "inplace", "statement") else None
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(target, ast.Attribute) or target.attr != "data" or not takes_gradient(record, site):
            continue
        for row in record.moments:
            if row.site != site.site or row.kind != "after-statement":
                continue
            tensor = tensor_named(record, ast.unparse(target.value), site, row.moment)
            if tensor is None or tensor not in _read(record) or (site.site, tensor) in known:
                continue
            state = state_at(record, tensor, row.moment)
            if state is not None and state.is_leaf and state.requires_grad and state.grad == "present":
                yield Update(moment=row.moment, site=site.site, optimizer=None, tensors=frozenset((tensor,)))


def _is_by_hand(record: Record, event: InplaceEvent) -> bool:
    """A leaf whose gradient the program reads is written by a statement that tracks nothing, while it has one."""
    if event.done_by != "statement":
        return False
    through_data = event.version_after == event.version_before
    tracked = lookup(record).moments[event.moment].grad_mode and not through_data
    if event.tensor not in _read(record) or tracked:
        return False
    if through_data and event.site is not None and not takes_gradient(record, lookup(record).sites[event.site]):
        return False  # other values for a time: a quantised weight, or what it was before
    state = state_at(record, event.tensor, event.moment)
    return state is not None and state.is_leaf and state.requires_grad and state.grad == "present"


@table
def updates_of(record: Record) -> Mapping[int, tuple[Update, ...]]:
    """The updates of each leaf, in order."""
    found: defaultdict[int, list[Update]] = defaultdict(list)
    for update in updates(record):
        for tensor in update.tensors:
            found[tensor].append(update)
    return {tensor: tuple(rows) for tensor, rows in found.items()}


@table
def _read(record: Record) -> frozenset[int]:
    """The tensors whose gradient the program read: an average over other weights is written without it."""
    return frozenset(row.tensor for row in record.grad_reads if not row.was_none)
