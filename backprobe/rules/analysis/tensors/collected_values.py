"""Values without a name that a container hands from one backward call to the next: penalties appended in `forward`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import parts_of, statement_at
from backprobe.rules.analysis.tensors.parents import operations_by_number

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record

_STORES: Final = frozenset({"append", "appendleft", "add", "insert", "extend", "setdefault"})
"""Methods of Python's containers that put an argument in."""


def collected_between(record: Record, first: BackwardCall, second: BackwardCall) -> tuple[int, str, int] | None:
    """A container that gives what the second call walks, with values in it from before the first call.

    The statement that takes them out, the container's name, and the statement that put them in.
    """
    known = operations_by_number(record)
    start = first.moment_before if first.moment_after is None else first.moment_after
    for row in record.operations:
        if row.moment is None or not start <= row.moment < second.moment_before or not row.requires_grad:
            continue
        for one in (known[number] for number in row.inner if number in known):
            before = one.requires_grad and one.moment is not None and one.moment <= first.moment_before
            filled = stored(statement_at(record, one.statement)) if before else None
            name = "" if filled is None else ast.unparse(filled[0])
            if name and name.rpartition(".")[2] in map(last_name, _expressions(record, row)):
                return row.statement, name, one.statement
    return None


def _expressions(record: Record, row: Operation) -> Iterator[ast.expr]:
    return (part for part in parts_of(statement_at(record, row.statement)) if isinstance(part, ast.expr))


def stored(node: ast.stmt | None) -> tuple[ast.expr, ast.expr] | None:
    """The container that a statement fills, and what it puts in: `self.terms.append(x.mean())`, `seen[name] = loss`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return (call.func.value, call.args[-1]) if call.func.attr in _STORES and call.args else None
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value, node.value
    if isinstance(node, ast.AugAssign) and isinstance(node.value, ast.List | ast.Tuple):
        return node.target, node.value
    return None
