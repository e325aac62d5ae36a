"""Values of which only their spread is asked: `F.normalize(z, dim=1).std(0).mean()`, a check for collapse.

Nothing is compared with anything there: it tells how far apart the values are, whatever made them.
"""

from __future__ import annotations

import ast
from typing import Final

from backprobe.rules.analysis.source.scopes import Names, binder_of, last_name, parameters_of

_SPREADS: Final = frozenset({
    "std", "var", "std_mean", "var_mean", "svd", "svdvals", "matrix_rank", "cov", "corrcoef", "pca_lowrank", "eigvalsh",
    "histc", "pdist",
})  # fmt: skip

_DEEPEST: Final = 6
"""Names and functions that one value is followed through."""


def is_only_measured_for_spread(names: Names, part: ast.expr, depth: int = 0) -> bool:
    """Every way of a value, through shapes, scalings, names and functions of the file, comes to a measure of spread."""
    inner: ast.AST = part
    for above in names.tree.ancestors(part):
        if isinstance(above, ast.stmt):
            return depth < _DEEPEST and _bound_is_measured(names, above, inner, depth)
        if isinstance(above, ast.Call):
            if last_name(above.func) in _SPREADS:
                return True
            if inner is not above.func and not (inner in above.args[:1] and _is_plain(above)):
                return False
            given = _parameter(names, above, inner)
            if given is not None:
                return depth < _DEEPEST and _reads_are_measured(names, given, depth)
        elif not isinstance(above, ast.Attribute | ast.Subscript | ast.UnaryOp):
            return False
        inner = above
    return False


def _is_plain(call: ast.Call) -> bool:
    """Beside its first argument it is given numbers and the like alone."""
    further = (*call.args[1:], *(one.value for one in call.keywords))
    return all(isinstance(part, ast.Constant | ast.UnaryOp | ast.Tuple) for part in further)


def _parameter(names: Names, call: ast.Call, inner: ast.AST) -> list[ast.Name] | None:
    """Where a function of the file reads its first parameter; None: it is a library's."""
    found = names.functions.get(last_name(call.func), ()) if inner is not call.func else ()
    for function in found:
        first = next((one for one in parameters_of(function) if one not in ("self", "cls")), "")
        return names.loads.get((function, first), [])
    return None


def _bound_is_measured(names: Names, node: ast.stmt, inner: ast.AST, depth: int) -> bool:
    if not isinstance(node, ast.Assign) or inner is not node.value or not isinstance(node.targets[0], ast.Name):
        return False
    name = node.targets[0].id
    reads = names.loads.get((binder_of(names, node, name), name), [])
    inside = {id(part) for part in ast.walk(node)}
    return _reads_are_measured(names, [one for one in reads if id(one) not in inside], depth)


def _reads_are_measured(names: Names, reads: list[ast.Name], depth: int) -> bool:
    return bool(reads) and all(is_only_measured_for_spread(names, one, depth + 1) for one in reads)
