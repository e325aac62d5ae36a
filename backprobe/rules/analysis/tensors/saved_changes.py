"""Tensors that were changed in place after a node had saved them, where a backward call raised over it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.autograd_errors import raised_as
from backprobe.rules.analysis.training.updates import updates
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, InplaceEvent, Raised, Record, Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedChange:
    """What one backward call refused.

    Attributes:
        changes: Of the saved tensor's memory since it was saved: at least one, in order.
        by_update: The last one is an update of the training: an optimizer's step, or a leaf written from its gradient.
    """

    raised: Raised
    call: BackwardCall
    saved: Saved
    changes: tuple[InplaceEvent, ...]
    by_update: bool

    @property
    def last(self) -> InplaceEvent:
        """The last change before the call."""
        return self.changes[-1]


@table
def saved_changes(record: Record) -> tuple[SavedChange, ...]:
    """One for each exception whose saved tensor and changes are in the record."""
    return tuple(_found(record))


def _found(record: Record) -> Iterator[SavedChange]:
    steps = {(update.moment, update.site) for update in updates(record)}
    for raised in raised_as(record, "changed-in-place"):
        call = lookup(record).calls.get(raised.call) if raised.call is not None else None
        needed = None if call is None else _needed(record, call, raised)
        if call is not None and needed is not None:
            saved, changes = needed
            update = changes[-1].done_by == "optimizer" or (changes[-1].moment, changes[-1].site) in steps
            yield SavedChange(raised=raised, call=call, saved=saved, changes=tuple(changes), by_update=update)


def _needed(record: Record, call: BackwardCall, raised: Raised) -> tuple[Saved, list[InplaceEvent]] | None:
    """The saved tensor that the exception speaks of: its versions are those that torch names."""
    expected, seen = _fact(raised, "expected_version"), _fact(raised, "version")
    every = [saved for node in sorted(reaches(record)[call.call].met) for saved in lookup(record).saved_of[node]]
    found: list[tuple[Saved, list[InplaceEvent]]] = []
    for saved in every:
        since = saved.version if saved.version is not None else expected
        changes = [] if since is None else _changes(record, call, saved, since)
        if not changes or (expected is not None and since != expected):
            continue
        if seen is not None and changes[-1].version_after != seen:
            continue
        found.append((saved, changes))
    # Of several saved tensors with these versions it is the one whose node the engine had come to: it ran last.
    ran = {row.node: row.position for row in lookup(record).passes_of_call[call.call] if row.position is not None}
    shape = raised.facts.get("shape")
    found.sort(key=lambda one: (", ".join(map(str, one[0].shape)) != shape, -ran.get(one[0].node, -1)))
    return found[0] if found else None


def _fact(raised: Raised, name: str) -> int | None:
    text = raised.facts.get(name, "")
    return int(text) if text.isdecimal() else None


def _changes(record: Record, call: BackwardCall, saved: Saved, since: int) -> list[InplaceEvent]:
    """What changed this memory after the node had saved it and before the call; views share versions."""
    index = lookup(record)
    storage = saved.storage
    if storage is None and saved.tensor is not None:
        storage = index.tensors[saved.tensor].storage
    found: dict[int, InplaceEvent] = {}
    for event in record.inplace_events:
        same = event.tensor == saved.tensor or (storage is not None and index.tensors[event.tensor].storage == storage)
        if same and event.version_after > since and event.moment <= call.moment_before:
            found.setdefault(event.version_after, event)
    return [found[version] for version in sorted(found)]


def saved_name(record: Record, change: SavedChange, site: int | None = None) -> str:
    """What the program calls the tensor: its key, else the name that a statement has for it, else its first one.

    Args:
        site: The statement; by default that of the first change.
    """
    index = lookup(record)
    tensors = [number for number in (change.saved.tensor, *(e.tensor for e in change.changes)) if number is not None]
    for tensor in tensors:
        if index.tensors[tensor].fqn is not None:
            return f"`{index.tensors[tensor].fqn}`"
    places = [site] if site is not None else [event.site for event in change.changes]
    row = next((index.sites[place] for place in places if place is not None), None)
    written = set[str]() if row is None else {name.split("[")[0] for name in (*row.targets, *row.reads)}
    for tensor in tensors:
        named = [row for row in index.bindings_of[tensor] if row.name.split("[")[0] in written]
        own = [one for one in named if row is not None and one.function == row.function]
        if own or named:
            return f"`{(own or named)[0].name}`"
    for tensor in tensors:
        if index.bindings_of[tensor]:
            return f"`{index.bindings_of[tensor][0].name}`"
    return "a saved tensor"
