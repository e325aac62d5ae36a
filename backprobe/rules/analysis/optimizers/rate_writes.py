"""Statements by which a program sets the learning rate of a parameter group itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from backprobe.rules.analysis.source.syntax import method_called, number_at, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record


class RateWrite(NamedTuple):
    """`group["lr"] = value`, `group["lr"] *= value` or `group.update(lr=value)`.

    Attributes:
        constant: The rate, where it is written as a number. None: it is computed.
        has_run: The statement ran.
    """

    site: int
    constant: float | None
    has_run: bool


@table
def rate_writes(record: Record) -> tuple[RateWrite, ...]:
    """Return them, in the order of the nodes of each file."""
    ran = {row.site for row in record.moments}
    nodes = [node for tree in trees(record).values() for node in tree.nodes if isinstance(node, ast.stmt)]
    found: list[RateWrite] = []
    for node in nodes:
        site = number_at(record, node)
        if site is None:
            continue
        for value in _rates_set(node):
            constant = value.value if isinstance(value, ast.Constant) else None
            rate = float(constant) if isinstance(constant, int | float) else None
            found.append(RateWrite(site=site, constant=rate, has_run=site in ran))
    return tuple(found)


def _rates_set(node: ast.stmt) -> Iterator[ast.expr | None]:
    """Yield the rates that a statement writes; None for one that depends on the rate before."""
    if isinstance(node, ast.Assign) and any(map(_is_rate, node.targets)):
        yield node.value
    elif isinstance(node, ast.AugAssign) and _is_rate(node.target):
        yield None
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and method_called(node.value) == "update":
        yield from (word.value for word in node.value.keywords if word.arg == "lr")
        for given in node.value.args:
            if isinstance(given, ast.Dict):
                pairs = zip(given.keys, given.values, strict=True)
                yield from (value for key, value in pairs if isinstance(key, ast.Constant) and key.value == "lr")


def _is_rate(target: ast.expr) -> bool:
    return isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant) and target.slice.value == "lr"
