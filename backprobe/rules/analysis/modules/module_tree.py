"""The modules of the program as a tree, by the keys of their parameters: `net.encoder` holds `net.encoder.weight`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Record

CONTAINERS: Final = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
"""Classes of torch.nn that only hold what they are given."""


@table
def module_keys(record: Record) -> dict[str, Module]:
    """The modules by their full key, the name of the root in front; of two with one key the first."""
    roots = [row.binding for row in record.modules if row.binding]
    found: dict[str, Module] = {}
    for row in record.modules:
        owned = (lookup(record).tensors.get(-1 if one.tensor is None else one.tensor) for one in row.parameters)
        keys = [one.fqn.rpartition(".")[0] for one in owned if one is not None and one.fqn]
        if row.binding and not row.fqn:
            keys.insert(0, row.binding)
        for key in keys[:1] or [f"{root}.{row.fqn}" for root in roots]:
            found.setdefault(key, row)
    return found


def parameters_below(record: Record, key: str) -> list[int]:
    """The parameters whose keys begin with that of a module, in order."""
    return _parameters_by_key(record).get(key, [])


@table
def _parameters_by_key(record: Record) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for row in record.tensors:
        if row.role == "parameter" and row.fqn is not None:
            for key in above(row.fqn):
                found.setdefault(key, []).append(row.tensor)
    return found


def above(key: str) -> Iterator[str]:
    """The keys of what holds a module, nearest first."""
    while "." in key:
        key = key.rpartition(".")[0]
        yield key


@table
def calls_of_modules(record: Record) -> dict[int, list[ModuleCall]]:
    """The calls of each module, in order."""
    found: dict[int, list[ModuleCall]] = {}
    for row in record.module_calls:
        found.setdefault(row.module, []).append(row)
    return found
