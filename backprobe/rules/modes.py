"""Where grad mode was switched off around a statement: the `with`, or the decorator, of the user's own code."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.finding import Region
from backprobe.rules.scopes import last_name
from backprobe.rules.syntax import Tree, region_in, site_of, statement, tree_of

if TYPE_CHECKING:
    from backprobe.record import Record

_SWITCHES: Final = frozenset({"no_grad", "inference_mode", "set_grad_enabled"})


def switched_off_at(record: Record, site: int) -> tuple[Region, str] | None:
    """The region of the innermost `with` item or decorator that switches tracking off, and its name; None if none does.

    Only for a statement that ran with grad mode off: the tree alone proves nothing.
    """
    row = site_of(record, site)
    node, tree = statement(record, row), tree_of(record, row)
    if node is None or tree is None:
        return None
    for above in (node, *tree.ancestors(node)):
        if isinstance(above, ast.With | ast.AsyncWith):
            for item in above.items:
                name = _switch(item.context_expr) or _own_switch(tree, item.context_expr)
                if name:
                    region = region_in(record, row.source, item.context_expr)
                    return region, name
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in above.decorator_list:
                name = _switch(decorator)
                if name:
                    return region_in(record, row.source, decorator), name
            return None
    return None


def _own_switch(tree: Tree, node: ast.expr) -> str:
    """The name of a context manager of the same file that yields with tracking off; "" for another one."""
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    for function in (one for one in ast.walk(tree.module) if isinstance(one, ast.FunctionDef) and one.name == name):
        marks = {last_name(one) for one in function.decorator_list}
        off = (
            part
            for part in ast.walk(function)
            if isinstance(part, ast.With) and any(_switch(item.context_expr) for item in part.items)
        )
        if "contextmanager" in marks and any(isinstance(one, ast.Yield) for part in off for one in ast.walk(part)):
            return name
    return ""


def _switch(node: ast.expr) -> str:
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    return name if name in _SWITCHES else ""
