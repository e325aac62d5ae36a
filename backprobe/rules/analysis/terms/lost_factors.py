"""Trained leaves that come into a loss as a Python number, and beside it alone: as a penalty that no data goes into.

    loss = math.exp(-s) * fit + s

1. The record says that a number was made of the leaf and nothing else, and that it scales what a backward call walks.
2. That call reaches the leaf, only through sums and functions of the leaf alone. So its gradient knows no data: what
   would have to balance it is the very number that was cut off.
3. No finding: a leaf with a loss of its own beside the number, as `log_alpha * (entropy - goal).detach()`.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import Break
from backprobe.rules.analysis.graph.reach import leaves_behind, reaches
from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.modules.module_sites import modules_by_number
from backprobe.rules.analysis.modules.parameter_uses import owners
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import ending_at
from backprobe.rules.analysis.source.expression_places import expression_of
from backprobe.rules.analysis.source.scopes import names, scope_of
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.parents import made_by, operands_below, operations_by_number
from backprobe.rules.analysis.terms.terms import PRODUCTS, SUMS
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Operation, Record
    from backprobe.rules.analysis.source.break_syntax import Ending

LEAST: Final = 2
"""Backward calls that walk what the number scales: once is no pattern."""


@table
def lost_factors(record: Record) -> tuple[Break, ...]:
    """The numbers made of trained leaves that scale what is walked, each with its place, in order."""
    found: dict[ast.expr, tuple[Ending, Operation, dict[int, None], dict[int, None]]] = {}
    for row, leaf, scaled in _scaled(record):
        node, ending = expression_of(record, row), _ending(record, row)
        calls = [] if node is None or ending is None else _walks(record, scaled, leaf)
        if node is not None and ending is not None and calls:
            known = found.setdefault(node, (ending, row, {}, {}))
            known[2][leaf] = None
            known[3].update(dict.fromkeys(calls))
    breaks = [_break(record, *one) for one in found.values() if len(one[3]) >= LEAST]
    return tuple(sorted(breaks, key=lambda one: (one.moment, one.site)))


def _break(record: Record, ending: Ending, row: Operation, leaves: dict[int, None], calls: dict[int, None]) -> Break:
    call = ending.node
    lost = call.args[:1] if isinstance(call, ast.Call) else []
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and not lost:
        lost = [call.func.value]
    return Break(
        ending=ending,
        source=site_of(record, row.statement).source,
        others=(),
        lost="".join(map(ast.unparse, lost)),
        site=row.statement,
        leaves=tuple(leaves),
        root=lookup(record).calls[next(iter(calls))].site,
        calls=tuple(calls),
        raised=None,
        moment=row.moment or 0,
        is_partial=True,
    )


def _scaled(record: Record) -> Iterator[tuple[Operation, int, Operation]]:
    """Numbers made of one leaf alone, that leaf, and each tracked product that such a number goes into."""
    numbers: dict[int, tuple[Operation, int]] = {}
    named: dict[tuple[ast.AST, str], tuple[Operation, int]] = {}
    alone = _alone(record)
    for row in record.operations:  # in the order in which they ended: an inner one stands before the one that uses it
        if row.result == "number":
            leaves = {alone.get(one, -1) for one in operands_below(record)[row.operation]}
            inner = next((numbers[one] for one in row.inner if one in numbers), None)
            leaf = leaves.pop() if len(leaves) == 1 else -1
            if leaf >= 0:
                numbers[row.operation] = inner or (row, leaf)
                named.update(dict.fromkeys(_names_of(record, row), numbers[row.operation]))
        elif row.requires_grad and row.function.rpartition(".")[2] in PRODUCTS:
            used = [numbers[one] for one in row.inner if one in numbers]
            used += [named[one] for one in _names_in(record, row) if one in named] if named else []
            for number, leaf in used:
                yield number, leaf, row


def _names_of(record: Record, row: Operation) -> Iterator[tuple[ast.AST, str]]:
    """The plain name that a statement gives the number, and no other statement, with its function."""
    site, node = site_of(record, row.statement), expression_of(record, row)
    tree = names(record)[site.source].tree if node is not None and site.source in names(record) else None
    above = None if tree is None or node is None else tree.parents.get(node)
    while tree is not None and isinstance(above, ast.BinOp | ast.UnaryOp):
        above = tree.parents.get(above)
    if tree is not None and isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Name):
        key = scope_of(tree, above), above.targets[0].id
        if _stores(record)[key] == 1:
            yield key


@table
def _stores(record: Record) -> Counter[tuple[ast.AST, str]]:
    """How many statements bind each plain name, by its function."""
    trees = [file.tree for file in names(record).values()]
    found = ((tree, one) for tree in trees for one in tree.nodes if isinstance(one, ast.Name))
    return Counter((scope_of(tree, one), one.id) for tree, one in found if isinstance(one.ctx, ast.Store))


def _names_in(record: Record, row: Operation) -> Iterator[tuple[ast.AST, str]]:
    """The plain names that a product takes itself, with their function."""
    site, node = site_of(record, row.statement), expression_of(record, row)
    if isinstance(node, ast.BinOp) and site.source in names(record):
        scope = scope_of(names(record)[site.source].tree, node)
        yield from ((scope, one.id) for one in (node.left, node.right) if isinstance(one, ast.Name))


def _ending(record: Record, row: Operation) -> Ending | None:
    """What makes the number, as an end of a history."""
    node = expression_of(record, row)
    if not isinstance(node, ast.Call):
        return None
    inner = node.func.value if isinstance(node.func, ast.Attribute) and not node.args else None
    one = ending_at(node, node.args[0]) if inner is None and node.args else None
    if inner is not None:
        one = ending_at(node.func, inner)
    if one is None or one.kind != "item":
        return None
    return type(one)(kind=one.kind, node=node, how=one.how)


@table
def _alone(record: Record) -> dict[int, int]:
    """Tensors that were made of one trained leaf and numbers, by tensor; a leaf that data goes with anywhere has none.

    A leaf of a module of torch goes with data inside of it.
    """
    known, mixed, own = _leaves(record), set[int](), operations_by_number(record)
    for row in record.operations:
        if row.result == "number" or not row.requires_grad:
            continue
        below = operands_below(record)[row.operation]
        leaves = {leaf for leaf in (_leaf_of(record, known, one) for one in below) if leaf is not None}
        if not leaves:
            continue
        if len(leaves) == 1 and all(one in known for one in below):
            if row.tensor is not None:
                known.setdefault(row.tensor, next(iter(leaves)))
        elif not _is_linear(row, inner := [own[number] for number in row.inner if number in own]):
            direct = {*row.operands}.union(
                *(operands_below(record)[one.operation] for one in inner if one.requires_grad)
            )
            mixed |= {known[one] for one in direct if one in known}
    return {tensor: leaf for tensor, leaf in known.items() if leaf not in mixed}


def _is_linear(row: Operation, inner: list[Operation]) -> bool:
    """A sum, or a product of one tensor and numbers."""
    name = row.function.rpartition(".")[2]
    tensors = len(row.operands) + sum(one.result != "number" for one in inner)
    return name in SUMS or (name in PRODUCTS and tensors == 1)


def _leaves(record: Record) -> dict[int, int]:
    """The trained leaves that no module of torch holds, each by itself."""
    held, modules = owners(record), modules_by_number(record)
    return {leaf: leaf for leaf in in_optimizers(record) if all(modules[one].user_code for one in held.get(leaf, ()))}


def _leaf_of(record: Record, known: dict[int, int], tensor: int) -> int | None:
    """The leaf that a tensor was made of; also of an element that a loop took, which no operation gave."""
    if tensor not in known and made_by(record).get(tensor) is None:
        made = node_of(record, tensor)
        edges = [] if made is None else lookup(record).edges_of[made]
        behind = leaves_behind(record, made) if made is not None and len(edges) == 1 else frozenset[int]()
        leaf = next(iter(behind)) if len(behind) == 1 else None
        if leaf is not None and known.get(leaf) == leaf:
            known[tensor] = leaf
    return known.get(tensor)


def _walks(record: Record, scaled: Operation, leaf: int) -> list[int]:
    """The backward calls that walk what the product went into, and that reach the leaf."""
    own = operations_by_number(record)
    while scaled.tensor is None and scaled.operation in _outer(record):
        scaled = own[_outer(record)[scaled.operation]]
    made = None if scaled.tensor is None else node_of(record, scaled.tensor)
    found = _met_by(record).get(made, ()) if made is not None else ()
    return [call for call in found if leaf in reaches(record)[call].leaves]


@table
def _outer(record: Record) -> dict[int, int]:
    """The operation that each operation's result went into in the same expression."""
    return {inner: row.operation for row in record.operations for inner in row.inner}


@table
def _met_by(record: Record) -> dict[int, list[int]]:
    """The backward calls that met each node."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for call, reach in reaches(record).items():
        for node in reach.met:
            found[node].append(call)
    return dict(found)
