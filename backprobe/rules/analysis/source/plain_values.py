"""Where a value stopped being a tensor: followed back through the source from a tensor that was made of plain numbers.

The record has no row for a number. A name that holds none of its tensors is looked up in the same function: its last
assignment, what was appended to it, what a function of the program returned into it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.assignments import Given, given_at, givers, leads_to_tracked
from backprobe.rules.analysis.source.break_expressions import NUMBERS, cause_between
from backprobe.rules.analysis.source.named_values import last_bound
from backprobe.rules.analysis.source.syntax import Tree, statement, value_of
from backprobe.rules.analysis.training.steps import state_at

if TYPE_CHECKING:
    from backprobe.record import Binding, Record

_DEPTH: Final = 8
"""Assignments that are followed back one after another."""

_MOST: Final = 100
"""Ways that one search tries: where a loop feeds names to each other, each leads to all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A tracked tensor whose value went on as something else, at which statement, and how."""

    source: int
    site: int
    how: str


def left_tensors(record: Record, binding: Binding) -> Left | None:
    """Where the value of this binding left the tensors; None if its statement reads no such value."""
    node = statement(record, lookup(record).sites[binding.site])
    value = value_of(node)
    given = None if node is None or value is None else given_at(record, value, node)
    return None if given is None else _Search(record, binding.moment).through(given, _DEPTH, own=True)


@dataclass(slots=True)
class _Search:
    """One search for what held at a moment; it ends when `_MOST` ways were tried."""

    record: Record
    moment: int
    tried: int = 0
    seen: set[ast.expr] = field(default_factory=set[ast.expr])

    def through(self, given: Given, depth: int, *, own: bool = False) -> Left | None:
        """The first tensor whose value goes into an expression as a number; then the names in it, further back.

        Args:
            own: The expression is the binding's own: what it does to tensors directly was looked at before.
        """
        self.tried += 1
        if given.value in self.seen or not leads_to_tracked(self.record, given):
            return None
        self.seen.add(given.value)
        for part, text in given.tracked:
            self.tried += 1
            source = self._tracked(text, given)
            how = None if source is None else _number(given.tree, part, given.value)
            if source is not None and how is not None and not (own and not _is_number(how)):
                return Left(source=source, site=given.site.site, how=how)
            if self.tried > _MOST:
                return None
        return self._behind(given, depth) if depth > 0 else None

    def _behind(self, given: Given, depth: int) -> Left | None:
        for one in givers(self.record, given):
            found = self.through(one, depth - 1)
            if found is not None or self.tried > _MOST:
                return found
        return None

    def _tracked(self, text: str, given: Given) -> int | None:
        """The tensor that requires grad which a name held then, in this function or at the top; elements count too."""
        for name in (text, f"{text}[0]"):
            row = last_bound(self.record, name, (given.site.function, "<module>"), self.moment)
            if row is not None:
                state = state_at(self.record, row.tensor, row.moment)
                return row.tensor if state is not None and state.requires_grad else None
        return None


def _number(tree: Tree, part: ast.expr, value: ast.expr) -> str | None:
    """What made a number of an operand; in a comprehension it may be done to the element instead."""
    how = cause_between(tree, part, value)
    if how:
        return how
    for above in tree.ancestors(part):
        if isinstance(above, ast.GeneratorExp | ast.ListComp | ast.SetComp) and how is None:
            names = {one.id for one in ast.walk(above.generators[0].target) if isinstance(one, ast.Name)}
            for one in ast.walk(above.elt):
                if isinstance(one, ast.Name) and one.id in names:
                    return cause_between(tree, one, above.elt) or None
        if above is value:
            break
    return None


def _is_number(how: str) -> bool:
    return how in NUMBERS or how == "`torch.tensor()`"
