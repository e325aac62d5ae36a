"""Schedules whose length is written as a count of batches: `len(loader)` goes into what they are built from.

total = epochs * len(loader)
LambdaLR(optimizer, lambda step: 1 - step / total)     # each step of this schedule stands for a batch
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import handed_in
from backprobe.rules.analysis.source.scopes import Function, Scope, assigned, names, scope_of
from backprobe.rules.analysis.source.syntax import Tree, parts_of, site_at, site_of, statement_at, tree_of, trees
from backprobe.rules.analysis.training.enclosing_loops import Loop, enclosing_loops
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.analysis.optimizers.schedules import Built

_DEPTH: Final = 5
"""Names that are followed to what gives them their value."""

_AROUND: Final = frozenset({"enumerate", "tqdm", "trange", "zip", "iter"})
"""Functions that a loop puts around what it runs over."""


def batches_counted(record: Record, built: Built, stepped: int, scheduled: int) -> ast.expr | None:
    """`len(loader)` of the loop around the optimizer's step, which goes into the schedule; the schedule steps outside.

    None where it does not, and where the schedule's own function multiplies its counter by it, to convert.

    Args:
        stepped: The statement of the optimizer's step; scheduled: that of the schedule's.
    """
    inner, outer = enclosing_loops(record, stepped), enclosing_loops(record, scheduled)
    if not inner or not outer or inner[0] in outer or not isinstance(inner[0], ast.For):
        return None
    over = set(_run_over(record, inner[0]))
    site = site_of(record, built.site)
    for part, counter in _given(record, built):
        counts = [one for one in _sources(record, site, part, _DEPTH) if _length_of(one) in over]
        if counts and not any(_converts(record, site, one, counter, over) for one in ast.walk(part)):
            return counts[0]
    return None


def _run_over(record: Record, loop: Loop) -> Iterator[str]:
    """What a loop runs over, as it is written, also where its function was given that."""
    part: ast.expr = loop.iter if isinstance(loop, ast.For) else ast.Constant(None)
    while isinstance(part, ast.Call) and part.args and ast.unparse(part.func).rpartition(".")[2] in _AROUND:
        part = part.args[0]
    yield ast.unparse(part)
    site = site_at(record, loop)
    given = handed_in(record, site, part.id) if isinstance(part, ast.Name) and site is not None else None
    if given is not None:
        yield given.text


def _given(record: Record, built: Built) -> Iterator[tuple[ast.AST, str]]:
    """What a schedule is built from beside its optimizer: functions, each with the name of its counter, and values."""
    file = names(record).get(site_of(record, built.site).source)
    for call in parts_of(statement_at(record, built.site)):
        if not isinstance(call, ast.Call) or not call.args or file is None:
            continue
        for part in (*call.args[1:], *(one.value for one in call.keywords if one.arg != "optimizer")):
            functions: list[ast.AST] = [part] if isinstance(part, ast.Lambda) else []
            functions += file.functions.get(part.id, []) if isinstance(part, ast.Name) else []
            for one in functions:
                arguments = one.args.args if isinstance(one, ast.Lambda | Function) else []
                yield one, arguments[-1].arg if arguments else ""
            if not functions:
                yield part, ""


def _sources(record: Record, site: Site, part: ast.AST, depth: int) -> Iterator[ast.expr]:
    """The calls of `len` in an expression or a function, and in what gives the names that it reads their values.

    The nearest first, and each name once: names that are assigned from each other lead to one place by very many ways.
    """
    level, read = [(part, site)], set[tuple[ast.AST, str]]()
    for left in range(depth, -1, -1):
        following: list[tuple[ast.AST, Site]] = []
        for one, there in ((one, there) for value, there in level for one in ast.walk(value)):
            if isinstance(one, ast.Call) and _length_of(one):
                yield one
            elif left and isinstance(one, ast.Name | ast.Attribute) and isinstance(one.ctx, ast.Load):
                node, tree = statement_at(record, there.site), tree_of(record, there)
                if node is None or tree is None:
                    continue
                key = scope_of(tree, node), ast.unparse(one)
                if key not in read:
                    read.add(key)
                    following += _values(record, there, tree, key[0], one)
        level = following


def _values(
    record: Record, site: Site, tree: Tree, scope: Scope, read: ast.Name | ast.Attribute
) -> Iterator[tuple[ast.expr, Site]]:
    """What gives a name its value: the assignments in sight, else what was handed in; of an attribute any of it."""
    found = False
    for one in _assignments_in_sight(record, tree, scope, read):
        there = site_at(record, one)
        if there is not None:
            found = True
            yield one.value, there
    given = handed_in(record, site, read.id) if isinstance(read, ast.Name) and not found else None
    if given is not None:
        yield given.part, given.site


def _assignments_in_sight(
    record: Record, tree: Tree, scope: Scope, read: ast.Name | ast.Attribute
) -> Iterator[ast.Assign]:
    """Those to an attribute of that text in any file; those to a name in a function and in its module."""
    if isinstance(read, ast.Attribute):
        yield from _attributes_assigned(record).get(ast.unparse(read), ())
        return
    for around in dict.fromkeys((scope, tree.module)):
        yield from assigned(record).get((around, read.id), ())


@table
def _attributes_assigned(record: Record) -> dict[str, list[ast.Assign]]:
    """The assignments to each attribute, as it is written, `self.total`, file by file."""
    found: defaultdict[str, list[ast.Assign]] = defaultdict(list)
    for one in (one for tree in trees(record).values() for one in _assignments(tree)):
        for text in dict.fromkeys(ast.unparse(target) for target in one.targets if isinstance(target, ast.Attribute)):
            found[text].append(one)
    return found


def _assignments(tree: Tree) -> Iterator[ast.Assign]:
    return (one for one in tree.nodes if isinstance(one, ast.Assign))


def _length_of(part: ast.AST) -> str:
    """What the length of is taken, as it is written."""
    is_length = isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id == "len"
    return ast.unparse(part.args[0]) if is_length and isinstance(part, ast.Call) and part.args else ""


def _converts(record: Record, site: Site, part: ast.AST, counter: str, over: set[str]) -> bool:
    """A product of the function's counter and of such a count: it makes batches of epochs."""
    if not counter or not isinstance(part, ast.BinOp) or not isinstance(part.op, ast.Mult):
        return False
    for one, other in ((part.left, part.right), (part.right, part.left)):
        reads = any(isinstance(name, ast.Name) and name.id == counter for name in ast.walk(one))
        if reads and any(_length_of(length) in over for length in _sources(record, site, other, _DEPTH)):
            return True
    return False
