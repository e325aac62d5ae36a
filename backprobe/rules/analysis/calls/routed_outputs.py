"""Where what a chosen module gives is put back into the rows that chose it, without the weight of the choice.

rows = torch.where(choice == i)[0]
out = out.index_copy(0, rows, experts[i](x[rows]))      # here a gate would multiply
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.assignments import spelled_out
from backprobe.rules.analysis.source.scopes import Function, scope_of, target_names
from backprobe.rules.analysis.source.syntax import Tree, site_at, site_of, statement, statement_at, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def routed_at(record: Record, number: int) -> Site | None:
    """The one statement of the function of a cut that writes what a module makes of chosen rows to the same rows."""
    site = site_of(record, number)
    node, tree = statement(record, site), tree_of(record, site)
    scope = None if node is None or tree is None else scope_of(tree, node)
    if node is None or tree is None or scope is None:
        return None
    own = [one for one in ast.walk(scope) if isinstance(one, ast.stmt) and scope_of(tree, one) is scope]
    own = [one for one in own if not isinstance(one, Function | ast.ClassDef)]
    chosen = _made_of(own, node)
    found = [one for one in own if one is not node and isinstance(one, ast.Assign | ast.AugAssign | ast.Expr)]
    found = [
        one for one in found if any(_is_of_module(record, tree, value, rows) for value, rows in _written(one, chosen))
    ]
    return site_at(record, found[0]) if len(found) == 1 else None


def _made_of(own: list[ast.stmt], start: ast.stmt) -> set[str]:
    """The names that a statement binds, and those of the function that are made of them."""
    found: set[str] = set()
    for one in sorted(own, key=lambda one: one.lineno):
        if isinstance(one, ast.Assign) and (one is start or found & set(_read(one.value))):
            found |= {
                name
                for target in one.targets
                if isinstance(target, ast.Name | ast.Tuple)
                for name in target_names(target)
            }
    return found


def _read(value: ast.expr) -> list[str]:
    return [part.id for part in ast.walk(value) if isinstance(part, ast.Name)]


def _written(node: ast.stmt, chosen: set[str]) -> Iterator[tuple[ast.expr, set[str]]]:
    """What a statement writes to rows, with the names of the rows.

    `out[rows] = f(x[rows])`, `out[rows] += f(x[rows])`, `out.index_add(0, rows, f(x[rows]))`.
    """
    if isinstance(node, ast.Assign | ast.AugAssign):
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(target, ast.Subscript):
            yield node.value, chosen & set(_read(target.slice))
            return
    value = node.value if isinstance(node, ast.Assign | ast.Expr) else None
    if isinstance(value, ast.Call):
        given = [*value.args, *(one.value for one in value.keywords)]
        rows = {name for one in given if isinstance(one, ast.Name) for name in _read(one)} & chosen
        yield from ((one, rows) for one in given)


def _is_of_module(record: Record, tree: Tree, value: ast.expr, rows: set[str]) -> bool:
    """The call of a module that is given rows by these names gave the value as it stands: times a weight is no fault.

    The value and the rows may have names of their own.
    """
    call = spelled_out(record, tree, value)
    around = next((one for one in tree.ancestors(call) if isinstance(one, ast.stmt)), None)
    if not isinstance(call, ast.Call) or around not in _calling_modules(record):
        return False
    given = (spelled_out(record, tree, one) for one in call.args)
    parts = (part for one in given for part in ast.walk(one) if isinstance(part, ast.Subscript))
    return any(rows & set(_read(part.slice)) for part in parts)


@table
def _calling_modules(record: Record) -> frozenset[ast.stmt | None]:
    """The statements in which modules are called."""
    return frozenset(statement_at(record, call.site) for call in record.module_calls)
