"""How the program lists the parameters of an optimizer: the argument, or what filled the list that it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.assignments import spelled_out
from backprobe.rules.analysis.source.syntax import Tree, region_in, statement, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.framework.finding import Region

_NAMED: Final = frozenset({"params", "parameters"})


def optimizer_call(record: Record, site: Site) -> ast.Call | None:
    """The call that builds the optimizer of a statement, or of the function in the same file that it calls."""
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return None
    calls = [part for part in ast.walk(node) if isinstance(part, ast.Call) and (part.args or part.keywords)]
    if not any(_is_optimizer(record, site, call) for call in calls):
        called = {last_name(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
        bodies = [part for part in tree.nodes if isinstance(part, ast.FunctionDef) and part.name in called]
        inside = [part for body in bodies for part in ast.walk(body) if isinstance(part, ast.Call)]
        built = [call for call in inside if _is_optimizer(record, site, call)]
        calls = built or calls
    return calls[0] if calls else None


def _is_optimizer(record: Record, site: Site, call: ast.Call) -> bool:
    return (dotted(record, site, call.func) or "").startswith("torch.optim.")


def last_name(called: ast.expr) -> str | None:
    """`Adam` of `torch.optim.Adam`; None for what is no name."""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None


def parameters_argument(call: ast.Call) -> ast.expr | None:
    """The argument that lists the parameters: the first, or the one given by its name."""
    if call.args:
        return call.args[0]
    return next((given.value for given in call.keywords if given.arg in _NAMED), None)


def region_that_lists(record: Record, site: Site, *, chooses: bool = True) -> Region | None:
    """Where the parameters of an optimizer are chosen: the filter that drops some, else the list, else the argument.

    Args:
        chooses: It matters what the program leaves out; else the argument itself is told.
    """
    call, tree = optimizer_call(record, site), tree_of(record, site)
    argument = parameters_argument(call) if call is not None else None
    if argument is None or tree is None:
        return None
    argument = _handed_in(tree, argument)
    if not chooses:
        return region_in(record, site.source, argument)
    returned = _returned(tree, argument)
    chosen = next(_choosers(tree, argument), None)
    if chosen is None and returned is not None:
        chosen = next(_choosers(tree, returned), None)
    return region_in(record, site.source, chosen or argument)


def last_group(record: Record, site: Site) -> Region | None:
    """The last group of a list that the program writes for an optimizer, in place, under a name or in a function."""
    call, tree = optimizer_call(record, site), tree_of(record, site)
    given = parameters_argument(call) if call is not None else None
    if given is None or tree is None:
        return None
    given = spelled_out(record, tree, _handed_in(tree, given))
    given = _returned(tree, given) or given
    if isinstance(given, ast.Name):
        scope = _scope(tree, given)
        values = [one.value for one in ast.walk(scope) if isinstance(one, ast.Assign) and _fills(one, {given.id})]
        given = values[0] if len(values) == 1 else given
    groups = given.elts if isinstance(given, ast.List | ast.Tuple) else []
    return region_in(record, site.source, groups[-1]) if groups else None


def _returned(tree: Tree, argument: ast.expr) -> ast.expr | None:
    """What the function of the program that gives the groups returns, if there is one such `return`."""
    name = last_name(argument.func) if isinstance(argument, ast.Call) else None
    functions = [one for one in tree.nodes if isinstance(one, ast.FunctionDef) and one.name == name]
    found = [part.value for one in functions for part in ast.walk(one) if isinstance(part, ast.Return) and part.value]
    return found[0] if len(functions) == 1 and len(found) == 1 else None


def _handed_in(tree: Tree, argument: ast.expr) -> ast.expr:
    """What a caller gave for a parameter of the function that builds the optimizer, if there is only one caller."""
    scope = _scope(tree, argument)
    if not isinstance(argument, ast.Name) or not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return argument
    names = [parameter.arg for parameter in (*scope.args.posonlyargs, *scope.args.args)]
    calls = [part for part in tree.nodes if isinstance(part, ast.Call)]
    callers = [call for call in calls if last_name(call.func) == scope.name]
    if argument.id not in names or len(callers) != 1:
        return argument
    named = next((given.value for given in callers[0].keywords if given.arg == argument.id), None)
    at = names.index(argument.id)
    return named or (callers[0].args[at] if at < len(callers[0].args) else argument)


def _choosers(tree: Tree, argument: ast.expr) -> Iterator[ast.expr]:
    """Expressions that decide which parameters get in, the most telling first.

    Of conditions that deal them out to several lists the last one, which was to take what is left.
    """
    yield from _filters(argument)
    scope = _scope(tree, argument)
    names = _listed(scope, argument)
    fillers = [node for node in ast.walk(scope) if _fills(node, names)]
    # a guard without `else` lets what it does not name fall through
    guards = [guard for node in fillers if (guard := _last_guard(tree, node, scope)) is not None]
    yield from (guard.test for guard in guards[-1:])
    filters = [one for node in fillers if isinstance(node, ast.Assign) for one in _filters(node.value)]
    yield from sorted(filters, key=lambda one: -one.lineno)
    if isinstance(argument, ast.Name):
        yield from (node.value for node in fillers if isinstance(node, ast.Assign) and not _is_empty(node.value))


def _listed(scope: ast.AST, argument: ast.expr) -> set[str]:
    """The names that an argument reads, and those that the lists of groups by these names were written with."""
    names = {part.id for part in ast.walk(argument) if isinstance(part, ast.Name)}
    for _ in range(_DEPTH):
        groups = [
            part
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign) and _fills(node, names) and isinstance(node.value, _DISPLAYS)
            for part in ast.walk(node.value)
        ]
        names |= {part.id for part in groups if isinstance(part, ast.Name)}
    return names


_DEPTH: Final = 2
"""Lists of groups that are written with each other."""

_DISPLAYS: Final = (ast.List, ast.Tuple, ast.Dict, ast.BinOp)


def _filters(expression: ast.expr) -> Iterator[ast.expr]:
    for part in ast.walk(expression):
        if isinstance(part, ast.comprehension) and part.ifs:
            yield part.ifs[-1]


def _scope(tree: Tree, node: ast.AST) -> ast.AST:
    functions = (above for above in tree.ancestors(node) if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef))
    return next(functions, tree.module)


def _fills(node: ast.AST, names: set[str]) -> bool:
    """`names = ...`, `names.append(...)`, `names += ...`."""
    if isinstance(node, ast.Assign):
        return any(isinstance(target, ast.Name) and target.id in names for target in node.targets)
    if isinstance(node, ast.AugAssign):
        return isinstance(node.target, ast.Name) and node.target.id in names
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        held = node.func.value
        while isinstance(held, ast.Subscript | ast.Attribute):
            held = held.value  # `groups["decay"].append(p)`, `groups[0]["params"].append(p)`
        return isinstance(held, ast.Name) and held.id in names and node.func.attr in _ADDS
    return False


_ADDS: Final = frozenset({"append", "extend", "add", "update", "insert"})


def _is_empty(value: ast.expr) -> bool:
    return isinstance(value, ast.List | ast.Tuple) and not value.elts


def _last_guard(tree: Tree, node: ast.AST, scope: ast.AST) -> ast.If | None:
    """The last `if` or `elif` of the chain around a statement, where no `else` takes the rest."""
    for above in tree.ancestors(node):
        if above is scope:
            return None
        if isinstance(above, ast.If):
            last = above
            while len(last.orelse) == 1 and isinstance(last.orelse[0], ast.If):
                last = last.orelse[0]
            return None if last.orelse else last
    return None
