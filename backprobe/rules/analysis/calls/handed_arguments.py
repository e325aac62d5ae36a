"""The call whose argument a function's parameter was, where the function itself does nothing wrong with it.

def update(self, value):
    self.total += value        # right for numbers
meter.update(loss)             # a loss with its history is handed in here
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import (
    Function,
    names,
    parameters_of,
    scope_of,
    scope_of_class,
    target_names,
)
from backprobe.rules.analysis.source.syntax import Tree, site_at, statement, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record, Site

_MOST: Final = 4
"""Functions that hand a parameter on to each other: beyond, the answer is the last call that was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
    """An argument of a call. site: of the statement around the call. beside: others go the same way, as keywords."""

    site: Site
    part: ast.expr
    beside: bool = False

    @property
    def text(self) -> str:
        """The argument, as written."""
        return ast.unparse(self.part)


def handed_in(record: Record, site: Site, name: str) -> Handed | None:
    """The one argument that a function's parameter ever was, by the source.

    None where the name is no parameter that the function leaves as it is; where several calls, perhaps of another
    function of that name, hand something in: then the function is the one place to change; or where calls do not name
    the function, as `forward` and `__call__`. Of several calls the one counts that alone hands in the name of a tensor.

    Args:
        site: A statement of the function that reads the name.
    """
    found: Handed | None = None
    for _ in range(_MOST):
        step = _one_up(record, site, name)
        if step is None:
            break
        found = step
        if not isinstance(found.part, ast.Name) or found.beside:
            break
        site, name = found.site, found.part.id
    return found


def all_handed_in(record: Record, site: Site, name: str) -> tuple[Handed, ...]:
    """What each call of a function gave for a parameter that it leaves as it is, constructors among them.

    An argument that is itself a parameter is what its function was given. None where one call does not tell.
    """
    found = _all_up(record, site, name, _MOST)
    return () if None in found else tuple(one for one in found if one is not None)


def _all_up(record: Record, site: Site, name: str, most: int) -> list[Handed | None]:
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if tree is None or not isinstance(function, Function) or not _is_left_alone(tree, function, name):
        return [None]
    if function.name in ("forward", "__call__"):
        return [None]
    around = scope_of_class(tree, function)
    called = around.name if isinstance(around, ast.ClassDef) and function.name == "__init__" else function.name
    found: list[Handed | None] = []
    for file in names(record).values():
        for call in file.calls.get(called, ()):
            one = _handed(record, file.tree, function, call, name)
            deeper = (
                [None]
                if one is None or not most or not isinstance(one.part, ast.Name)
                else _all_up(record, one.site, one.part.id, most - 1)
            )
            found += [one] if None in deeper else deeper
    return found or [None]


def _handed(record: Record, outer: Tree, function: Function, call: ast.Call, name: str) -> Handed | None:
    part = _argument(function, call, name)
    around = next((one for one in outer.ancestors(call) if isinstance(one, ast.stmt)), None)
    there = None if around is None else site_at(record, around)
    return None if part is None or there is None else Handed(site=there, part=part)


def _one_up(record: Record, site: Site, name: str) -> Handed | None:
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if tree is None or not isinstance(function, Function):
        return None
    if function.name.startswith("__") or function.name == "forward":
        return None
    calls = [(file.tree, one) for file in names(record).values() for one in file.calls.get(function.name, ())]
    if len(calls) == 1 and _is_of_keywords(tree, node, function, name):
        return _handed_by_keyword(record, calls[0][0], function, calls[0][1])
    if not _is_left_alone(tree, function, name):
        return None
    if len(calls) > 1:
        own = {row.tensor for row in bindings_named(record)[name] if row.function == site.function}
        bound = {row.name for tensor in own for row in lookup(record).bindings_of[tensor]}
        given = ((one, _argument(function, one[1], name)) for one in calls)
        calls = [one for one, part in given if part is not None and ast.unparse(part) in bound]
    if len(calls) != 1:
        return None
    return _handed(record, calls[0][0], function, calls[0][1], name)


def _is_of_keywords(tree: Tree, node: ast.AST | None, function: Function, name: str) -> bool:
    """The name is a loop's, over what came by keywords: `for key, value in values.items()` with `**values`."""
    given = None if function.args.kwarg is None else function.args.kwarg.arg
    loops = [one for one in tree.ancestors(node or function) if isinstance(one, ast.For)]
    own = next((one for one in loops if name in target_names(one.target)), None)
    call = None if own is None else own.iter
    if own is None or not isinstance(call, ast.Call) or scope_of(tree, own) is not function:
        return False
    last = own.target.elts[-1] if isinstance(own.target, ast.Tuple) else own.target
    is_value = isinstance(last, ast.Name) and last.id == name
    return is_value and given is not None and ast.unparse(call) in (f"{given}.items()", f"{given}.values()")


def _handed_by_keyword(record: Record, outer: Tree, function: Function, call: ast.Call) -> Handed | None:
    """The first argument that a call gives by a keyword of its own."""
    known = parameters_of(function)
    parts = [one.value for one in call.keywords if one.arg is not None and one.arg not in known]
    around = next((one for one in outer.ancestors(call) if isinstance(one, ast.stmt)), None)
    there = None if around is None else site_at(record, around)
    return None if not parts or there is None else Handed(site=there, part=parts[0], beside=len(parts) > 1)


def _is_left_alone(tree: Tree, function: Function, name: str) -> bool:
    """A parameter of its own, which no statement of the function binds anew."""
    given = [one.arg for one in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
    if name not in given or name in ("self", "cls"):
        return False
    for part in ast.walk(function):
        targets: list[ast.expr] = []
        if isinstance(part, ast.Assign):
            targets = part.targets
        elif isinstance(part, ast.AnnAssign | ast.AugAssign | ast.For | ast.NamedExpr):
            targets = [part.target]
        plain = (one for one in targets if not isinstance(one, ast.Attribute | ast.Subscript))
        if any(name in target_names(one) for one in plain) and scope_of(tree, part) is function:
            return False
    return True


def _argument(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives for a parameter; None where it gives none by itself, or the call is not told apart."""
    named = next((one.value for one in call.keywords if one.arg == name), None)
    if named is not None or any(isinstance(one, ast.Starred) for one in call.args):
        return named
    given = [one for one in parameters_of(function) if one not in ("self", "cls")]
    at = given.index(name)
    return call.args[at] if at < len(call.args) else None
