"""When the program trained: optimizer steps, and leaves that it wrote by hand from their gradients."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at
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
        if _is_by_hand(record, event)
    ]
    return tuple(sorted(found, key=lambda update: update.moment))


def _is_by_hand(record: Record, event: InplaceEvent) -> bool:
    """A leaf whose gradient the program reads is written by a statement that tracks nothing, while it has one."""
    tracked = lookup(record).moments[event.moment].grad_mode and event.version_after != event.version_before
    if event.tensor not in _read(record) or event.done_by != "statement" or tracked:
        return False  # a write through `.data` leaves the version as it was
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
