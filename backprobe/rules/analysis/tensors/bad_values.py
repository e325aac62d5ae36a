"""Values that are not finite: which tensors hold them, and which hold infinities on purpose, as a mask."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.assignments import spelled_out
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Statistics

INFINITIES: Final = frozenset({"inf", "-inf", "infinity", "-infinity", "+inf"})


def is_bad(measured: Statistics | None) -> bool:
    """Something of it is NaN or infinite."""
    return measured is not None and (measured.nan > 0 or measured.inf > 0)


@table
def bad_since(record: Record) -> dict[int, int]:
    """The first moment at which a tensor held NaN or an infinity, by tensor."""
    found: dict[int, int] = {}
    for row in record.snapshots:  # of 100,000: a call of `is_bad` for each took most of this
        if (value := row.value) is not None and (value.nan > 0 or value.inf > 0):
            found[row.tensor] = min(found.get(row.tensor, row.moment), row.moment)
    return found


def bad_at(record: Record, tensor: int, moment: int) -> bool:
    """It held NaN or an infinity by then."""
    since = bad_since(record).get(tensor)
    return since is not None and since <= moment


def made_at(record: Record, tensor: int) -> int | None:
    """The statement that made a tensor; of a root that was met while its own statement ran, that of its node."""
    index = lookup(record)
    site, link = index.tensors[tensor].site, index.node_of.get(tensor)
    return index.nodes[link.node].site if site is None and link is not None else site


def has_nan(record: Record, tensor: int) -> bool:
    """What it held when it was first bad was, or was also, NaN."""
    first = next((row.value for row in lookup(record).snapshots_of[tensor] if is_bad(row.value)), None)
    return first is not None and first.nan > 0


def is_mask(record: Record, tensor: int) -> bool:
    """It holds infinities and no NaN, and they are written in its statement, or come from one of which that is true."""
    site = made_at(record, tensor)
    if site is None or has_nan(record, tensor):
        return False
    if _writes_infinity(record, site):
        return True
    rows = lookup(record).bindings_of[tensor][:1]
    bad = [one for row in rows for one in row.parents if one in bad_since(record) and one != tensor]
    return bool(bad) and all(is_mask(record, one) for one in bad if one < tensor)


def _writes_infinity(record: Record, number: int) -> bool:
    """A statement writes an infinity, or reads a name that stands for one."""
    site = site_of(record, number)
    node, tree = statement(record, site), tree_of(record, site)
    for part in ast.walk(node) if node is not None and tree is not None else ():
        if _is_infinity(part):
            return True
        if isinstance(part, ast.Name) and tree is not None and _is_infinite(spelled_out(record, tree, part)):
            return True
    return False


def _is_infinite(value: ast.expr) -> bool:
    """The infinity itself, `-float("inf")`: not a tensor that was made with one."""
    while isinstance(value, ast.UnaryOp):
        value = value.operand
    is_float = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1
    return _is_infinity(value.args[0] if is_float and isinstance(value, ast.Call) else value)


def _is_infinity(part: ast.AST) -> bool:
    """`float("-inf")`, `math.inf`, `torch.inf`."""
    if isinstance(part, ast.Constant):
        return isinstance(part.value, str) and part.value.strip().lower() in INFINITIES
    return isinstance(part, ast.Attribute) and part.attr in ("inf", "infty")


def masked_row(record: Record, born: list[int]) -> tuple[int, int] | None:
    """A softmax that gave NaN although its input had none, only `-inf`: (its result, the tensor with `-inf`)."""
    first = next((one for one in born if has_nan(record, one)), None)
    if first is None:
        return None
    site = made_at(record, first)
    node = None if site is None else statement(record, site_of(record, site))
    parts = ast.walk(node) if node is not None else ()
    if not any(isinstance(part, ast.Call) and "softmax" in ast.unparse(part.func).lower() for part in parts):
        return None
    rows = lookup(record).bindings_of[first][:1]
    masked = [one for row in rows for one in row.parents if one in bad_since(record) and not has_nan(record, one)]
    if masked:
        return first, masked[0]
    return (first, first) if site is not None and _writes_infinity(record, site) else None
