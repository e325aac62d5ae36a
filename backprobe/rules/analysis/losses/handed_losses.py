"""The roots that the program does not walk itself: its function returns a loss to a library, which does.

    def training_step(self, batch, at):
        return self.loss(batch)        # handed to Lightning
    trainer.fit(model, data)           # the backward call is recorded at this statement

The record tells which function: the one that called the modules whose nodes the backward call met, outside of every
module that the program calls itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.parameter_uses import program_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.data_flow import Step, arrivals
from backprobe.rules.analysis.source.data_flow_steps import Arrival
from backprobe.rules.analysis.source.scopes import Function, names, scope_of
from backprobe.rules.analysis.source.syntax import is_same_statement, parts_of, site_of, statement_at, tree_of
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, ModuleCall, Record

_FURTHEST = 5
"""Functions from one that called a module to the one that a library called."""

_LOSS = "loss"
"""What training loops of libraries call the loss in a dict or an object that holds more."""


@table
def handed_roots(record: Record) -> dict[ast.expr, tuple[BackwardCall, ...]]:
    """The values that functions return to a library, each with the backward calls that walk them."""
    by_site: dict[int, list[BackwardCall]] = {}
    for call in record.backward_calls:
        if call.site is not None and call.accumulate_grad and not _walks_itself(record, call.site):
            by_site.setdefault(call.site, []).append(call)
    found: dict[ast.expr, tuple[BackwardCall, ...]] = {}
    for site, calls in by_site.items():
        function = _handed_over(record, site, calls)
        for node in [] if function is None else _returns(function):
            found[_loss_of(node)] = tuple(calls)
    return found


def ways_to_roots(record: Record, starts: Iterable[Step]) -> list[Arrival]:
    """Every way of a value to a backward call, of the program or of the library that a function returns it to."""
    return arrivals(program_of(record), starts, frozenset(handed_roots(record)))


def _walks_itself(record: Record, site: int) -> bool:
    """The statement says that it walks something: `loss.backward()`, `accelerator.backward(loss)`, `autograd.grad`."""
    texts = (getattr(part, "attr", getattr(part, "id", "")) for part in parts_of(statement_at(record, site)))
    return any("backward" in text or text == "grad" for text in texts)


def _handed_over(record: Record, site: int, calls: list[BackwardCall]) -> Function | None:
    """The function that ran the modules whose nodes a call met, as far out as the program calls it."""
    index = lookup(record)
    for call in calls:
        met = {index.nodes[node].seq for node in reaches(record)[call.call].met if node in index.nodes}
        for row in reversed(record.module_calls):
            if row.site is None or row.hi <= row.lo or met.isdisjoint(range(row.lo, row.hi)):
                continue
            return _outermost(record, _own_statement(record, row, site))
    return None


def _own_statement(record: Record, call: ModuleCall, site: int) -> int | None:
    """The outermost statement that called a module around this one, inside of the one that called the library."""
    index, found = {row.module_call: row for row in record.module_calls}, call.site
    above = call.parent
    while above is not None and above in index:
        row = index[above]
        if row.site is not None and not is_same_statement(record, row.site, site):
            found = row.site
        above = row.parent
    return None if is_same_statement(record, found, site) else found


def _outermost(record: Record, number: int | None) -> Function | None:
    """The function around a statement; that which calls it, as long as the program calls it by name somewhere."""
    tree = None if number is None else tree_of(record, site_of(record, number))
    node = statement_at(record, number)
    if tree is None or node is None:
        return None
    function = scope_of(tree, node)
    for _ in range(_FURTHEST):
        if not isinstance(function, Function):
            return None
        callers = [(file.tree, part) for file in names(record).values() for part in file.calls.get(function.name, ())]
        if not callers:
            return function
        tree, part = callers[0]
        function = scope_of(tree, part)
    return None


def _returns(function: Function) -> list[ast.expr]:
    """The values that a function returns, without those of functions in it."""
    found: list[ast.expr] = []
    waiting: list[ast.AST] = [*function.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            found.append(node.value)
        elif not isinstance(node, Function | ast.Lambda | ast.ClassDef):
            waiting += ast.iter_child_nodes(node)
    return found


def _loss_of(value: ast.expr) -> ast.expr:
    """Of a dict, an object or a tuple that is returned the part that is walked; else the value."""
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        return next((part for key, part in pairs if isinstance(key, ast.Constant) and key.value == _LOSS), value)
    if isinstance(value, ast.Call):
        return next((given.value for given in value.keywords if given.arg == _LOSS), value)
    return value.elts[0] if isinstance(value, ast.Tuple) and value.elts else value
