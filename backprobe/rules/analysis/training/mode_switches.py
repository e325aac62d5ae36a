"""`train()` and `eval()` in the source: who leaves a module in eval mode, and who says `train()` too seldom."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import Function, parameters_of, scope_of
from backprobe.rules.analysis.source.syntax import (
    blocks,
    method_called,
    number_at,
    site_at,
    site_of,
    statement,
    tree_of,
    trees,
)
from backprobe.rules.analysis.training.enclosing_loops import called_from, enclosing_loops

if TYPE_CHECKING:
    from backprobe.record import Mode, Record


def left_by(record: Record, switch: Mode, trained: int, name: str) -> int | None:
    """The `eval()` of another function, where the program says itself that the module is to train.

    Of a method that does nothing but switch, the only call of it.
    """
    site = site_of(record, switch.site or 0)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if not isinstance(function, Function) or site.function == site_of(record, trained).function:
        return None
    switched = _switches(function, "eval")
    names = {one.rpartition(".")[2] for one in (name, *switched)}
    trains = (one for part in trees(record).values() for one in _switches(part.module, "train"))
    if not any(one.rpartition(".")[2] in names for one in trains):
        return None
    if len(switched) < len(function.body):
        return site.site
    caller = called_from(record, site.site)
    place = None if caller is None else site_at(record, caller)
    return None if place is None else place.site


def _switches(around: ast.AST, method: str) -> list[str]:
    """What statements call `train()` or `eval()` of, as written."""
    found: list[str] = []
    for part in ast.walk(around):
        call = part.value if isinstance(part, ast.Expr | ast.Assign) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == method:
            found += [] if call.args else [ast.unparse(call.func.value)]
    return found


def train_outside(record: Record, switch: Mode, trained: int, name: str) -> int | None:
    """The `train()` right before a loop that trains and then calls the function which switches to eval mode.

    A function that names one module of the program, or that is a context, is there to put back what it changes.
    """
    site = site_of(record, switch.site or 0)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    if tree is None or not isinstance(function, Function) or not _is_given_module(function):
        return None
    names_of_it = {one.rpartition(".")[2] for one in (name, *_switches(function, "eval"))}
    for loop in (enclosing_loops(record, trained) or [])[1:]:  # the innermost goes over batches: evaluated in an epoch
        calls = any(method_called(part) == function.name for part in ast.walk(loop))
        if not calls or _switches(loop, "train"):
            continue
        block = next((body for body in blocks(tree.parents.get(loop)) if loop in body), None)
        for before in reversed(block[: block.index(loop)] if block is not None else ()):
            switched = _switches(before, "train") if isinstance(before, ast.Expr) else []
            if any(one.rpartition(".")[2] in names_of_it for one in switched):
                return number_at(record, before)
    return None


def _is_given_module(function: Function) -> bool:
    """What it switches is a parameter of it, or an attribute of one; and it does not yield."""
    given = set(parameters_of(function))
    roots = {one.partition(".")[0] for one in _switches(function, "eval")}
    return roots <= given and not any(isinstance(part, ast.Yield) for part in ast.walk(function))
