"""Of two values that a function made, the `return` that gives its caller the one and keeps the other back.

def losses(x):
    fit, total = f(x), f(x) + penalty()
    return fit            # whatever the caller does, it cannot walk `total`
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function, scope_of
from backprobe.rules.analysis.source.syntax import Tree, number_at, site_of, statement, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record


def choosing_return(record: Record, made: int, given: int, kept_back: int) -> int | None:
    """The site of the only `return` that hands one tensor on, in the function of a statement.

    None where the caller gets the other one as well, or where neither is returned by a name.

    Args:
        made: A statement of the function. given: the tensor that the caller got. kept_back: the one that it did not.
    """
    site = site_of(record, made)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if tree is None or not isinstance(function, Function):
        return None
    names, others = (_names(record, one, site.function) for one in (given, kept_back))
    found = [one for one in _returns(tree, function) if _reads(tree, one, names)]
    if len(found) != 1 or _reads(tree, found[0], others):
        return None
    return number_at(record, found[0])


def _names(record: Record, tensor: int, function: str) -> frozenset[str]:
    return frozenset(row.name for row in lookup(record).bindings_of[tensor] if row.function == function)


def _returns(tree: Tree, function: ast.AST) -> Iterator[ast.Return]:
    """Those of the function itself, not of one inside it."""
    for part in ast.walk(function):
        if isinstance(part, ast.Return) and scope_of(tree, part) is function:
            yield part


def _reads(tree: Tree, node: ast.Return, names: Container[str]) -> bool:
    """It returns one of these values as it is: not its number, nor what a method made of it."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) in names:
            around = tree.parents.get(part)
            number = isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "float"
            if not isinstance(around, ast.Attribute) and not number:
                return True
    return False
