"""Modules whose result depends on `training`: which calls ran them, in which mode, and what was trained by them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.module_sites import (
    calls_by_number,
    expressions_of,
    modules_by_number,
    outermost_call,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Record

DROPOUTS: Final = frozenset(
    {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout", "DropPath"}
)
NORMS: Final = frozenset(
    {
        "BatchNorm1d",
        "BatchNorm2d",
        "BatchNorm3d",
        "SyncBatchNorm",
        "LazyBatchNorm1d",
        "LazyBatchNorm2d",
        "LazyBatchNorm3d",
    }
)
"""Classes of torch that act by their `training` flag."""


@table
def children_of(record: Record) -> dict[int, list[ModuleCall]]:
    """The calls made inside a call of a module."""
    found: defaultdict[int, list[ModuleCall]] = defaultdict(list)
    for call in record.module_calls:
        if call.parent is not None:
            found[call.parent].append(call)
    return dict(found)


def inside(record: Record, call: ModuleCall) -> Iterator[ModuleCall]:
    """A call and all calls in it."""
    waiting = [call]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += children_of(record).get(one.module_call, ())


@table
def called_modules(record: Record) -> dict[ast.expr, frozenset[int]]:
    """The modules that run in a call expression of the program, those inside them too."""
    found: dict[ast.expr, set[int]] = {}
    seen: set[tuple[int, int | None]] = set()
    for call in record.module_calls:
        if (call.module, call.site) in seen or outermost_call(record, call) is not call:
            continue
        seen.add((call.module, call.site))
        written = expressions_of(record, call)
        for part in () if written is None else written[1]:
            found.setdefault(part, set()).update(one.module for one in inside(record, call))
    return {part: frozenset(numbers) for part, numbers in found.items()}


def module_of(record: Record, call: ModuleCall) -> Module | None:
    """The module that a call is of."""
    return modules_by_number(record).get(call.module)


def modules_of(record: Record, classes: frozenset[str]) -> frozenset[int]:
    """The numbers of the modules of these classes."""
    return frozenset(number for number, module in modules_by_number(record).items() if module.cls in classes)


def is_of(record: Record, call: ModuleCall, classes: frozenset[str]) -> bool:
    """The call is of a module of one of these classes."""
    module = module_of(record, call)
    return module is not None and module.cls in classes


def outermost_in_mode(record: Record, call: ModuleCall) -> ModuleCall:
    """The outermost call around one that ran in the same mode without a break."""
    known = calls_by_number(record)
    while call.parent is not None and call.parent in known and known[call.parent].training == call.training:
        call = known[call.parent]
    return call


def parameters_in(record: Record, call: ModuleCall) -> set[int]:
    """The parameters of the modules that ran in a call."""
    found: set[int] = set()
    for one in inside(record, call):
        module = module_of(record, one)
        found |= {row.tensor for row in (module.parameters if module is not None else ()) if row.tensor is not None}
    return found


@table
def walked_in(record: Record) -> dict[int, list[int]]:
    """The backward calls that ran nodes made inside a call of a module, by that call's number."""
    index, known = lookup(record), calls_by_number(record)
    found: defaultdict[int, list[int]] = defaultdict(list)
    for call in record.backward_calls:
        inner = {index.nodes[node].module_call for node in reaches(record)[call.call].ran}
        around: set[int] = set()
        for number in inner:
            above = number
            while above is not None and above in known and above not in around:
                around.add(above)
                above = known[above].parent
        for number in around:
            found[number].append(call.call)
    return dict(found)


@table
def used_by_updates(record: Record) -> dict[int, dict[int, list[int]]]:
    """Backward call -> leaf -> the moments of the updates that used the gradient which the call brought it."""
    found: dict[int, dict[int, list[int]]] = {}
    for leaf, spans in grad_spans(record).items():
        for span in spans:
            for row in span.arrivals:
                moments = [update.moment for update in span.updates if update.moment > row.moment]
                if row.call is not None and moments:
                    found.setdefault(row.call, {}).setdefault(leaf, []).extend(moments[:1])
    return found


def written_call(record: Record, call: ModuleCall) -> tuple[int, ast.expr] | None:
    """The expression that makes a call, with its file; None where the source has none, as inside `Sequential`."""
    around = None if call.parent is None else calls_by_number(record).get(call.parent)
    if around is not None and around.site == call.site:
        return None  # what is written there calls the one around it
    found = expressions_of(record, call)
    return (found[0], found[1][0]) if found is not None and found[1] else None


def receiver_of(record: Record, call: ModuleCall) -> str:
    """What is called, as written: `self.net`; else the module's name."""
    found, module = written_call(record, call), module_of(record, call)
    if found is not None and isinstance(found[1], ast.Call):
        return ast.unparse(found[1].func)
    if module is None:
        return "the module"
    is_path = bool(module.fqn) and all(part.isidentifier() for part in module.fqn.split("."))
    return (module.fqn if is_path else "") or module.binding or module.cls
