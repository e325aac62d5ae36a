"""Who wrote into a gradient that was there: torch's own clipping and unscaling, or the program."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.clips import KINDS
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at, value_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import LeafGrad, Record

_UNRECORDED: Final = "clip_grads_with_norm_"
"""The second half of `clip_grad_norm_`: no event tells of it."""
_KEEPING: Final = frozenset({"clamp_", "clip_", "div_"})
"""What was in it stays in it, in part."""


def is_of_torch(record: Record, row: LeafGrad) -> bool:
    """Clipping or a gradient scaler wrote it, in a function of torch's."""
    if row.kind != "modified-in-place":
        return False
    if (row.moment, row.site) in _writes(record) or row.site in scaler_steps(record):
        return True
    return any(method_called(part) == _UNRECORDED for part in parts_of(statement_at(record, row.site)))


@table
def _writes(record: Record) -> frozenset[tuple[int, int | None]]:
    """Moments and sites; at the end of a function it is seen when that returns. A limit of 0 is a clear."""
    events = [row for row in record.optimizer_events if row.kind in (*KINDS, "scaler_unscale") and row.limit != 0]
    return frozenset((row.moment + later, row.site) for row in events for later in (0, 1))


@table
def scaler_steps(record: Record) -> frozenset[int | None]:
    """Statements with `scaler.step(optimizer)`, which takes the factor out of what was not unscaled before."""
    return frozenset(row.site for row in record.optimizer_events if row.kind == "scaler_step") - {None}


def is_mean_or_limit(record: Record, row: LeafGrad) -> bool:
    """The program divides the gradient, or lays a limit on its elements: `p.grad /= n`, `p.grad.clamp_(-1, 1)`."""
    node = statement_at(record, row.site)
    if row.kind != "modified-in-place":
        return False
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, ast.Div) or (isinstance(node.op, ast.Mult) and _is_part(node.value))
    call = value_of(node) if isinstance(node, ast.Expr) else None
    call = call.elt if isinstance(call, ast.ListComp) else call
    if not isinstance(call, ast.Call):
        return False
    return method_called(call) in _KEEPING or (method_called(call) == "mul_" and _is_part(*call.args))


def _is_part(*given: ast.expr) -> bool:
    """It is `1 / n`."""
    return any(isinstance(one, ast.BinOp) and isinstance(one.op, ast.Div) and _is_one(one.left) for one in given)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1
