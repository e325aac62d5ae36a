"""What froze the tensors of a parameter group, and what may still thaw them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.call_stacks import calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import (
    method_called,
    number_at,
    site_of,
    statement,
    statement_at,
    tree_of,
    trees,
)
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backprobe.record import Moment, Record

_ARGUMENTS_OF_SETATTR: Final = 3


def may_thaw(record: Record, tensors: Sequence[int], since: int) -> int | None:
    """Return a statement that can set a flag to True, if it never ran or also ran after the first step of training.

    One that ran only before it has done what it does; except that which froze the tensors, if another run may let it
    set them to True, or pass over it.

    Args:
        since: The moment of that step.
    """
    ran = {row.site: row.moment for row in record.moments}
    for site in _switching_on(record):
        if ran.get(site, since) >= since:
            return site
    frozen = _freezing(record, tensors)
    return None if frozen is None or not _is_decided(record, frozen) else frozen.site


def loaded_frozen(record: Record, tensors: Sequence[int]) -> int | None:
    """Return the statement whose `from_pretrained` froze all of them."""
    sites = {lookup(record).tensors[tensor].site for tensor in tensors}
    site = sites.pop() if len(sites) == 1 else None
    return site if any(method_called(part) == "from_pretrained" for part in _calls_in(record, site)) else None


def filtered_by(record: Record, tensors: Sequence[int]) -> int | None:
    """Return the statement whose computed value froze all of them: `p.requires_grad_(name in chosen)`."""
    frozen = _freezing(record, tensors)
    return frozen.site if frozen is not None and frozen.site in _switching_on(record) else None


def _freezing(record: Record, tensors: Sequence[int]) -> Moment | None:
    """Return the moment at which the first of them did not require grad, if one statement did that to them all."""
    index = lookup(record)
    first = [next((row for row in index.snapshots_of[tensor] if not row.requires_grad), None) for tensor in tensors]
    moments = [None if row is None else index.moments[row.moment] for row in first]
    sites = {None if row is None else row.site for row in moments}
    return moments[0] if len(sites) == 1 else None


def _is_decided(record: Record, frozen: Moment) -> bool:
    """Return whether a value that the program computes, or a condition, decided that the tensors are frozen."""
    if frozen.site in _switching_on(record):
        return True
    for call in _calls_in(record, frozen.site):
        if any(word.arg == "freeze" and not isinstance(word.value, ast.Constant) for word in call.keywords):
            return True
    around = [] if frozen.stack is None else list(calls(record, frozen.stack))
    if frozen.site is not None:
        around.append(site_of(record, frozen.site))
    for site in around:
        node, tree = statement(record, site), tree_of(record, site)
        if node is not None and tree is not None and any(map(_is_condition, tree.ancestors(node))):
            return True
    return False


def _is_condition(node: ast.AST) -> bool:
    """Return whether a node is an `if`, and not that of `__name__ == "__main__"`."""
    return isinstance(node, ast.If) and not any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


@table
def _switching_on(record: Record) -> tuple[int, ...]:
    """Return the statements that set a flag to anything but False."""
    nodes = (node for tree in trees(record).values() for node in tree.nodes)
    sites = (number_at(record, node) for node in nodes if isinstance(node, ast.Assign | ast.Expr) and _sets_flag(node))
    return tuple(site for site in sites if site is not None)


def _sets_flag(node: ast.Assign | ast.Expr) -> bool:
    if isinstance(node, ast.Assign) and any(_is_flag(target) for target in node.targets):
        return not _is_false(node.value)
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            given = [*part.args, *(word.value for word in part.keywords)]
            if method_called(part) == "requires_grad_" and not (given and _is_false(given[0])):
                return True
            if _sets_flag_by_name(part) and not _is_false(given[-1]):
                return True
    return False


def _sets_flag_by_name(call: ast.Call) -> bool:
    """Return whether a call is `setattr(p, "requires_grad", value)`."""
    if method_called(call) != "setattr" or len(call.args) != _ARGUMENTS_OF_SETATTR:
        return False
    name = call.args[1]
    return isinstance(name, ast.Constant) and name.value == "requires_grad"


def _calls_in(record: Record, site: int | None) -> list[ast.Call]:
    node = statement_at(record, site)
    return [part for part in ast.walk(node) if isinstance(part, ast.Call)] if node is not None else []


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def _is_flag(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr == "requires_grad"
