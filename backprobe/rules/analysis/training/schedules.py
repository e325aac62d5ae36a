"""Learning-rate schedules in the source: where one is built for an optimizer, and whether the program steps it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.arithmetic import dotted
from backprobe.rules.analysis.source.syntax import site_at, site_of, statement, tree_of, trees
from backprobe.rules.analysis.training.parameter_lists import last_name

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record

_BY_NAME: Final = "torch.optim.lr_scheduler."


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
        for part in ast.walk(tree.module):
            if isinstance(part, ast.Call):
                stepped = [part.func.value] if isinstance(part.func, ast.Attribute) and part.func.attr == "step" else []
                handed = [*part.args, *(one.value for one in part.keywords)]
                inside = [one for held in handed if isinstance(held, _HOLDERS) for one in ast.iter_child_nodes(held)]
                if any(last_name(one) == last for one in (*stepped, *handed, *inside) if isinstance(one, ast.expr)):
                    return True
    return False


_HOLDERS: Final = (ast.List, ast.Tuple, ast.Dict)
