"""Gradients that the program sets to zero in place in every step, while weight decay changes the same elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.gradients.grad_writes import is_of_torch
from backprobe.rules.analysis.invariants.coverage_facts import Breach, steps
from backprobe.rules.analysis.optimizers.weight_decay import decays_surely
from backprobe.rules.analysis.rows.lookup import lookup

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, LeafGrad, Optimizer, OptimizerEvent, Record

_LEAST: Final = 3
"""Steps that must use the same number of zeros: a threshold sets another number of them in each step."""


def find_zeroed_and_decayed(record: Record) -> Breach | None:
    """Return the first leaf of which a statement sets elements of the gradient to zero that its optimizer decays."""
    for optimizer in record.optimizers:
        events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
        if (
            len(events) < _LEAST
            or not all(_has_rate(event) for event in events)
            or not decays_surely(record, optimizer)
        ):
            continue
        found = {
            row.tensor: site for row in optimizer.tensors if (site := _site(record, row.tensor, events)) is not None
        }
        if found:
            site = next(iter(found.values()))
            tensors = tuple(tensor for tensor, other in found.items() if other == site)
            return Breach("zeroed-and-decayed", site, tensors, optimizer.optimizer)
    return None


def zeroed_elements(record: Record, tensor: int, optimizer: Optimizer) -> tuple[int, int, int]:
    """Return how many elements of the gradient are zero at each step, of how many, and at how many steps."""
    events = [event for event in steps(record) if event.optimizer == optimizer.optimizer]
    used = [counts for event in events if (counts := _zeros(record, tensor, event.moment)) is not None]
    return (*used[-1], len(used)) if used else (0, 0, 0)


def _has_rate(event: OptimizerEvent) -> bool:
    return bool(event.learning_rates) and event.learning_rates[0] > 0


def _site(record: Record, tensor: int, events: list[OptimizerEvent]) -> int | None:
    """Return the statement that sets the same number of elements to zero before each step that was looked at."""
    if tensor not in grad_lives(record) or any(row.done_by == "statement" for row in _later(record, tensor, events)):
        return None  # the program restores what the steps change
    used: set[tuple[int, int]] = set()
    sites: list[int] = []
    is_set_here = False
    for event in events:
        counts = _zeros(record, tensor, event.moment)
        write = _last_write(record, tensor, event.moment)
        if counts is None:
            continue
        if write is None or write.site is None:
            return None
        before = _zeros(record, tensor, write.moment)
        is_set_here = is_set_here or (before is not None and before < counts)
        used.add(counts)
        sites.append(write.site)
    if len(sites) < _LEAST or len(used) != 1 or len(set(sites)) != 1 or not is_set_here:
        return None
    values = [row.value for row in lookup(record).snapshots_of[tensor] if row.value is not None]
    (zeros, _counted) = used.pop()
    are_zero = not values or any(value.zeros >= zeros for value in values)  # decay leaves a pruned weight at zero
    return None if are_zero or not zeros else sites[0]


def _later(record: Record, tensor: int, events: list[OptimizerEvent]) -> list[InplaceEvent]:
    return [row for row in lookup(record).inplace_of[tensor] if row.moment >= events[0].moment]


def _zeros(record: Record, tensor: int, moment: int) -> tuple[int, int] | None:
    """Return how many elements of the gradient were zero just before a moment, and of how many; None: not measured."""
    rows = [row for row in lookup(record).snapshots_of[tensor] if row.moment < moment]
    stats = rows[-1].grad_stats if rows and rows[-1].grad == "present" else None
    return None if stats is None or stats.kind != "exact" else (stats.zeros, stats.counted)


def _last_write(record: Record, tensor: int, moment: int) -> LeafGrad | None:
    """Return the program's write into the gradient, if nothing but clipping came between that and a step."""
    rows = [row for row in lookup(record).leaf_grads_of[tensor] if row.moment < moment and not is_of_torch(record, row)]
    return rows[-1] if rows and rows[-1].kind == "modified-in-place" else None
