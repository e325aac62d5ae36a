"""Where a value stopped being a tensor: followed back through the source from a tensor that was made of plain numbers.

The record has no row for a number. A name that holds none of its tensors is looked up in the same function: its last
assignment, what was appended to it, what a function of the program returned into it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from backprobe.rules.causes import NUMBERS, cause_between
from backprobe.rules.lookup import bindings_named, lookup
from backprobe.rules.steps import state_at
from backprobe.rules.syntax import Tree, site_at, statement, tree_of, trees, value_of
from backprobe.rules.table import table

if TYPE_CHECKING:
    from backprobe.record import Binding, Record, Site

_DEPTH: Final = 8
"""Assignments that are followed back one after another."""

_GROWS: Final = frozenset({"append", "extend", "insert", "add", "update"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A tracked tensor whose value went on as something else, at which statement, and how."""

    source: int
    site: int
    how: str


def left_tensors(record: Record, binding: Binding) -> Left | None:
    """Where the value of this binding left the tensors; None if its statement reads no such value."""
    site = lookup(record).sites[binding.site]
    node, tree = statement(record, site), tree_of(record, site)
    value = value_of(node)
    if node is None or tree is None or value is None:
        return None
    return _Search(record, tree, binding.moment).through(value, node, _DEPTH, own=True)


@dataclass(frozen=True, slots=True)
class _Search:
    """One search in one file, for what held at a moment."""

    record: Record
    tree: Tree
    moment: int
    seen: set[ast.expr] = field(default_factory=set[ast.expr])

    def through(self, value: ast.expr, around: ast.stmt, depth: int, *, own: bool = False) -> Left | None:
        """The first tensor whose value goes into an expression as a number; then the names in it, further back.

        Args:
            own: The expression is the binding's own: what it does to tensors directly was looked at before.
        """
        site = site_at(self.record, around)
        if site is None or value in self.seen:
            return None
        self.seen.add(value)
        for part in ast.walk(value):
            if not isinstance(part, ast.Name | ast.Attribute) or not isinstance(part.ctx, ast.Load):
                continue
            source = self._tracked(ast.unparse(part), site)
            how = None if source is None else self._number(part, value)
            if source is not None and how is not None and not (own and not _is_number(how)):
                return Left(source=source, site=site.site, how=how)
        if depth <= 0:
            return None
        return self._behind_names(value, around, depth) or self._behind_calls(value, depth)

    def _number(self, part: ast.expr, value: ast.expr) -> str | None:
        """What made a number of an operand; in a comprehension it may be done to the element instead."""
        how = cause_between(self.tree, part, value)
        if how:
            return how
        for above in self.tree.ancestors(part):
            if isinstance(above, ast.GeneratorExp | ast.ListComp | ast.SetComp) and how is None:
                names = {one.id for one in ast.walk(above.generators[0].target) if isinstance(one, ast.Name)}
                for one in ast.walk(above.elt):
                    if isinstance(one, ast.Name) and one.id in names:
                        return cause_between(self.tree, one, above.elt) or None
            if above is value:
                break
        return None

    def _tracked(self, text: str, site: Site) -> int | None:
        """The tensor that requires grad which a name held then, in this function or at the top; elements count too."""
        for name in (text, f"{text}[0]"):
            rows = [
                row
                for row in bindings_named(self.record).get(name, ())
                if row.moment <= self.moment and row.function in (site.function, "<module>")
            ]
            if rows:
                state = state_at(self.record, rows[-1].tensor, rows[-1].moment)
                return rows[-1].tensor if state is not None and state.requires_grad else None
        return None

    def _behind_names(self, value: ast.expr, around: ast.stmt, depth: int) -> Left | None:
        scope = self._scope(around)
        for part in ast.walk(value):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                for node, given in _givers(self.tree, scope, part.id, around):
                    found = self.through(given, node, depth - 1)
                    if found is not None:
                        return found
        return None

    def _behind_calls(self, value: ast.expr, depth: int) -> Left | None:
        """What a function of the program returned."""
        for part in ast.walk(value):
            called = part.func if isinstance(part, ast.Call) else None
            if isinstance(called, ast.Name):
                for function in _functions(self.record).get(called.id, ()):
                    for node in ast.walk(function):
                        if isinstance(node, ast.Return) and node.value is not None:
                            found = self.through(node.value, node, depth - 1)
                            if found is not None:
                                return found
        return None

    def _scope(self, node: ast.stmt) -> ast.AST:
        return next((above for above in self.tree.ancestors(node) if isinstance(above, _Function)), self.tree.module)


def _is_number(how: str) -> bool:
    return how in NUMBERS or how == "`torch.tensor()`"


def _givers(tree: Tree, scope: ast.AST, name: str, around: ast.stmt) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """The statements of a function that give a name its value before a statement, the nearest first."""
    found: list[tuple[ast.stmt, ast.expr]] = []
    loops = [above for above in tree.ancestors(around) if isinstance(above, ast.For | ast.While)]
    for node in ast.walk(scope):
        if not isinstance(node, ast.stmt) or node is around:
            continue
        if node.lineno > around.lineno and not any(loop in tree.ancestors(node) for loop in loops):
            continue
        given = _given(node, name)
        if given is not None:
            found.append((node, given))
    found.sort(key=lambda one: (one[0].lineno <= around.lineno, one[0].lineno), reverse=True)
    yield from found


def _given(node: ast.stmt, name: str) -> ast.expr | None:
    """What a statement puts into a name, or adds to the list that it holds."""
    if isinstance(node, ast.Assign):
        return node.value if any(_names(target, name) for target in node.targets) else None
    if isinstance(node, ast.AnnAssign | ast.AugAssign):
        return node.value if _names(node.target, name) else None
    if isinstance(node, ast.For):
        return node.iter if _names(node.target, name) else None
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _GROWS and call.args:
        return call.args[-1] if _names(call.func.value, name) else None
    return None


def _names(target: ast.expr, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(target))


@table
def _functions(record: Record) -> dict[str, list[ast.stmt]]:
    """The functions of the program by their plain name."""
    found: dict[str, list[ast.stmt]] = {}
    for tree in trees(record).values():
        for node in ast.walk(tree.module):
            if isinstance(node, _Function):
                found.setdefault(node.name, []).append(node)
    return found
