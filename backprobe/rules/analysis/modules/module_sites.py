"""Which expressions of the source call which modules, and under which grade of tracking: from the module calls seen."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import Function, Names, last_name, names, scope_of
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Module, ModuleCall, Record


@table
def modules_by_number(record: Record) -> dict[int, Module]:
    """The modules of the program."""
    return {row.module: row for row in record.modules}


@table
def calls_by_number(record: Record) -> dict[int, ModuleCall]:
    """The calls of modules."""
    return {row.module_call: row for row in record.module_calls}


def outermost_call(record: Record, call: ModuleCall) -> ModuleCall:
    """The call that the user's statement made: a container of torch calls its children at the same statement."""
    known = calls_by_number(record)
    while call.parent is not None and call.parent in known and known[call.parent].site == call.site:
        call = known[call.parent]
    return call


def expressions_of(record: Record, call: ModuleCall) -> tuple[int, list[ast.expr]] | None:
    """The file, and the expressions of the statement that made a call; None where the source does not show it.

    The expression whose name is the module's; else those that call what is no function of the program or of a library.
    """
    top = outermost_call(record, call)
    if top.site is None:
        return None
    site = site_of(record, top.site)
    node = statement(record, site)
    found = [part for part in ast.walk(node) if isinstance(part, ast.Call)] if node is not None else []
    return site.source, list(_matching(record, site.source, modules_by_number(record).get(top.module), found))


def _matching(record: Record, source: int, module: Module | None, found: list[ast.Call]) -> list[ast.Call]:
    file = names(record).get(source)
    if module is None or file is None:
        return []
    path = (module.fqn or module.binding or "").rpartition(".")[2]
    bound = [one for one in found if path and last_name(one.func) == path]
    bound = bound or [one for one in found if ast.unparse(one.func) == module.binding]
    if bound:
        return bound
    handed = [
        one
        for one in found
        if any(last_name(arg) == path or ast.unparse(arg) == module.binding for arg in one.args if path)
    ]
    free = [
        one
        for one in found
        if isinstance(one.func, ast.Name | ast.Subscript | ast.Attribute)
        and last_name(one.func) not in file.functions
        and last_name(one.func) not in file.classes
        and _is_value(one.func, file)
    ]
    return handed or free


def _is_value(called: ast.expr, file: Names) -> bool:
    """Not a library's function, a method of a tensor, or a builtin."""
    if isinstance(called, ast.Subscript):
        return True
    if isinstance(called, ast.Name):
        return called.id not in file.imported and called.id not in dir(__builtins__)
    if not isinstance(called, ast.Attribute) or not isinstance(called.value, ast.Name):
        return False
    same = (one for one in file.attributes.get(called.attr, ()) if ast.unparse(one.value) == called.value.id)
    return called.value.id == "self" or any(isinstance(one.ctx, ast.Store) for one in same)


@table
def entered(record: Record) -> dict[ast.Call, list[tuple[int, Function]]]:
    """The `forward` methods of the user's own classes that a call expression enters."""
    found: defaultdict[ast.Call, list[tuple[int, Function]]] = defaultdict(list)
    methods = _forwards(record)
    seen: set[tuple[int, int | None]] = set()
    for call in record.module_calls:
        module = modules_by_number(record).get(call.module)
        if (call.module, call.site) in seen:
            continue
        seen.add((call.module, call.site))
        written = expressions_of(record, call) if module is not None and module.user_code else None
        for function in methods.get(module.cls.rpartition(".")[2], ()) if module is not None else ():
            for part in written[1] if written is not None else ():
                if isinstance(part, ast.Call) and function not in found[part]:
                    found[part].append(function)
    return dict(found)


@table
def entering(record: Record) -> dict[Function, list[tuple[int, ast.Call]]]:
    """The call expressions that enter a `forward` method, with their file."""
    found: defaultdict[Function, list[tuple[int, ast.Call]]] = defaultdict(list)
    where = {part: number for number, file in names(record).items() for part in file.tree.parents}
    for call, functions in entered(record).items():
        for _source, function in functions:
            found[function].append((where[call], call))
    return dict(found)


@table
def _forwards(record: Record) -> dict[str, list[tuple[int, Function]]]:
    """The `forward` of each class; a subclass without one has its base's."""
    own: dict[str, list[tuple[int, Function]]] = {}
    bases: dict[str, list[str]] = {}
    for number, file in names(record).items():
        for function in file.functions.get("forward", ()):
            cls = file.tree.parents.get(function)
            if isinstance(cls, ast.ClassDef):
                own.setdefault(cls.name, []).append((number, function))
        bases |= {name: [last_name(one) for one in cls.bases] for name, cls in file.classes.items()}
    for name in bases:
        known, waiting = {name}, [name]
        while waiting and name not in own:
            base = waiting.pop(0)
            if base in own:
                own[name] = own[base]
            for above in bases.get(base, ()):
                if above not in known:
                    known.add(above)
                    waiting.append(above)
    return own


def function_at(record: Record, site: int) -> ast.AST | None:
    """The function of the source that a site stands in."""
    row = site_of(record, site)
    node, file = statement(record, row), names(record).get(row.source)
    return None if node is None or file is None else scope_of(file.tree, node)
