"""Gradient scalers: which backward calls had a scaled root, and which steps went through a scaler."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import receiver
from backprobe.rules.analysis.source.scopes import Function
from backprobe.rules.analysis.source.syntax import is_same_statement, method_called, number_at, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Raised, Record


def scales(event: OptimizerEvent) -> bool:
    """The scaler of an event is switched on, and its factor changes something."""
    return event.scale_before not in (None, 1.0)


@table
def scaled_calls(record: Record) -> dict[int, OptimizerEvent]:
    """The backward calls whose root a scaler had multiplied, with the last `scale` of theirs."""
    index = lookup(record)
    events = [event for event in record.optimizer_events if event.kind == "scaler_scale" and scales(event)]
    found: dict[int, OptimizerEvent] = {}
    for call in record.backward_calls if events else ():
        products = {index.nodes[node].site for node in reaches(record)[call.call].met if op(index.nodes[node]) == "Mul"}
        for event in events:
            before = event.moment <= call.moment_before
            if before and any(site == event.site or is_same_statement(record, site, event.site) for site in products):
                found[call.call] = event
    return found


@table
def scaler_steps(record: Record) -> dict[int, OptimizerEvent]:
    """The optimizer steps that a scaler made: the number of the step's event -> the scaler's."""
    found: dict[int, OptimizerEvent] = {}
    events = record.optimizer_events
    for at, event in enumerate(events):
        if event.kind == "scaler_step":
            earlier = (one for one in reversed(events[:at]) if one.optimizer == event.optimizer)
            step = next(earlier, None)
            if step is not None and step.kind == "step" and step.site == event.site:
                found[step.n] = event
    return found


def unscaled_between(record: Record, optimizer: int | None, start: int, end: int) -> OptimizerEvent | None:
    """The first `unscale_` of an optimizer between two moments."""
    for event in record.optimizer_events:
        if event.kind == "scaler_unscale" and event.optimizer == optimizer and start <= event.moment <= end:
            return event
    return None


def update_left_out(record: Record, raised: Raised) -> int | None:
    """The one `update()` of a scaler whose second `unscale_` raised, where it stands with `step` in a branch.

    The turn before divided the gradients and neither stepped nor updated: the branch did not run.
    """
    before = [row for row in record.optimizer_events if raised.moment is None or row.moment <= raised.moment]
    last = next((row for row in reversed(before) if row.kind in _DIVIDING), None)
    scaler = receiver(record, raised.site, "unscale_")
    if last is None or last.kind != "scaler_unscale" or scaler is None:
        return None
    found: list[int] = []
    for tree in trees(record).values():
        for part in tree.nodes:
            call = part.value if isinstance(part, ast.Expr) else None
            if not isinstance(call, ast.Call) or method_called(call) != "update":
                continue
            if not isinstance(call.func, ast.Attribute) or ast.unparse(call.func.value) != scaler:
                continue
            branch = _branch(tree.ancestors(part))
            steps = any(method_called(one) == "step" for one in ast.walk(branch)) if branch is not None else False
            number = number_at(record, part) if steps and isinstance(part, ast.Expr) else None
            if number is None:
                return None
            found.append(number)
    return found[0] if len(found) == 1 else None


_DIVIDING: Final = ("scaler_unscale", "scaler_step", "scaler_update")


def _branch(above: Iterable[ast.AST]) -> ast.If | None:
    """The `if` nearest around a statement, in its loop and function."""
    for one in above:
        if isinstance(one, ast.If):
            return one
        if isinstance(one, Function | ast.For | ast.While):
            return None
    return None
