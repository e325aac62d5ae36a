"""Modules that a default argument made: one for all objects that are built without that argument."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.modules.module_sites import calls_by_number, modules_by_number
from backprobe.rules.analysis.source.scopes import Function, last_name, names, scope_of, scope_of_class
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultModule:
    """A module of a default argument that several others hold.

    Attributes:
        parameter: The argument's name. default: the expression that made the module.
        site: The statement that takes it; source: its file.
        owners: The modules that called it.
        calls: The statements of those calls.
    """

    module: int
    parameter: str
    default: ast.expr
    site: int
    source: int
    owners: tuple[int, ...]
    calls: tuple[int, ...]


@table
def default_modules(record: Record) -> tuple[DefaultModule, ...]:
    """All of them, in the order of the modules."""
    known, outer = modules_by_number(record), calls_by_number(record)
    owners: defaultdict[int, dict[int, None]] = defaultdict(dict)
    calls: defaultdict[int, dict[int, None]] = defaultdict(dict)
    for call in record.module_calls:
        above = None if call.parent is None else outer.get(call.parent)
        if above is not None and call.site is not None and not call.recompute:
            owners[call.module][above.module] = None
            calls[call.module][call.site] = None
    found: list[DefaultModule] = []
    for module, held in owners.items():
        row = known.get(module)
        if row is None or row.site is None or len(held) < 2:
            continue
        for parameter, default in _defaults(record, row, row.site):
            found.append(
                DefaultModule(
                    module=module, parameter=parameter, default=default, site=row.site,
                    source=site_of(record, row.site).source, owners=tuple(held), calls=tuple(calls[module]),
                )
            )  # fmt: skip
    return tuple(found)


def _defaults(record: Record, module: Module, number: int) -> Iterator[tuple[str, ast.expr]]:
    """The argument of the function around whose default made the module, if no call in the file ever gives it."""
    site = site_of(record, number)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if node is None or tree is None or not isinstance(function, Function):
        return
    read = {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
    around = scope_of_class(tree, function)
    is_maker = isinstance(around, ast.ClassDef) and function.name == "__init__"
    called = around.name if isinstance(around, ast.ClassDef) and is_maker else function.name
    uses = [one for file in names(record).values() for one in file.calls.get(called, ())]
    plain = [*function.args.posonlyargs, *function.args.args]
    skipped = 1 if isinstance(around, ast.ClassDef) else 0
    for argument, default, place in _arguments(function, plain):
        is_made = isinstance(default, ast.Call) and last_name(default.func) == module.cls.rpartition(".")[2]
        if is_made and argument in read and not any(_gives(one, argument, place - skipped) for one in uses):
            yield argument, default


def _arguments(function: Function, plain: list[ast.arg]) -> Iterator[tuple[str, ast.expr, int]]:
    """The arguments that have a default, with it and their place; one by keyword alone has a place after all others."""
    first = len(plain) - len(function.args.defaults)
    for number, default in enumerate(function.args.defaults):
        yield plain[first + number].arg, default, first + number
    for one, default in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        if default is not None:
            yield one.arg, default, 1 << 16


def _gives(call: ast.Call, argument: str, place: int) -> bool:
    """A call hands in the argument, or may."""
    is_open = any(isinstance(one, ast.Starred) for one in call.args)
    return is_open or len(call.args) > place or any(one.arg in (None, argument) for one in call.keywords)
