"""Modules under two names: the statements that named a module a second time, or copied one without its parameters."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.record import NAMED
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.modules.training_modes import inside
from backprobe.rules.analysis.source.syntax import method_called, site_of, statement_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, Record

_SELF: Final = "self."

_RETURNS_ITSELF: Final = frozenset(
    {"to", "cuda", "cpu", "float", "double", "half", "bfloat16", "train", "eval", "requires_grad_", "apply"}
)
"""Methods of a module that give back the module itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleName:
    """A name that a statement gave a module."""

    module: int
    name: str
    site: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondName:
    """A statement that gave a second name to what had one.

    Attributes:
        name: The second name; first: the one before it.
        shallow: It is a shallow copy: another module with the same parameters.
        value: What stands on the right of it.
    """

    module: int
    name: str
    first: str
    site: int
    shallow: bool
    value: ast.expr


@table
def module_names(record: Record) -> dict[int, tuple[ModuleName, ...]]:
    """The names of each module, in order, each with every statement that gave it."""
    found: dict[int, list[ModuleName]] = {}
    for row in record.watched_calls:
        module, name = row.arguments.get("module"), row.arguments.get("name")
        if row.function == NAMED and isinstance(module, int) and isinstance(name, str) and row.site is not None:
            found.setdefault(module, []).append(ModuleName(module=module, name=name, site=row.site))
    return {module: tuple(rows) for module, rows in found.items()}


@table
def second_names(record: Record) -> tuple[SecondName, ...]:
    """All of them: of one kind, two attributes of `self` or two other names, as both are at hand in one place."""
    found = [*_assigned(record), *_copied(record)]
    return tuple(sorted(found, key=lambda one: one.site))


def _assigned(record: Record) -> Iterator[SecondName]:
    for module, rows in module_names(record).items():
        seen: list[str] = []
        for row in rows:
            value = _itself(_given(record, row))
            alike = [name for name in seen if name.startswith(_SELF) == row.name.startswith(_SELF)]
            if isinstance(value, ast.Name | ast.Attribute) and row.name not in seen and alike:
                yield SecondName(
                    module=module, name=row.name, first=alike[-1], site=row.site, shallow=False, value=value
                )
            seen.append(row.name)


def _itself(value: ast.expr | None) -> ast.expr | None:
    """The module of which `model.to(device).eval()` is another way to write."""
    while isinstance(value, ast.Call) and method_called(value) in _RETURNS_ITSELF:
        value = value.func.value if isinstance(value.func, ast.Attribute) else None
    return value


def _copied(record: Record) -> Iterator[SecondName]:
    for rows in module_names(record).values():
        row = rows[0]
        value = _given(record, row)
        while isinstance(value, ast.Call) and method_called(value) in _RETURNS_ITSELF:
            value = value.func.value if isinstance(value.func, ast.Attribute) else None
        if not isinstance(value, ast.Call) or len(value.args) != 1:
            continue
        if method_called(value) == "copy":
            sources = [one for one in record.modules if one.module != row.module and _share(record, one, row.module)]
            if sources:
                first = module_names(record).get(sources[0].module)
                name = first[0].name if first else ast.unparse(value.args[0])
                yield SecondName(module=row.module, name=row.name, first=name, site=row.site, shallow=True, value=value)


def _given(record: Record, row: ModuleName) -> ast.expr | None:
    """What an assignment binds this name to; None for another statement."""
    node = statement_at(record, row.site)
    if isinstance(node, ast.AnnAssign):
        return node.value
    if not isinstance(node, ast.Assign):
        return None
    for target in node.targets:
        if ast.unparse(target) == row.name:
            return node.value
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            for part, value in zip(target.elts, node.value.elts, strict=False):
                if ast.unparse(part) == row.name:
                    return value
    return None


def _share(record: Record, one: Module, other: int) -> bool:
    """Two modules have the same parameters, themselves or in all the parts that their calls ran."""
    mine, theirs = _held(record, one.module), _held(record, other)
    return bool(mine) and mine == theirs


@table
def _kept(_record: Record) -> dict[int, frozenset[int]]:
    """The parameters of modules, filled as they are asked for."""
    return {}


def _held(record: Record, module: int) -> frozenset[int]:
    kept = _kept(record)
    if module not in kept:
        numbers = {module}
        calls = calls_of_modules(record).get(module, ())
        for call in calls[:1]:
            numbers |= {one.module for one in inside(record, call)}
        for part in () if calls else parts_of_class(record, module):
            numbers |= {
                one.module for call in calls_of_modules(record).get(part, ())[:1] for one in inside(record, call)
            }
            numbers.add(part)
        rows = (row for one in record.modules if one.module in numbers for row in one.parameters)
        kept[module] = frozenset(row.tensor for row in rows if row.tensor is not None)
    return kept[module]


def parts_of_class(record: Record, module: int) -> tuple[int, ...]:
    """The parts of a module that itself is never called, only methods of it: what its class's `__init__` names.

    None where the class was made more than once: which parts belong to which is not known then.
    """
    cls = next((one.cls.rpartition(".")[2] for one in record.modules if one.module == module and one.user_code), None)
    return () if cls is None else _parts(record).get(cls, ())


@table
def _parts(record: Record) -> dict[str, tuple[int, ...]]:
    """By class the modules that its `__init__` gave names, where each of its statements named one."""
    found: dict[str, dict[int, list[int]]] = {}
    for module, rows in module_names(record).items():
        for row in rows:
            cls, _, method = site_of(record, row.site).function.rpartition(".")
            if method == "__init__" and row.name.startswith(_SELF):
                found.setdefault(cls.rpartition(".")[2], {}).setdefault(row.site, []).append(module)
    return {
        cls: tuple(one for named in sites.values() for one in named)
        for cls, sites in found.items()
        if all(len(named) == 1 for named in sites.values())
    }


def held_by(record: Record, module: int) -> frozenset[int]:
    """The parameters of a module and of the parts that its first call ran."""
    return _held(record, module)


def reads(node: ast.AST | None, name: str) -> bool:
    """A statement reads a name; an attribute of `self` also as an attribute of what its object is called elsewhere."""
    last = name.rpartition(".")[2]
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Attribute | ast.Name) and isinstance(part.ctx, ast.Load):
            is_attribute = isinstance(part, ast.Attribute) and name.startswith(_SELF) and part.attr == last
            if is_attribute or ast.unparse(part) == name:
                return True
    return False
