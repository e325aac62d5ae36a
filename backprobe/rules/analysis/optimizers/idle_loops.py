"""Loops over an iterator that gives its elements once and that something before them has walked: they never turn.

heads = itertools.chain(q1.parameters(), q2.parameters())
for p in heads: ...  # all of them
for p in heads: ...  # none
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.optimizers.spent_iterators import gives_once
from backprobe.rules.analysis.source.scopes import Names, last_name, names, scope_of
from backprobe.rules.analysis.source.syntax import site_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedUp:
    """A loop that never turned though its function ran.

    Attributes:
        loop: The loop. source: its file. name: what it runs over.
        made: The statement that made the iterator; before: the one that walked it.
    """

    loop: ast.For
    source: int
    name: str
    made: ast.Assign
    before: ast.stmt


@table
def used_up_loops(record: Record) -> tuple[UsedUp, ...]:
    """All of them, in order."""
    return tuple(one for source, file in names(record).items() for one in _in_file(record, source, file))


def _in_file(record: Record, source: int, file: Names) -> Iterator[UsedUp]:
    made = {node for node in file.tree.nodes if isinstance(node, ast.Assign) and gives_once(node.value)}
    for loop in file.tree.nodes if made else ():
        if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Name | ast.Attribute):
            continue
        name = ast.unparse(loop.iter)
        given = list(_given(file, loop, name))
        first = given[0] if len(given) == 1 and given[0] in made else None
        before = None if first is None else _walked_before(record, file, loop, name)
        if isinstance(first, ast.Assign) and before is not None and _never_turned(record, loop):
            yield UsedUp(loop=loop, source=source, name=name, made=first, before=before)


def _given(file: Names, loop: ast.For, name: str) -> Iterator[ast.stmt]:
    """The statements that bind what the loop runs over: an attribute anywhere, a name in the loop's scope or module."""
    scope = scope_of(file.tree, loop)
    for node in file.tree.nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.For) else targets
        bound = any(ast.unparse(part) == name for target in targets for part in ast.walk(target))
        inside = "." in name or scope_of(file.tree, node) in (scope, file.tree.module)
        if bound and inside and isinstance(node, ast.stmt):
            yield node


def _walked_before(record: Record, file: Names, loop: ast.For, name: str) -> ast.stmt | None:
    """Another statement that ran, and that runs over the iterator or hands it to a call."""
    inner = set(ast.walk(loop))
    for part in file.tree.nodes:
        if not isinstance(part, ast.Name | ast.Attribute) or part in inner or ast.unparse(part) != name:
            continue
        above = file.tree.parents.get(part)
        handed = isinstance(above, ast.Call) and part in above.args and last_name(above.func) != "isinstance"
        walked = isinstance(above, ast.For | ast.comprehension) and above.iter is part
        node = next((one for one in file.tree.ancestors(part) if isinstance(one, ast.stmt)), None)
        if isinstance(part.ctx, ast.Load) and (handed or walked) and node is not None and _ran(record, node):
            return node
    return None


def _ran(record: Record, node: ast.stmt) -> bool:
    """A statement ran; of a loop one of its body did."""
    if isinstance(node, ast.For):
        return any(_ran(record, one) for one in node.body)
    place = site_at(record, node)
    return place is not None and place.site in _with_moments(record)


def _never_turned(record: Record, loop: ast.For) -> bool:
    """No statement of its body ran, and the loop was come to: a statement before or behind it in its block ran."""
    own = set(ast.walk(loop))
    inside = [one for one in own if isinstance(one, ast.stmt) and one is not loop]
    if any(_ran(record, one) for one in inside if not isinstance(one, ast.For)):
        return False
    for tree in (file.tree for file in names(record).values() if loop in file.tree.parents):
        above = tree.parents[loop]
        for block in (getattr(above, "body", []), getattr(above, "orelse", [])):
            if loop in block:
                return any(_ran(record, one) for one in block[block.index(loop) + 1 :]) or (
                    loop is block[-1] and any(_ran(record, one) for one in block[: block.index(loop)])
                )
    return False


@table
def _with_moments(record: Record) -> frozenset[int]:
    """The statements that a moment, a call or an operation tells of."""
    found = {row.site for row in record.moments if row.site is not None}
    return frozenset(found | {row.statement for row in record.operations})
