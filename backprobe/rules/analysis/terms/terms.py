"""The terms of a root: what a backward call's root is the sum of, as far as sums, means and scalings are written out.

    loss = (fit + 0.1 * penalty).mean()   # two terms: `fit` and `penalty`

1. The record's operations are gone down from the root, never the source alone: of each summand it is known whether it
   requires grad.
2. A product has one term: the factor that requires grad. If two do, the product itself is the term.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expression_places import expression_of, operations_at
from backprobe.rules.analysis.source.syntax import parts_of, site_of, statement, value_of
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record

SUMS: Final = frozenset({
    "+", "-", "add", "add_", "sub", "sub_", "subtract", "neg", "sum", "nansum", "fsum", "mean", "nanmean", "stack",
    "cat", "hstack", "vstack", "concat", "squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel", "to", "float",
    "double", "cuda", "cpu", "clone", "contiguous", "[]", "expand", "values", "list", "tuple", "items", "zip",
})  # fmt: skip
"""Functions whose result is a sum of what goes in, or holds it in another shape."""

PRODUCTS: Final = frozenset({"*", "/", "mul", "mul_", "div", "div_", "multiply", "divide", "true_divide", "scale"})
"""Functions whose result has one factor for each thing that goes in."""

_NAMED: Final = (ast.Name, ast.Attribute)

_CALLS: Final = 6
"""Backward calls of one statement whose roots are taken apart."""

_MOST: Final = 200
"""Summands of one root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A summand of the root of a backward call.

    Attributes:
        nodes: The expressions that made it; source: their file.
        site: The statement in which it was made.
        tensor: It; None: a number, or a tensor that was used up in its statement. operation: what gave it.
        is_tracked: It requires grad.
        call: The backward call. beside: the tensors that are sums with it in them, or other summands.
    """

    nodes: tuple[ast.expr, ...]
    source: int
    site: int
    tensor: int | None
    operation: Operation | None
    is_tracked: bool
    call: BackwardCall
    beside: frozenset[int]


@table
def terms(record: Record) -> tuple[Term, ...]:
    """The terms of the roots, of each statement that walks back the first calls."""
    found: list[Term] = []
    seen: dict[int | None, int] = {}
    for call in record.backward_calls:
        seen[call.site] = seen.get(call.site, 0) + 1
        if seen[call.site] <= _CALLS and call.outcome == "finished" and call.accumulate_grad and len(call.roots) == 1:
            found += _Sum(record, call).terms()
    return tuple(found)


@dataclass(slots=True)
class _Sum:
    """One root, taken apart."""

    record: Record
    call: BackwardCall
    seen: set[int] = field(default_factory=set[int])
    sums: set[int] = field(default_factory=set[int])
    found: list[Term] = field(default_factory=list[Term])

    def terms(self) -> list[Term]:
        root = self.call.roots[0].tensor
        if root is not None and made_by(self.record).get(root) is None and not lookup(self.record).bindings_of[root]:
            root = None
        if root is not None:
            self._tensor(root)
        else:
            rows = operations_at(self.record).get(self.call.site or -1, ())
            before = [one for one in rows if (one.moment or 0) < self.call.moment_before and one.requires_grad]
            for one in before[-1:]:
                self._operation(one)
        if len(self.found) < 2:
            return []
        beside = frozenset(self.sums | {one.tensor for one in self.found if one.tensor is not None and one.is_tracked})
        return [replace(one, beside=beside) for one in self.found]

    def _tensor(self, tensor: int) -> None:
        """A tensor that requires grad, or not: taken apart, or a term."""
        if tensor in self.seen or len(self.seen) > _MOST:
            return
        self.seen.add(tensor)
        made = made_by(self.record).get(tensor)
        if not self._is_tracked(tensor):
            self._add(tensor, made, is_tracked=False)
            return
        self.sums.add(tensor)
        added = list(self._added(tensor))
        for one in added:
            self._part(one)
        if made is not None:
            self._operation(made, tensor)
        elif not added:
            self._add(tensor, None, is_tracked=True)

    def _operation(self, made: Operation, tensor: int | None = None) -> None:
        """An operation whose result requires grad."""
        name = made.function.rpartition(".")[2]
        parts = list(self._parts(made))
        if name in PRODUCTS:
            parts = [one for one in parts if self._part_is_tracked(one)]
        is_taken_apart = name in SUMS or (name in PRODUCTS and len(parts) == 1)
        if not is_taken_apart or not parts or any(self._is_several(one) for one in parts):
            self._add(tensor, made, is_tracked=True)
            return
        for one in parts:
            self._part(one)
        if name in ("+", "-"):
            self._numbers(made)

    def _part(self, part: int | Operation) -> None:
        if isinstance(part, int):
            self._tensor(part)
        elif part.result in ("tensors", "other") and part.function.rpartition(".")[2] in SUMS:
            for one in self._parts(part):
                self._part(one)
        elif part.requires_grad:
            self._operation(part)
        else:
            parts = list(self._parts(part))
            if len(parts) == 1 and part.function in PRODUCTS | SUMS:
                self._part(parts[0])
            else:
                self._add(None, part, is_tracked=False)

    def _is_several(self, part: int | Operation) -> bool:
        """Tensors that a call gave together, `x.min(1)`: what is taken out of them is tracked or not, it is a term."""
        if isinstance(part, int) or part.result not in ("tensors", "other"):
            return False
        if part.function.rpartition(".")[2] not in SUMS:
            return True
        parts = list(self._parts(part))
        return bool(parts) and all(self._is_several(one) for one in parts)

    def _parts(self, made: Operation) -> Iterator[int | Operation]:
        yield from made.operands
        known = operations_by_number(self.record)
        yield from (known[one] for one in made.inner if one in known)
        if made.function == "sum" and not made.operands and not made.inner:
            yield from self._elements(made)

    def _elements(self, made: Operation) -> Iterator[int]:
        """What the dict or list held that is summed by `sum(losses.values())`: its elements as they were bound last."""
        node, site = expression_of(self.record, made), site_of(self.record, made.statement)
        names = {ast.unparse(one) for one in parts_of(node) if isinstance(one, _NAMED)}
        last: dict[str, int] = {}
        for name, rows in bindings_named(self.record).items():
            if name.partition("[")[0] in names and name.endswith("]"):
                before = [row for row in rows if row.moment <= (made.moment or 0) and row.function == site.function]
                if before:
                    last[name] = before[-1].tensor
        yield from last.values()

    def _part_is_tracked(self, part: int | Operation) -> bool:
        return self._is_tracked(part) if isinstance(part, int) else bool(part.requires_grad)

    def _is_tracked(self, tensor: int) -> bool:
        state = state_at(self.record, tensor, self.call.moment_before)
        return state is not None and state.requires_grad

    def _added(self, tensor: int) -> Iterator[int | Operation]:
        """What a statement such as `loss += x` put into a tensor, or made it of."""
        record = self.record
        sites = [(row.site, row.moment) for row in lookup(record).inplace_of[tensor] if row.site is not None]
        bound = lookup(record).bindings_of[tensor]
        if bound and made_by(record).get(tensor) is None:
            sites.append((bound[0].site, bound[0].moment))
            node = statement(record, site_of(record, bound[0].site))
            if _is_sum(node):
                yield from (one for one in bound[0].parents if one != tensor and self._is_named_in(one, node))
        for site, moment in sites:
            if moment > self.call.moment_before or not _is_sum(statement(record, site_of(record, site))):
                continue
            values = [
                row for row in operations_at(record).get(site, ()) if row.is_value and (row.moment or 0) <= moment
            ]
            for row in values[-1:]:
                yield row if row.tensor is None else row.tensor

    def _is_named_in(self, tensor: int, node: ast.stmt | None) -> bool:
        """By itself or times something, not as what a call is given: its result is what is added."""
        names = {row.name for row in lookup(self.record).bindings_of[tensor]}
        return any(ast.unparse(one) in names for one in _operands(value_of(node)))

    def _numbers(self, made: Operation) -> None:
        """The sides of a sum that no tensor goes into: names that hold numbers."""
        node = expression_of(self.record, made)
        if not isinstance(node, ast.BinOp):
            return
        site = site_of(self.record, made.statement)
        known = operations_by_number(self.record)
        inner = [expression_of(self.record, known[one]) for one in made.inner if one in known]
        for side in (node.left, node.right):
            if any(one is side for one in inner) or not _reads_a_name(side):
                continue
            if self._is_number(made, side) or not any(
                _holds_tensor(self.record, one, site.function) for one in ast.walk(side)
            ):
                self.found.append(self._term((side,), site.source, site.site, None, None, is_tracked=False))

    def _is_number(self, made: Operation, side: ast.expr) -> bool:
        """One tensor went into the sum, all that went in is known, and it goes by no name of this side."""
        if not made.complete or len(made.operands) + len(made.inner) != 1 or made.inner:
            return False
        names = {row.name for row in lookup(self.record).bindings_of[made.operands[0]]}
        return bool(names) and not any(
            isinstance(one, ast.Name | ast.Attribute | ast.Subscript) and ast.unparse(one) in names
            for one in ast.walk(side)
        )

    def _add(self, tensor: int | None, made: Operation | None, *, is_tracked: bool) -> None:
        """One more term, where the source shows what made it."""
        dtype = lookup(self.record).tensors[tensor].dtype if tensor is not None else made.dtype if made else ""
        if dtype and not dtype.startswith(("float", "bfloat")):
            return
        nodes: list[ast.expr] = []
        site: int | None = None
        if made is not None:
            node, site = expression_of(self.record, made), made.statement
            nodes += [] if node is None else [node]
        elif tensor is not None and lookup(self.record).bindings_of[tensor]:
            site = lookup(self.record).bindings_of[tensor][0].site
            node = value_of(statement(self.record, site_of(self.record, site)))
            nodes += [] if node is None else [node]
        for row in lookup(self.record).inplace_of[tensor] if tensor is not None else ():
            node = None if row.site is None else value_of(statement(self.record, site_of(self.record, row.site)))
            nodes += [] if node is None or node in nodes else [node]
        if nodes and site is not None:
            source = site_of(self.record, site).source
            self.found.append(self._term(tuple(nodes), source, site, tensor, made, is_tracked=is_tracked))

    def _term(
        self,
        nodes: tuple[ast.expr, ...],
        source: int,
        site: int,
        tensor: int | None,
        made: Operation | None,
        *,
        is_tracked: bool,
    ) -> Term:
        return Term(
            nodes=nodes, source=source, site=site, tensor=tensor, operation=made, is_tracked=is_tracked, call=self.call,
            beside=frozenset(),
        )  # fmt: skip


def _is_sum(node: ast.stmt | None) -> bool:
    return isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub)


def _operands(value: ast.expr | None) -> Iterator[ast.Name | ast.Attribute]:
    """The names that operators alone lead to."""
    if isinstance(value, ast.BinOp):
        yield from _operands(value.left)
        yield from _operands(value.right)
    elif isinstance(value, ast.UnaryOp):
        yield from _operands(value.operand)
    elif isinstance(value, ast.Name | ast.Attribute):
        yield value


def _reads_a_name(node: ast.expr) -> bool:
    return any(isinstance(one, ast.Name) for one in ast.walk(node))


def _holds_tensor(record: Record, node: ast.AST, function: str) -> bool:
    """A name, or what is read of it, held a tensor at some time."""
    if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        return False
    rows = bindings_named(record)[ast.unparse(node)]
    return any(row.function in (function, "<module>") for row in rows)
