"""Operations of the record and expressions of the source: each other's place."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import region_in, trees
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record

_Place = tuple[int, int, int, int, int]


def expression_of(record: Record, operation: Operation) -> ast.expr | None:
    """The expression that an operation evaluated; None where the source is not known or does not parse."""
    source = lookup(record).sites[operation.statement].source
    place = (source, operation.line, operation.col, operation.end_line, operation.end_col)
    return _expressions(record).get(place)


def operations_of(record: Record, node: ast.expr) -> list[Operation]:
    """The operations that evaluated an expression, in order."""
    return _evaluated(record).get(node, [])


def given_to(node: ast.expr) -> list[ast.expr]:
    """The expressions whose values an operation takes: operands, arguments, and what a method is called on."""
    if isinstance(node, ast.Call):
        taken = [*node.args, *(one.value for one in node.keywords)]
        return [node.func.value, *taken] if isinstance(node.func, ast.Attribute) else taken
    return [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]


@table
def operations_at(record: Record) -> dict[int, list[Operation]]:
    """The operations of each statement, in order."""
    found: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in record.operations:
        found[row.statement].append(row)
    return dict(found)


@table
def _expressions(record: Record) -> dict[_Place, ast.expr]:
    """The outermost expression at each place that an operation stands at."""
    index = lookup(record)
    wanted = {
        (index.sites[row.statement].source, row.line, row.col, row.end_line, row.end_col) for row in record.operations
    }
    lines = {(source, line) for source, line, *_rest in wanted}
    found: dict[_Place, ast.expr] = {}
    for source, tree in trees(record).items():
        for node in tree.nodes:
            if isinstance(node, ast.expr) and (source, node.lineno) in lines:
                region = region_in(record, source, node)
                place = (source, region.start_line, region.start_col, region.end_line, region.end_col)
                if place in wanted:
                    found.setdefault(place, node)
    return found


@table
def _evaluated(record: Record) -> dict[ast.expr, list[Operation]]:
    found: defaultdict[ast.expr, list[Operation]] = defaultdict(list)
    for row in record.operations:
        node = expression_of(record, row)
        if node is not None:
            found[node].append(row)
    return dict(found)
