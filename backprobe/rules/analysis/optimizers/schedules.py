"""Learning-rate schedules: where one is built for an optimizer, and whether the program steps it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.parameter_lists import last_name
from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.syntax import (
    parts_of,
    site_at,
    site_of,
    statement,
    statement_at,
    tree_of,
    trees,
)
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record

_BY_NAME: Final = "torch.optim.lr_scheduler."


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A schedule that was built while the program ran.

    Attributes:
        site: The statement. cls: its class, the program's own perhaps. optimizer: for which one.
        moment: The first one after it. given: its plain attributes: `T_max`, `total_steps`, `mode`, `milestones`.
    """

    site: int
    cls: str
    optimizer: int
    moment: int
    given: Mapping[str, object]


@table
def built_schedules(record: Record) -> tuple[Built, ...]:
    """In order of time; a chain of schedules, which is given no optimizer, is not among them."""
    found = [
        Built(site=row.site, cls=str(given["class"]), optimizer=number, moment=row.moment, given=given)
        for row in record.watched_calls
        if row.function.startswith(_BY_NAME) and row.site is not None and row.moment is not None and not row.raised
        if "class" in (given := dict(row.arguments)) and isinstance(number := given.get("optimizer"), int)
    ]
    return tuple(found)


def events_of(record: Record, optimizer: int, kind: str) -> list[OptimizerEvent]:
    """What happened to one optimizer, of one kind, in order."""
    return [row for row in record.optimizer_events if row.optimizer == optimizer and row.kind == kind]


def may_share_groups(record: Record, scheduled: int, other: int) -> bool:
    """Return whether an optimizer has, at each of its steps, the rates that a schedule of another one left."""
    moved = events_of(record, scheduled, "scheduler_step")
    for step in events_of(record, other, "step"):
        at = bisect_left(moved, step.moment, key=lambda event: event.moment)
        if at and moved[at - 1].learning_rates != step.learning_rates:
            return False
    return True


def argument_of(record: Record, built: Built, name: str, place: int) -> ast.expr | None:
    """How an argument of a schedule's constructor is written, by its name or its place behind the optimizer."""
    for part in parts_of(statement_at(record, built.site)):
        if isinstance(part, ast.Call) and last_name(part.func) == built.cls:
            named = [one.value for one in part.keywords if one.arg == name]
            return next(iter(named or part.args[place : place + 1]), None)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """A statement that builds a schedule for an optimizer.

    Attributes:
        site: The statement. name: what it is bound to. cls: the scheduler's class. call: the expression that builds it.
    """

    site: int
    name: str
    cls: str
    call: ast.Call


def schedules(record: Record, optimizer: Optimizer) -> list[Schedule]:
    """The schedules that are built for an optimizer in the block of statements that builds it, after it.

    A run that succeeded has passed those statements, since it has passed the first of the block.
    """
    if optimizer.site is None or optimizer.binding is None:
        return []
    site = site_of(record, optimizer.site)
    node, tree = statement(record, site), tree_of(record, site)
    around = None if tree is None or node is None else tree.parents.get(node)
    found: list[Schedule] = []
    for body in ("body", "orelse", "finalbody"):
        block: list[ast.stmt] = getattr(around, body, None) or []
        for later in block[block.index(node) + 1 :] if node in block else ():
            if not isinstance(later, ast.Assign) or not isinstance(later.value, ast.Call) or not later.value.args:
                continue
            full = dotted(record, site, later.value.func) or ""
            given, place = ast.unparse(later.value.args[0]), site_at(record, later)
            if full.startswith(_BY_NAME) and given == optimizer.binding and place is not None:
                found.append(
                    Schedule(
                        site=place.site,
                        name=ast.unparse(later.targets[0]),
                        cls=full.rpartition(".")[2],
                        call=later.value,
                    )
                )
    return found


def is_stepped_in_source(record: Record, name: str) -> bool:
    """Somewhere the program calls `step` on this name, or hands it on: in a branch that did not run, perhaps."""
    last = name.rpartition(".")[2]
    for tree in trees(record).values():
        for part in tree.nodes:
            if isinstance(part, ast.Call):
                stepped = [part.func.value] if isinstance(part.func, ast.Attribute) and part.func.attr == "step" else []
                handed = [*part.args, *(one.value for one in part.keywords)]
                inside = [one for held in handed if isinstance(held, _HOLDERS) for one in ast.iter_child_nodes(held)]
                if any(last_name(one) == last for one in (*stepped, *handed, *inside) if isinstance(one, ast.expr)):
                    return True
    return False


_HOLDERS: Final = (ast.List, ast.Tuple, ast.Dict)
