"""What the program does with a `.grad` that it reads: uses it, or asks whether it is there; and what might keep one."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, cast

from backprobe.rules.analysis.source.syntax import (
    Tree,
    method_called,
    number_at,
    region_in,
    site_of,
    statement,
    tree_of,
    trees,
)
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import GradRead, Record, Site


def is_only_tested(record: Record, read: GradRead) -> bool:
    """The read is compared with None or taken for its truth; or is bound to a name that is.

    Where the source is not there to be looked at, the record's own word counts.
    """
    site = site_of(record, read.site)
    node, tree = statement(record, site), tree_of(record, site)
    load = _load_at(record, site, node)
    if node is None or tree is None or load is None:
        return read.use == "tested"
    if _is_test(tree, load) or _is_guarded(tree, load):
        return True
    if isinstance(node, ast.Assign) and node.value is load:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
        return _is_tested_later(tree, node, names)
    return False


def is_guarding(record: Record, read: GradRead) -> bool:
    """Return whether a read that is tested decides about a use of the same gradient: `if p.grad is None: continue`."""
    site = site_of(record, read.site)
    node, tree = statement(record, site), tree_of(record, site)
    load = _load_at(record, site, node)
    if node is None or tree is None or load is None:
        return False
    names: set[str] = set()
    if isinstance(node, ast.Assign) and node.value is load:
        names = {target.id for target in node.targets if isinstance(target, ast.Name)}
    wanted = ast.unparse(load)
    for part in ast.walk(_scope(tree, node)):
        if not isinstance(part, ast.Name | ast.Attribute) or not isinstance(part.ctx, ast.Load):
            continue
        is_same = part.id in names if isinstance(part, ast.Name) else not names and ast.unparse(part) == wanted
        if is_same and not (_is_test(tree, part) or _is_idle(tree, part)):
            return True
    return False


@table
def resting_retention(record: Record) -> int | None:
    """Return a statement that names `retain_grad` and did not run, or ran while no tensor retained a gradient."""
    ran = {row.site for row in record.moments}
    retains = any(row.retains_grad for row in record.snapshots)
    for tree in trees(record).values():
        for part in tree.nodes:
            if isinstance(part, ast.Attribute) and part.attr == "retain_grad":
                site = number_at(record, next(above for above in tree.ancestors(part) if isinstance(above, ast.stmt)))
                if site is not None and not (retains and site in ran):
                    return site
    return None


def _is_idle(tree: Tree, part: ast.expr) -> bool:
    """It is only cleared, or goes into a text, or is printed."""
    above = tree.parents.get(part)
    if isinstance(above, ast.Attribute) and above.attr in ("zero_", "detach_"):
        return True
    around = (above for above in tree.ancestors(part) if isinstance(above, ast.expr))
    return any(isinstance(above, ast.JoinedStr) or method_called(above) == "print" for above in around)


def _scope(tree: Tree, node: ast.stmt) -> ast.AST:
    functions = (above for above in tree.ancestors(node) if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef))
    return next(functions, tree.module)


def _load_at(record: Record, site: Site, node: ast.stmt | None) -> ast.Attribute | None:
    """The `.grad` at exactly this place."""
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Attribute) and part.attr == "grad":
            region = region_in(record, site.source, part)
            if (region.start_line, region.start_col, region.end_col) == (site.line, site.col, site.end_col):
                return part
    return None


def _is_test(tree: Tree, part: ast.expr) -> bool:
    """`part is None`, `not part`, `if part`, `part or other`, `(name := part) is None`, and these joined."""
    inner: ast.AST = part
    for above in tree.ancestors(part):
        if isinstance(above, ast.Compare):
            return inner is above.left and all(_is_none(one) for one in above.comparators)
        if isinstance(above, ast.If | ast.While | ast.IfExp | ast.Assert):
            return inner is above.test
        if isinstance(above, ast.BoolOp) and inner is not above.values[-1]:
            return True
        if not isinstance(above, ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
            return False
        inner = above
    return False


def _is_guarded(tree: Tree, part: ast.Attribute) -> bool:
    """The same expression is tested by a condition around the read, or by an `if` before it in a block around it."""
    wanted = ast.unparse(part)
    inner: ast.AST = part
    for above in tree.ancestors(part):
        if isinstance(above, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return False
        guards = [above.test] if isinstance(above, ast.If | ast.While | ast.IfExp) else []
        guards += [one.test for one in _before(above, inner) if isinstance(one, ast.If | ast.Assert)]
        for test in guards:
            loads = (one for one in ast.walk(test) if isinstance(one, ast.Attribute) and one is not part)
            if any(ast.unparse(one) == wanted and _is_test(tree, one) for one in loads):
                return True
        inner = above
    return False


def _before(block: ast.AST, inner: ast.AST) -> list[ast.stmt]:
    """The statements of a block before one of its own, not those of its other branches."""
    for field in ("body", "orelse", "finalbody"):
        statements = getattr(block, field, None)
        if isinstance(statements, list) and inner in cast("list[ast.stmt]", statements):
            listed = cast("list[ast.stmt]", statements)
            return listed[: listed.index(cast("ast.stmt", inner))]
    return []


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_tested_later(tree: Tree, node: ast.stmt, names: set[str]) -> bool:
    """In the same function, one of the names is tested."""
    loads = (part for part in ast.walk(_scope(tree, node)) if isinstance(part, ast.Name) and part.id in names)
    return any(_is_test(tree, load) for load in loads if isinstance(load.ctx, ast.Load))
