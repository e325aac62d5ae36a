"""The tracked tensors that an expression takes in: what it reads by name, and what the calls in it gave."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import bindings_named
from backprobe.rules.analysis.source.break_expressions import cause_between
from backprobe.rules.analysis.source.expression_places import operations_at
from backprobe.rules.analysis.source.named_values import binding_named, tensor_named
from backprobe.rules.analysis.source.syntax import Tree, parts_of, region_in, tree_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """A tracked tensor that an expression takes in with its history.

    Attributes:
        part: Where the expression reads it.
    """

    part: ast.expr
    name: str
    tensor: int


def operands(record: Record, site: Site, value: ast.expr, moment: int) -> Iterator[Operand]:
    """The tracked tensors that an expression reads and does not detach: each name once, the outermost paths first."""
    for part, name in _reads(record, site, value):
        tensor = tensor_named(record, name, site, moment)
        state = None if tensor is None else state_at(record, tensor, moment)
        if tensor is not None and state is not None and state.requires_grad:
            yield Operand(part=part, name=name, tensor=tensor)
    if isinstance(value, ast.Name):
        yield from _elements(record, site, value, moment)
    given = _given(record, site, value, moment) if isinstance(value, ast.Call) else None
    if given is not None:
        yield Operand(part=value, name=ast.unparse(value), tensor=given)


def _reads(record: Record, site: Site, value: ast.expr) -> list[tuple[ast.expr, str]]:
    """What an expression reads and does not detach, as `operands` wants it: the same at each of its executions."""
    known, tree = _known_reads(record), tree_of(record, site)
    if tree is None:
        return []
    if value not in known:
        first: dict[str, ast.expr] = {}
        for part in parts_of(value):
            if isinstance(part, ast.Name | ast.Attribute | ast.Subscript):
                first.setdefault(ast.unparse(part), part)
        known[value] = [(part, name) for name, part in first.items() if not is_cut(tree, part, value)]
    return known[value]


@table
def _known_reads(_record: Record) -> dict[ast.expr, list[tuple[ast.expr, str]]]:
    """What `_reads` has found, by expression: it is asked for each turn of a loop."""
    return {}


def _given(record: Record, site: Site, call: ast.Call, moment: int) -> int | None:
    """The tracked tensor that a call of a function of the program gave in that execution, and that never had a name."""
    region = region_in(record, site.source, call)
    place = (region.start_line, region.start_col, region.end_line, region.end_col)
    for row in reversed(operations_at(record).get(site.site, [])):
        if row.moment is not None and row.moment <= moment and (row.line, row.col, row.end_line, row.end_col) == place:
            own = row.requires_grad and row.tensor is not None and row.tensor not in row.operands
            return row.tensor if own else None
    return None


def _elements(record: Record, site: Site, value: ast.Name, moment: int) -> Iterator[Operand]:
    """The tracked tensors that a name's dict or list was bound with last, as `values['loss']`."""
    named = (name for name in bindings_named(record) if name.startswith(f"{value.id}["))
    for name in named:
        row = binding_named(record, name, site, moment)
        state = None if row is None or row.function != site.function else state_at(record, row.tensor, moment)
        if row is not None and state is not None and state.requires_grad:
            yield Operand(part=value, name=name, tensor=row.tensor)


def is_cut(tree: Tree, part: ast.expr, value: ast.expr) -> bool:
    """The expression takes the part in without its history."""
    above = tree.parents.get(part)
    reads = isinstance(above, ast.Attribute) and above.attr in ("detach", "data", "item", "grad", "shape")
    return cause_between(tree, part, value) is not None or (part is not value and reads)
