"""Whether what is changed in place are batches of stored data: changed by themselves or by noise, then trained on."""

from __future__ import annotations

import ast
from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.named_values import binding_named
from backprobe.rules.analysis.source.scopes import names, root_name
from backprobe.rules.analysis.source.syntax import method_called, parts_of, site_of, statement_at, value_of
from backprobe.rules.analysis.stored_data.stored_changes import RANDOM, writes_by_chance
from backprobe.rules.analysis.tensors.parents import operands_below
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record

_SUMS: Final = ("add_", "sub_", "Add", "Sub")
_PRODUCTS: Final = ("mul_", "div_", "Mult", "Div")
LEAST_GIVEN: Final = 2
_MOST: Final = 3
"""Statements that may change a batch one after the other: one that adds, one that multiplies, one that does both."""
_NEUTRAL: Final = frozenset({"clamp_", "clip_"})
_NUMBERS: Final = frozenset({"int", "float", "len", "range", "slice", "min", "max", "round"})
"""Functions of Python that give no tensor."""


def are_batches(record: Record, groups: list[list[InplaceEvent]], name: str) -> bool:
    """The groups, one for each place in memory, are the changes of one statement to the batches of a store.

    There are two places at least, each is changed, and trained on, twice or more, and nothing changes them back.
    """
    site, events = groups[0][0].site, groups[0]
    if len(groups) < 2 or site is None or not is_of_itself(record, site, name, events):
        return False
    given = any(_is_given(record, group) for group in groups)
    if not given and (writes_by_chance(record, site) or not any(_is_trained_on(record, group) for group in groups)):
        return False
    tensors = lookup(record).tensors
    bases = {row.view_of or row.tensor for row in (tensors[group[0].tensor] for group in groups)}
    for base in bases:
        state = state_at(record, base, events[-1].moment)
        if state is not None and state.requires_grad:
            return False
    memory = {tensors[base].storage for base in bases}
    sites = {one for storage in memory if storage is not None for one in _sites_that_write(record).get(storage, ())}
    kinds = [_kind(record, one) for one in sites | {site}]
    return "" not in kinds and len(kinds) == len(set(kinds))


def _is_trained_on(record: Record, group: list[InplaceEvent]) -> bool:
    """Twice at least, a graph holds this memory as it was after the change, or after another one that followed."""
    index, held = lookup(record).tensors, _saved(record)
    found = 0
    for event in group:
        versions = range(event.version_after, event.version_after + _MOST)
        found += any((index[event.tensor].storage, version) in held for version in versions)
    return found >= 2


def _is_given(record: Record, group: list[InplaceEvent]) -> bool:
    """Twice at least, a module was given this piece of memory, or a name of it, between one change and the next."""
    row, rows = lookup(record).tensors[group[0].tensor], _inputs(record)
    moments = [] if row.storage is None else rows.get((row.storage, row.storage_offset), [])
    spans = pairwise([*(event.moment for event in group), len(record.moments)])
    return sum(bisect_left(moments, begin) < bisect_left(moments, end) for begin, end in spans) >= LEAST_GIVEN


@table
def _inputs(record: Record) -> dict[tuple[int, int | None], list[int]]:
    """When modules were given a piece of memory, or what an expression makes of it, as their first argument."""
    index, found = lookup(record), dict[tuple[int, int | None], list[int]]()
    calls = {call.site for call in record.module_calls}
    imported = {name for one in names(record).values() for name in one.imported}
    below = operands_below(record) if calls else {}
    for row in record.operations:
        called = row.function.partition(".")[0]
        if row.statement not in calls or not called.isidentifier() or called in imported or not below[row.operation]:
            continue
        given = index.tensors[below[row.operation][0]]
        if given.storage is not None and row.moment is not None:
            found.setdefault((given.storage, given.storage_offset), []).append(row.moment)
    return {key: sorted(moments) for key, moments in found.items()}


@table
def _saved(record: Record) -> frozenset[tuple[int | None, int | None]]:
    """Memory that nodes hold for backward, with its version."""
    return frozenset((row.storage, row.version) for row in record.saved if row.storage is not None)


@table
def _sites_that_write(record: Record) -> dict[int, set[int]]:
    """The statements that change a memory in place: a call whose function did, as was seen there, is none."""
    found: dict[int, set[int]] = {}
    writers: dict[tuple[int, int], int] = {}
    for event in record.inplace_events:
        storage = lookup(record).tensors[event.tensor].storage
        if storage is not None and event.site is not None and event.done_by == "statement":
            found.setdefault(storage, set()).add(writers.setdefault((storage, event.version_after), event.site))
    return found


def _kind(record: Record, site: int) -> str:
    """Whether a statement adds, multiplies or erases by chance; "" for another change."""
    node = statement_at(record, site)
    if writes_by_chance(record, site):
        return "erasure"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return ""
    called = {one for part in parts_of(value_of(node)) if (one := method_called(part)) and one.endswith("_")} - _NEUTRAL
    if isinstance(node, ast.AugAssign):
        called.add(type(node.op).__name__)
    kinds = {"sum" if one in _SUMS else "product" if one in _PRODUCTS else "" for one in called}
    return "" if not kinds or "" in kinds else "+".join(sorted(kinds))


def is_of_itself(record: Record, site: int, name: str, events: list[InplaceEvent]) -> bool:
    """What is added, or multiplied with, is made from the same tensor, from numbers, by chance, or never changes."""
    row, node = site_of(record, site), statement_at(record, site)
    imported = names(record)[row.source].imported if row.source in names(record) else frozenset[str]()
    for part in parts_of(node):
        if isinstance(part, ast.Call) and root_name(part) not in imported | {name} | _NUMBERS:
            return False
        if not isinstance(part, ast.Name) or part.id == name or part.id in imported:
            continue
        first = binding_named(record, part.id, row, events[0].moment)
        last = binding_named(record, part.id, row, events[-1].moment)
        if first is None or last is None or first.tensor == last.tensor:
            continue
        born = lookup(record).tensors[last.tensor].site
        made = statement_at(record, last.site if born is None else born)
        if not any((method_called(one) or "").startswith(RANDOM) for one in parts_of(value_of(made))):
            return False
    return True
