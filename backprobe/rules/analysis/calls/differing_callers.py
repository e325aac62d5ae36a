"""The statement that called a helper function with another argument than the helper's other callers.

def slope(y, x, keep):
    return torch.autograd.grad(y, x, create_graph=keep)[0]
first = slope(y, x, True)
second = slope(first, x, False)  # this one differs
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.call_stacks import calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function, last_name, scope_of
from backprobe.rules.analysis.source.syntax import parts_of, statement, tree_of

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, Site


def differing_caller(record: Record, call: BackwardCall) -> Site | None:
    """Return the innermost caller of a gradient without a graph under which its statement makes no graph.

    None: the statement made a graph under each of the callers too, or never.
    """
    around = [_callers(record, other) for other in record.backward_calls if other.site == call.site]
    graphs = [other.create_graph for other in record.backward_calls if other.site == call.site]
    with_graph = {site.site for sites, graph in zip(around, graphs, strict=True) if graph for site in sites}
    if not any(graphs):
        return None
    return next((site for site in _callers(record, call) if site.site not in with_graph), None)


def _callers(record: Record, call: BackwardCall) -> Sequence[Site]:
    moment = lookup(record).moments.get(call.moment_before)
    return () if moment is None or moment.stack is None else calls(record, moment.stack)


def call_of_function(record: Record, caller: Site, function: str) -> ast.Call | None:
    """Return the only call of a function in a statement, by its name; None: there is none, or there are several."""
    name = function.rpartition(".")[2]
    found = [
        part
        for part in parts_of(statement(record, caller))
        if isinstance(part, ast.Call) and last_name(part.func) == name
    ]
    return found[0] if len(found) == 1 else None


def argument_behind(record: Record, site: Site, value: ast.expr, call: ast.Call) -> ast.expr | None:
    """Return what a call gives for a value that is a parameter of the called function; None: it gives nothing."""
    tree, node = tree_of(record, site), statement(record, site)
    scope = None if tree is None or node is None else scope_of(tree, node)
    if not isinstance(scope, Function) or not isinstance(value, ast.Name):
        return None
    given = next((keyword.value for keyword in call.keywords if keyword.arg == value.id), None)
    names = [parameter.arg for parameter in (*scope.args.posonlyargs, *scope.args.args)]
    if given is not None or value.id not in names or not isinstance(call.func, ast.Name):
        return given
    at = names.index(value.id)
    is_plain = not any(isinstance(argument, ast.Starred) for argument in call.args)
    return call.args[at] if is_plain and at < len(call.args) else None
