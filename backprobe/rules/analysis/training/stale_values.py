"""Values that are computed once from what an optimizer goes on to change, and that losses go on to read.

alpha = log_alpha.exp().detach()  # once
for x in batches:
    (alpha * entropy(x) - value(x)).mean().backward()
    alpha_optimizer.step()  # moves log_alpha
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.syntax import site_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

LEAST: Final = 3
"""Turns in which it was read after a step: one or two may be a phase."""
_MAPS: Final = frozenset({"exp", "softplus", "sigmoid", "softmax", "tanh", "square"})
"""Functions by which a free parameter stands for what is used: positive, in (0, 1), or parts of one."""
_CUTS: Final = frozenset({"detach", "data", "item", "tolist", "numpy", "float"})


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleValue:
    """One of them: what it is called, the statement that made it, what it was made of, and who reads it then.

    Attributes:
        read: The first statement that reads it in a loss. step: the first that changes the leaf.
        updates: How often the leaf was changed before the last read.
    """

    name: str
    site: int
    moment: int
    leaf: int
    read: int
    step: int | None
    updates: int


@table
def stale_values(record: Record) -> tuple[StaleValue, ...]:
    """All of them, one for each statement."""
    found: dict[int, StaleValue] = {}
    for row in record.operations:
        if row.statement not in found and _maps_leaf(record, row):
            one = _stale(record, row)
            if one is not None:
                found[row.statement] = one
    return tuple(found.values())


def _maps_leaf(record: Record, row: Operation) -> bool:
    return (
        row.function.rpartition(".")[2] in _MAPS
        and len(row.operands) == 1
        and not row.inner
        and row.operands[0] in in_optimizers(record)
        and row.operands[0] in updates_of(record)
    )


def _stale(record: Record, row: Operation) -> StaleValue | None:
    leaf, node = row.operands[0], statement_at(record, row.statement)
    rows = _operations_at(record)[row.statement]
    alone = len([one for one in rows if one.function == row.function]) == 1
    if not alone or not isinstance(node, ast.Assign) or len(node.targets) != 1 or row.moment is None:
        return None
    target = node.targets[0]
    if not isinstance(target, ast.Name | ast.Attribute) or not _is_cut(node, rows):
        return None
    if any(operand != leaf for one in rows for operand in one.operands) or _is_mapped_again(record, row):
        return None
    name = ast.unparse(target)
    own = site_of(record, row.statement)
    if any(name in one.targets for one in record.sites if one.site != own.site and _sees(one.function, own.function)):
        return None
    reads = list(_reads(record, name, row))
    updates = [one for one in updates_of(record)[leaf] if one.moment > row.moment]
    late = [moment for moment, _site in reads if updates and moment > updates[0].moment]
    if len(late) < LEAST:
        return None
    return StaleValue(
        name=name, site=row.statement, moment=row.moment, leaf=leaf, read=reads[0][1], step=updates[0].site,
        updates=len([one for one in updates if one.moment < late[-1]]),
    )  # fmt: skip


def _is_cut(node: ast.Assign, rows: list[Operation]) -> bool:
    """The value has no history: the statement cuts it off, or ran with tracking off."""
    ends = {one.attr for one in ast.walk(node.value) if isinstance(one, ast.Attribute)}
    ends |= {
        one.func.id for one in ast.walk(node.value) if isinstance(one, ast.Call) and isinstance(one.func, ast.Name)
    }
    is_copy = bool({"clone", "deepcopy"} & ends)
    return not is_copy and (bool(_CUTS & ends) or not any(one.requires_grad for one in rows))


def _is_mapped_again(record: Record, row: Operation) -> bool:
    """The program computes the same of the leaf later on: what it keeps from here is an older value, and meant so."""
    return any(
        one.operation != row.operation and row.operands[0] in one.operands and one.function == row.function
        for one in record.operations
    )


def _reads(record: Record, name: str, row: Operation) -> Iterator[tuple[int, int]]:
    """When statements read the name into something with a history: the moment and the statement."""
    own = site_of(record, row.statement)
    readers = {one.site for one in record.sites if name in one.reads and _sees(one.function, own.function, name)}
    tracked = {site for site in readers if any(one.requires_grad for one in _operations_at(record).get(site, ()))}
    for one in record.moments:
        if one.site in tracked and one.moment > (row.moment or 0) and one.kind == "after-statement":
            yield one.moment, one.site


def _sees(function: str, owner: str, name: str = "") -> bool:
    """A function reads what another one bound: itself, of the module, around it, or an attribute in one class."""
    if owner in {"<module>", function} or function.startswith(f"{owner}.<locals>."):
        return True
    return "." in name and function.rpartition(".")[0] == owner.rpartition(".")[0] != ""


@table
def _operations_at(record: Record) -> dict[int, list[Operation]]:
    """The operations of each statement."""
    found: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in record.operations:
        found[row.statement].append(row)
    return dict(found)
