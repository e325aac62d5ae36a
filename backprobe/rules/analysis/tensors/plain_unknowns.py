"""Plain tensors that an optimizer was given though they never require grad: it passes over them without a word."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.scopes import root_name
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record


def plain_unknowns(record: Record, optimizer: Optimizer) -> list[int]:
    """Return the tensors of an optimizer, no parameters, that a computation used and that never required grad.

    Left out are those whose `.grad` the program writes by hand.
    """
    return [row.tensor for row in optimizer.tensors if _is_plain(record, row.tensor) and row.tensor in _used(record)]


def _is_plain(record: Record, tensor: int) -> bool:
    index = lookup(record)
    made, rows = index.tensors[tensor], index.snapshots_of[tensor]
    if made.cls != "Tensor" or made.site is None or not rows:
        return False
    return not any(row.requires_grad or row.grad != "none" for row in rows)


def is_flagged_in_text(record: Record, tensor: int) -> bool:
    """Return whether the program sets the flag of such a name, or gives it where it makes the tensor.

    The flag is off all the same: it may be set in a branch that did not run, or to a value that is False.
    """
    index = lookup(record)
    names = {row.name.partition(".")[0] for row in index.bindings_of[tensor]}
    return _is_given_flag(record, index.tensors[tensor].site or 0) or any(
        name in names or name in _loops(record) for name in _set(record)
    )


@table
def _used(record: Record) -> frozenset[int]:
    """What operations took, those apart that build something, as an optimizer's constructor."""
    rows = (row.operands for row in record.operations if row.result == "tensor")
    return frozenset(one for row in rows for one in row)


def _is_given_flag(record: Record, site: int) -> bool:
    """The statement that makes it says itself whether it is to require grad."""
    words = (
        word for part in parts_of(statement_at(record, site)) if isinstance(part, ast.Call) for word in part.keywords
    )
    return any(word.arg == "requires_grad" for word in words)


@table
def _set(record: Record) -> frozenset[str]:
    """The names that begin what the program sets a flag of."""
    return frozenset(name for tree in trees(record).values() for name in _flags(tree.module))


def _flags(module: ast.Module) -> Iterator[str]:
    for part in ast.walk(module):
        if isinstance(part, ast.Call) and method_called(part) == "requires_grad_":
            yield root_name(part.func)
        elif isinstance(part, ast.Attribute) and part.attr == "requires_grad" and isinstance(part.ctx, ast.Store):
            yield root_name(part)


@table
def _loops(record: Record) -> frozenset[str]:
    """The names that loops bind: behind such a name any tensor may stand."""
    found: set[str] = set()
    for part in (part for tree in trees(record).values() for part in tree.nodes):
        if isinstance(part, ast.For | ast.comprehension):
            found |= {one.id for one in ast.walk(part.target) if isinstance(one, ast.Name)}
    return frozenset(found)
