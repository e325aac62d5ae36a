"""Which tensors the program trains: held by an optimizer, or a leaf that it writes by hand from its gradient."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from itertools import takewhile
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import Function, scope_of
from backprobe.rules.analysis.source.syntax import (
    method_called,
    parts_of,
    site_of,
    statement,
    statement_at,
    tree_of,
)
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Moment, Record


@table
def parameters(record: Record) -> dict[int, str]:
    """The parameters of the program: tensor -> `state_dict` key; the name of an `nn.Parameter` outside any module."""
    index = lookup(record)
    named: dict[int, str] = {}
    for tensor in record.tensors:
        bound = index.bindings_of[tensor.tensor]
        if tensor.cls == "Parameter" and bound:
            named[tensor.tensor] = bound[0].name
    for module in record.modules:
        for row in module.parameters:
            if row.tensor is not None:
                named[row.tensor] = index.tensors[row.tensor].fqn or row.name
    return named


@table
def in_optimizers(record: Record) -> dict[int, list[int]]:
    """The optimizers that hold a tensor, by tensor."""
    held: dict[int, list[int]] = {}
    for optimizer in record.optimizers:
        for row in optimizer.tensors:
            held.setdefault(row.tensor, []).append(optimizer.optimizer)
    return held


@table
def trained(record: Record) -> frozenset[int]:
    """Tensors in an optimizer, parameters of modules, and leaves that require grad and were written in place."""
    index = lookup(record)
    written = {
        event.tensor
        for event in record.inplace_events
        if (history := index.snapshots_of[event.tensor]) and history[-1].is_leaf and history[-1].requires_grad
    }
    return frozenset(written | set(in_optimizers(record)) | set(parameters(record)))


def required_grad(record: Record, tensor: int) -> bool:
    """It requires grad at the end, or did at the last backward call or step: many programs freeze what they trained."""
    history = lookup(record).snapshots_of[tensor]
    if not history or history[-1].requires_grad:
        return bool(history)
    state = state_at(record, tensor, _last_training(record))
    return state is not None and state.requires_grad


@table
def _last_training(record: Record) -> int:
    """The last moment at which a backward call began or an optimizer stepped."""
    steps = (row.moment for row in record.optimizer_events if row.kind == "step")
    return max((*steps, *(call.moment_before for call in record.backward_calls)), default=-1)


@table
def with_gradient(record: Record) -> frozenset[int]:
    """The leaves that got a gradient: a backward call brought one, or the program assigned its own to `.grad`."""
    rows = (row for row in record.leaf_grads if row.call is not None or row.kind == "assigned")
    return frozenset(row.tensor for row in rows if row.kind != "untouched")


@table
def never_reached(record: Record) -> tuple[int, ...]:
    """The trained tensors that never got a gradient, in order."""
    return tuple(sorted(trained(record) - with_gradient(record)))


def shared_key(keys: Iterable[str]) -> str:
    """The leading parts that `state_dict` keys have in common: `lm.blocks` for `lm.blocks.0.w` and `lm.blocks.1.w`."""
    parts = [key.split(".") for key in keys]
    same = takewhile(lambda column: len(set(column)) == 1, zip(*parts, strict=False))
    return ".".join(column[0] for column in same)


def thawed_at(record: Record, tensor: int, since: int) -> int | None:
    """The site of the first statement after a moment that made a parameter trainable which was frozen then.

    Where one statement of a function freezes and thaws, `p.requires_grad = flag`, it is the call that thawed; and so
    where the function decides nothing. None where an optimizer is built after it: that one could have been given the
    parameter.
    """
    index = lookup(record)
    before: bool | None = None
    frozen_by: set[int | None] = set()
    for row in index.snapshots_of[tensor]:
        moment = index.moments.get(row.moment)
        if before is False and row.requires_grad and row.moment > since and moment is not None:
            if any(one.moment > row.moment for one in record.optimizers):
                return None
            return _caller(record, moment) if moment.site in frozen_by else _decided_at(record, moment)
        if before and not row.requires_grad and moment is not None:
            frozen_by.add(moment.site)
        before = row.requires_grad
    return None


def _decided_at(record: Record, moment: Moment) -> int | None:
    """The statement itself; of a function that runs it in any case, the one that called the function."""
    if moment.site is None:
        return None
    site = site_of(record, moment.site)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    caller = None if not isinstance(function, Function) else _caller(record, moment)
    if tree is None or node is None or not isinstance(function, Function) or caller is None:
        return moment.site
    around = takewhile(lambda one: one is not function, tree.ancestors(node))
    calls = {method_called(part) for part in parts_of(statement_at(record, caller))}
    is_decided = any(isinstance(one, ast.If | ast.While | ast.Try) for one in around)
    return moment.site if is_decided or function.name not in calls or _does_more(function, node) else caller


def _does_more(function: Function, node: ast.stmt) -> bool:
    """Besides loops and names, the function runs something that is not this statement."""
    own = {id(part) for part in ast.walk(node)}
    loops = (part for part in ast.walk(function) if isinstance(part, ast.For | ast.With))
    heads = {id(part) for loop in loops for part in ast.walk(loop.iter if isinstance(loop, ast.For) else ast.Pass())}
    parts = (part for part in ast.walk(function) if isinstance(part, ast.Expr | ast.Assign | ast.If))
    return any(id(part) not in own | heads and not _is_name_or_text(part) for part in parts)


def _is_name_or_text(part: ast.AST) -> bool:
    value = part.value if isinstance(part, ast.Expr | ast.Assign) else None
    plain = isinstance(value, ast.Constant) or method_called(value or ast.Pass()) in ("print", "list", "reversed")
    return plain or (isinstance(part, ast.Assign) and isinstance(value, ast.Name | ast.Attribute | ast.Subscript))


def _caller(record: Record, moment: Moment) -> int | None:
    """The site of the next statement that ends in another function: the one that called this moment's."""
    sites, own = lookup(record).sites, moment.site
    later = (row.site for row in record.moments if row.moment > moment.moment and row.site is not None)
    return next((site for site in later if own is None or sites[site].function != sites[own].function), own)
