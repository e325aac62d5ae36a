"""The spans of each leaf's `.grad`: from the call that filled it to what emptied it, with what happened in between.

empty -> filled      populate, or assigned
filled -> filled     accumulate, modified in place
filled -> empty      set-none; zeroed in place
filled -> filled     accumulate, where a step that was not recorded whole wrote the gradient before: a new one
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at, training_step_of
from backprobe.rules.analysis.training.updates import Update, updates_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import GradRead, LeafGrad, Record, Site

_ADDS: Final = frozenset({"accumulate", "accumulate-new-tensor"})


@dataclass(slots=True)
class Span:
    """One gradient of one leaf.

    Attributes:
        filled: How it came; in order further ones are in `added` (backward calls) and `changed` (by hand).
        arrivals: What backward calls brought, in order: `filled`, if one brought it, and `added`.
        cleared: What emptied it; None if nothing did. zeroed: it was set to zero in place, not to None.
        updates: The updates of the leaf while it was filled; reads: where the program read it.
    """

    tensor: int
    filled: LeafGrad
    arrivals: list[LeafGrad]
    added: list[LeafGrad] = field(default_factory=list["LeafGrad"])
    changed: list[LeafGrad] = field(default_factory=list["LeafGrad"])
    cleared: LeafGrad | None = None
    zeroed: bool = False
    updates: list[Update] = field(default_factory=list[Update])
    reads: list[GradRead] = field(default_factory=list["GradRead"])

    def add(self, row: LeafGrad) -> None:
        """A backward call added to it."""
        self.added.append(row)
        self.arrivals.append(row)


def _begun(row: LeafGrad) -> Span:
    return Span(row.tensor, row, [row] if row.call is not None else [])


@table
def grad_spans(record: Record) -> Mapping[int, tuple[Span, ...]]:
    """The spans of every leaf that ever held a gradient, in order."""
    index = lookup(record)
    tensors = dict.fromkeys(row.tensor for row in record.leaf_grads)
    spans = {tensor: _spans(record, index.leaf_grads_of[tensor]) for tensor in tensors}
    reads: dict[int, list[GradRead]] = {}
    for read in record.grad_reads:
        reads.setdefault(read.tensor, []).append(read)
    for tensor, found in spans.items():
        _sort_in(found, updates_of(record).get(tensor, ()), reads.get(tensor, []))
    return {tensor: tuple(found) for tensor, found in spans.items() if found}


@table
def _stepped(record: Record) -> Mapping[tuple[int, int], list[Span]]:
    found: defaultdict[tuple[int, int], list[Span]] = defaultdict(list)
    for tensor, spans in grad_spans(record).items():
        for span in spans:
            for optimizer in {update.optimizer for update in span.updates if update.optimizer is not None}:
                found[tensor, optimizer].append(span)
    return found


def stepped_by(record: Record, tensor: int, optimizer: int) -> list[Span]:
    """The spans of a leaf that an optimizer stepped on, in order."""
    return _stepped(record).get((tensor, optimizer), [])


def cleared_above(record: Record, span: Span, beside: Site) -> int | None:
    """The clear of its optimizer in the same turn that stands above a statement, in one function, and ran too early.

    It ran behind the update before, and before the span was filled.
    """
    held, begun = span.updates[0].optimizer, span.filled.moment
    since = max((row.moment for row in updates_of(record).get(span.tensor, ()) if row.moment < begun), default=-1)
    rows = [
        row.site for row in record.optimizer_events
        if row.kind == "zero_grad" and row.optimizer == held and since < row.moment < begun and row.site is not None
    ]  # fmt: skip
    sites = lookup(record).sites
    site, step = sites[rows[-1]] if rows else None, sites.get(-1 if (at := span.updates[0].site) is None else at)
    if site is None or (site.function, site.source) != (beside.function, beside.source):
        return None
    if step is not None and step.function == site.function and step.line < site.line:
        return None  # it stands behind its own step, to clear for the next turn
    return site.site if site.line < beside.line else None


def _spans(record: Record, rows: list[LeafGrad]) -> list[Span]:
    found: list[Span] = []
    for row in rows:
        last = found[-1] if found and found[-1].cleared is None else None
        if row.kind == "set-none":
            if last is not None:
                last.cleared = row
        elif row.kind == "populate" or (row.kind == "assigned" and last is None):
            found.append(_begun(row))
        elif row.kind in _ADDS:
            # after a zeroing in place the next call adds to zeros: a new gradient
            is_new = last is None or _is_written_unseen(record, last, row)
            found.append(_begun(row)) if last is None or is_new else last.add(row)
        elif row.kind in ("modified-in-place", "assigned") and last is not None:
            if _is_zero(record, row):
                last.cleared, last.zeroed = row, True
            else:
                last.changed.append(row)
    return found


def _is_written_unseen(record: Record, last: Span, row: LeafGrad) -> bool:
    """Something that was not recorded wrote the gradient since: a clear in place, between sampled steps."""
    before = max((last.filled, *last.added[-1:], *last.changed[-1:]), key=lambda one: one.n)
    jumped = None not in (before.version_after, row.version_before) and before.version_after != row.version_before
    first, second = training_step_of(record, before.moment), training_step_of(record, row.moment)
    return jumped and any(number in _not_whole(record) for number in range(first, second + 1))


@table
def _not_whole(record: Record) -> frozenset[int]:
    """The steps that were not recorded from their begin: between samples, or one in which recording began again."""
    return frozenset(row.step for row in record.steps if not row.sampled or row.why == "loop-left")


def _is_zero(record: Record, row: LeafGrad) -> bool:
    """The gradient held nothing but zeros after this change."""
    state = state_at(record, row.tensor, row.moment)
    measured = state.grad_stats if state is not None and state.moment == row.moment else None
    if measured is not None:
        return measured.counted > 0 and measured.zeros == measured.counted
    clears = (event for event in record.optimizer_events if event.kind == "zero_grad")
    return any(event.moment == row.moment for event in clears)


def _sort_in(spans: list[Span], updates: tuple[Update, ...], reads: list[GradRead]) -> None:
    starts = [span.filled.moment for span in spans]
    for update in updates:  # a span holds a moment after it was filled, and not after it was cleared
        at = bisect_right(starts, update.moment) - 1
        if at >= 0 and ((cleared := spans[at].cleared) is None or update.moment <= cleared.moment):
            spans[at].updates.append(update)
    for read in reads:
        at = bisect_right(starts, read.moment) - 1
        if at >= 0 and ((cleared := spans[at].cleared) is None or read.moment <= cleared.moment):
            spans[at].reads.append(read)
