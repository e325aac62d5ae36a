"""Names that held a leaf of an optimizer and were then given another leaf, which no optimizer holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import Function, target_names
from backprobe.rules.analysis.source.syntax import statement_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Optimizer, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebound:
    """One assignment.

    Attributes:
        old: The tensor that the optimizer holds; binding: what its name was given in its place.
    """

    optimizer: Optimizer
    old: int
    binding: Binding


@table
def rebound_leaves(record: Record) -> tuple[Rebound, ...]:
    """All of them whose new leaf got a gradient, and whose old one got none from then on, though the optimizer stepped.

    `z = z.detach().clamp(-1, 1).requires_grad_()` behind `optimizer.step()`, where the optimizer has the first `z`.
    """
    last_step = {row.optimizer: row.moment for row in record.optimizer_events if row.kind == "step"}
    return tuple(
        one
        for optimizer in record.optimizers
        if optimizer.optimizer in last_step
        for one in _of_one(record, optimizer, last_step[optimizer.optimizer])
    )


def _of_one(record: Record, optimizer: Optimizer, last_step: int) -> Iterator[Rebound]:
    for row in optimizer.tensors:
        names = {(one.name, one.function) for one in lookup(record).bindings_of[row.tensor]}
        life = grad_lives(record).get(row.tensor)
        idle_since = -1 if life is None or not life.arrivals else life.arrivals[-1].moment
        for name, function in sorted(names):
            for later in bindings_named(record)[name]:
                is_same = later.function == function or ("." in name and _class(later.function) == _class(function))
                if is_same and max(optimizer.moment, idle_since) < later.moment < last_step and _is_new(record, later):
                    yield Rebound(optimizer=optimizer, old=row.tensor, binding=later)


def _is_new(record: Record, binding: Binding) -> bool:
    """A leaf that got gradients, that no optimizer was ever given, and that an assignment gave the name.

    A loop or a call gives its name to one tensor after another, and replaces none of them.
    """
    node = statement_at(record, binding.site)
    if isinstance(node, Function | ast.Lambda):
        return False
    if isinstance(node, ast.For | ast.AsyncFor) and binding.name.partition(".")[0] in target_names(node.target):
        return False
    life = grad_lives(record).get(binding.tensor)
    return life is not None and bool(life.arrivals) and binding.tensor not in in_optimizers(record)


def _class(function: str) -> str:
    return function.rpartition(".")[0]
