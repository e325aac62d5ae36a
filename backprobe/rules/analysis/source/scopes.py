"""The names of the user's program by scope: where each is read, which functions there are and who calls them."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import Tree, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Module
_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Names:
    """One file.

    Attributes:
        loads: Where a name is read, by the scope that binds it and the name.
        attributes: Where an attribute is read, by its name.
        calls: Calls by the last part of what is called: `encode` for `self.encode(x)`.
        functions: Functions and methods by name, without pytest's fixtures, which nobody calls by name.
        classes: Classes by name.
        imported: Names that an import binds: what is called through them is a library's.
        declared: Names that a function declares `global` or `nonlocal`, with the scope that they are of.
    """

    tree: Tree
    loads: dict[tuple[Scope, str], list[ast.Name]]
    attributes: dict[str, list[ast.Attribute]]
    calls: dict[str, list[ast.Call]]
    functions: dict[str, list[Function]]
    classes: dict[str, ast.ClassDef]
    imported: frozenset[str]
    declared: dict[tuple[Scope, str], Scope]


@table
def names(record: Record) -> dict[int, Names]:
    """The names of each source, by its number."""
    return {number: _names(tree) for number, tree in trees(record).items()}


def _names(tree: Tree) -> Names:
    bound = _bound(tree)
    loads: defaultdict[tuple[Scope, str], list[ast.Name]] = defaultdict(list)
    attributes: defaultdict[str, list[ast.Attribute]] = defaultdict(list)
    calls: defaultdict[str, list[ast.Call]] = defaultdict(list)
    functions: defaultdict[str, list[Function]] = defaultdict(list)
    classes: dict[str, ast.ClassDef] = {}
    imported: set[str] = set()
    declared: dict[tuple[Scope, str], Scope] = {}
    for node in tree.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            loads[_binder(tree, bound, node), node.id].append(node)
        elif isinstance(node, ast.Attribute):
            attributes[node.attr].append(node)
        elif isinstance(node, ast.Call):
            calls[last_name(node.func)].append(node)
        elif isinstance(node, Function):
            if not _is_fixture(node):
                functions[node.name].append(node)
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported |= {(one.asname or one.name).partition(".")[0] for one in node.names}
        elif isinstance(node, ast.Global | ast.Nonlocal):
            scope = scope_of(tree, node)
            outer = tree.module if isinstance(node, ast.Global) else scope_of(tree, scope)
            declared.update({(scope, name): outer for name in node.names})
    return Names(
        tree, dict(loads), dict(attributes), dict(calls), dict(functions), classes, frozenset(imported), declared
    )


def _is_fixture(function: Function) -> bool:
    """`@pytest.fixture`: where a test calls `net(x)`, its parameter `net` is what the fixture returned."""
    decorators = [one.func if isinstance(one, ast.Call) else one for one in function.decorator_list]
    return any(last_name(one) == "fixture" for one in decorators)


def last_name(called: ast.expr) -> str:
    """`encode` for `encode`, `self.encode` and `models[0].encode`; "" for what has no name."""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""


def root_name(node: ast.expr) -> str:
    """The name that an expression of attributes, elements and calls begins with; "" if none."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def scope_of(tree: Tree, node: ast.AST) -> Scope:
    """The innermost function around a node, else its module."""
    return next((above for above in tree.ancestors(node) if isinstance(above, Function)), tree.module)


@table
def assigned(record: Record) -> dict[tuple[Scope, str], list[ast.Assign]]:
    """The assignments to each plain name, by the function around them or the module, in order of lines."""
    found: defaultdict[tuple[Scope, str], list[ast.Assign]] = defaultdict(list)
    for tree in trees(record).values():
        for node in tree.nodes:
            if isinstance(node, ast.Assign):
                for name in dict.fromkeys(name for target in node.targets for name in target_names(target)):
                    found[scope_of(tree, node), name].append(node)
    return {key: sorted(rows, key=lambda row: row.lineno) for key, rows in found.items()}


def scope_of_class(tree: Tree, function: Function) -> ast.AST | None:
    """The class that a method stands in; None for a function."""
    above = tree.parents.get(function)
    return above if isinstance(above, ast.ClassDef) else None


def binder_of(names_of_file: Names, node: ast.AST, name: str) -> Scope:
    """The scope whose `name` an assignment at this node binds."""
    scope = scope_of(names_of_file.tree, node)
    return names_of_file.declared.get((scope, name), scope)


def parameters_of(function: Function) -> list[str]:
    """Its parameters in order, with `*args` and `**kwargs`."""
    given = function.args
    every = [*given.posonlyargs, *given.args, *([given.vararg] if given.vararg else []), *given.kwonlyargs]
    return [one.arg for one in (*every, *([given.kwarg] if given.kwarg else []))]


def target_names(target: ast.expr) -> Iterator[str]:
    """The names that a target binds or stores into: `x` and `rows` of `x, rows[i] = 1, 2`, not `i`."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from target_names(part)
    elif isinstance(target, ast.Starred):
        yield from target_names(target.value)
    elif name := root_name(target):
        yield name


def _bound(tree: Tree) -> dict[Scope, set[str]]:
    """The names that each function binds itself."""
    found: dict[Scope, set[str]] = {tree.module: set()}
    for node in tree.nodes:
        if isinstance(node, Function):
            found.setdefault(node, set()).update(parameters_of(node))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.setdefault(scope_of(tree, node), set()).add(node.id)
    return found


def _binder(tree: Tree, bound: dict[Scope, set[str]], node: ast.Name) -> Scope:
    scope = scope_of(tree, node)
    while scope is not tree.module and node.id not in bound.get(scope, ()):
        scope = scope_of(tree, scope)
    return scope


def inside_comprehension(tree: Tree, node: ast.comprehension) -> Iterator[ast.Name]:
    """Where the comprehension around a `for` part reads what that part binds."""
    around = tree.parents[node]
    bound = set(target_names(node.target))
    if isinstance(around, _COMPREHENSIONS):
        parts = [around.key, around.value] if isinstance(around, ast.DictComp) else [around.elt]
        for part in (*parts, *(one.iter for one in around.generators if one is not node)):
            for name in ast.walk(part):
                if isinstance(name, ast.Name) and name.id in bound and isinstance(name.ctx, ast.Load):
                    yield name
