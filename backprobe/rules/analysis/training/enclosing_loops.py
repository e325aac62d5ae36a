"""The loops in which a statement runs, over the calls that lead to it: those of its function, then of its callers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.scopes import Function, Names, names, scope_of, scope_of_class
from backprobe.rules.analysis.source.syntax import site_of, statement_at

if TYPE_CHECKING:
    from backprobe.record import Record

Loop = ast.For | ast.AsyncFor | ast.While
_DEPTH: Final = 8
"""Callers that are followed: a program that calls itself ends there."""


def enclosing_loops(record: Record, site: int) -> list[Loop] | None:
    """Innermost first; None where a caller is not the only one, or the source does not tell."""
    node, file = statement_at(record, site), names(record).get(site_of(record, site).source)
    if node is None or file is None:
        return None
    found: list[Loop] = []
    here: ast.AST | None = node
    for _ in range(_DEPTH):
        function = scope_of(file.tree, here)
        for above in file.tree.ancestors(here):
            if above is function:
                break
            if isinstance(above, Loop):
                found.append(above)
        if not isinstance(function, Function):
            return found
        here = _only_call(file, function)
        if here is None:
            return None
    return None


def called_from(record: Record, site: int) -> ast.stmt | None:
    """The statement that calls the function of a site, if there is one alone."""
    node, file = statement_at(record, site), names(record).get(site_of(record, site).source)
    function = None if node is None or file is None else scope_of(file.tree, node)
    if file is None or not isinstance(function, Function):
        return None
    call = _only_call(file, function)
    above = () if call is None else file.tree.ancestors(call)
    return next((one for one in above if isinstance(one, ast.stmt)), None)


def _only_call(file: Names, function: Function) -> ast.Call | None:
    """The call of a function, or of the class whose `__init__` it is, if there is one alone."""
    around = scope_of_class(file.tree, function)
    name = around.name if function.name == "__init__" and isinstance(around, ast.ClassDef) else function.name
    calls = file.calls.get(name, [])
    return calls[0] if len(calls) == 1 else None
