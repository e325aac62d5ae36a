"""Does a value go into a statement's result by arithmetic alone? Read off the statement's syntax tree.

Arithmetic: operators, indexing, methods of the value, functions imported from torch, `sum`. Not arithmetic: a call of
anything else (a module, a function of the user's), and what ends its history on purpose: `.detach()`, `.item()`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import Tree, statement, tree_of, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site

_ENDS: Final = frozenset({"detach", "detach_", "data", "item", "tolist", "numpy"})
_THROUGH: Final = (
    ast.BinOp, ast.UnaryOp, ast.IfExp, ast.Subscript, ast.Starred, ast.Tuple, ast.List, ast.comprehension,
    ast.GeneratorExp, ast.ListComp, ast.keyword,
)  # fmt: skip


def goes_in(record: Record, site: Site, stands_for: Callable[[ast.expr], bool]) -> bool:
    """Some expression of the statement stands for the value, and only arithmetic lies between it and the result."""
    node, tree = statement(record, site), tree_of(record, site)
    if node is None or tree is None:
        return False
    imported = frozenset(imported_from_torch(record).get(site.source, {}))
    return any(
        isinstance(part, ast.expr) and stands_for(part) and _climbs(tree, part, node, imported)
        for part in ast.walk(node)
    )


def _climbs(tree: Tree, part: ast.expr, top: ast.stmt, imported: frozenset[str]) -> bool:
    inner: ast.AST = part
    for above in tree.ancestors(part):
        if above is top:
            return True
        if isinstance(above, ast.Attribute):
            if above.attr in _ENDS:
                return False
        elif isinstance(above, ast.Call):
            if inner is not above.func and not _is_torch(above.func, imported):
                return False
        elif not isinstance(above, _THROUGH):
            return False
        inner = above
    return False


def _is_torch(called: ast.expr, imported: frozenset[str]) -> bool:
    """`torch.stack`, `F.mse_loss` and the like, however they were imported; and `sum`."""
    while isinstance(called, ast.Attribute):
        called = called.value
    return isinstance(called, ast.Name) and (called.id in imported or called.id == "sum")


def summands(value: ast.expr | None) -> Iterator[ast.expr]:
    """`a`, `b` and `c` of `a + (b + c)`; the whole of what is no sum."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        yield from summands(value.left)
        yield from summands(value.right)
    elif value is not None:
        yield value


def dotted(record: Record, site: Site, called: ast.expr) -> str | None:
    """The full name of a function of torch as it was imported: `torch.autograd.grad` for `grad`; None for others."""
    links: list[str] = []
    while isinstance(called, ast.Attribute):
        links.insert(0, called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return None
    origin = imported_from_torch(record).get(site.source, {}).get(called.id)
    return None if origin is None else ".".join([origin, *links])


@table
def imported_from_torch(record: Record) -> dict[int, dict[str, str]]:
    """The names that each source binds to torch, its modules or its functions, with their full names, by source."""
    return {number: dict(_names(tree)) for number, tree in trees(record).items()}


def _names(tree: Tree) -> Iterator[tuple[str, str]]:
    for node in tree.nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    yield (alias.asname, alias.name) if alias.asname else ("torch", "torch")
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] == "torch":
            yield from ((alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names)
