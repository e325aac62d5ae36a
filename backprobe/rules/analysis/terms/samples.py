"""Samples that cut the way to a distribution's parameters, while other terms of the loss train them.

A continuous `sample()` that goes on as a value through a module or a matrix product into what is walked back: the
gradient stops at it. Not: samples whose `log_prob` weighs a reward (the score function), and those of a distribution
that is fitted by the `log_prob` of data.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import Break, breaks, calls_of
from backprobe.rules.analysis.graph.walks import node_of, walked
from backprobe.rules.analysis.modules.parameter_uses import program_of
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.source.data_flow_steps import Arrival
from backprobe.rules.analysis.source.expression_places import expression_of, operations_of
from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.analysis.terms.partial_cuts import cut_at, partial_cuts, stepped_after, ways_from
from backprobe.rules.analysis.terms.terms import PRODUCTS, SUMS
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, Record

WITHOUT_RSAMPLE: Final = frozenset(
    {
        "Bernoulli",
        "Binomial",
        "Categorical",
        "Geometric",
        "Multinomial",
        "NegativeBinomial",
        "OneHotCategorical",
        "Poisson",
    }
)
"""Distributions over discrete values: they have no `rsample()`."""

_THROUGH: Final = frozenset({"@", "matmul", "mm", "bmm", "linear", "addmm", "einsum"})
"""Functions other than modules through which a value goes on to be learned from."""

_MOST: Final = 200
"""Operations that one sample is followed through."""

LEAST: Final = 2
"""Samples drawn there: once may be a start value."""


@table
def drawn_cuts(record: Record) -> tuple[Break, ...]:
    """The calls of `sample()` that gradients should have come through, in order."""
    found: dict[ast.expr, Break] = {}
    if not any(row.function.endswith(".sample") for row in record.watched_calls):
        return ()
    told = {one.ending.node for one in (*breaks(record), *partial_cuts(record))}
    for site in dict.fromkeys(call.site for call in record.backward_calls if call.accumulate_grad):
        calls = [call for call in record.backward_calls if call.site == site and call.outcome == "finished"]
        for node, way in _samples(record, calls):
            if node in told or node in found or _is_unrecorded(record, way) or _is_fitted(record, node):
                continue
            if _is_value(record, node, calls):
                one = cut_at(record, way, calls, stepped_after(record, calls))
                found |= {} if one is None else {node: one}
    return tuple(found.values())


def _samples(record: Record, calls: list[BackwardCall]) -> Iterator[tuple[ast.expr, Arrival]]:
    """The calls of `sample()` of continuous distributions on the ways from what is stepped to a root."""
    held = stepped_after(record, calls)
    for way in ways_from(record, held) if held else ():
        ending = way.step.ending
        if ending is None or ending.kind != "sample" or not any(_is_root(record, call, way) for call in calls):
            continue
        drawn = [row for row in operations_of(record, ending.node) if _is_continuous(record, row)]
        if len(drawn) >= LEAST:
            yield ending.node, way


def _is_root(record: Record, call: BackwardCall, way: Arrival) -> bool:
    return call in calls_of(record, way)


def _is_continuous(record: Record, drawn: Operation) -> bool:
    names = {
        row.function.split(".")[-2]
        for row in record.watched_calls
        if row.site == drawn.statement and row.function.endswith(".sample")
    }
    return bool(names) and not names & WITHOUT_RSAMPLE


def _is_unrecorded(record: Record, way: Arrival) -> bool:
    """It is drawn where gradients are off: no other way of drawing would bring one."""
    ending = way.step.ending
    tree = trees(record)[way.step.ended_in]
    above = (one for one in tree.ancestors(ending.node) if isinstance(one, ast.stmt)) if ending else iter(())
    around = next(above, None)
    return around is not None and program_of(record).grad_off(way.step.ended_in, around) is not None


def _is_value(record: Record, node: ast.expr, calls: list[BackwardCall]) -> bool:
    """What was drawn there goes on through a module or a product, and no reward weighs its probability.

    What is known to go into the losses of other backward calls alone does not count.
    """
    is_used = False
    for row in operations_of(record, node)[:LEAST]:
        seen: set[int] = set()
        waiting = [row]
        while waiting and len(seen) < _MOST:
            taken = waiting.pop()
            for one in takers(record, taken):
                name = one.function.rpartition(".")[2]
                if one.operation in seen:
                    continue
                seen.add(one.operation)
                if name == "log_prob" and _is_receiver(taken, one):
                    is_used = is_used or (one.requires_grad is True and _goes_into(record, one, calls))
                elif name == "log_prob":
                    if _is_weighed(record, one):
                        return False
                elif not one.requires_grad:
                    waiting.append(one)
                elif name in _THROUGH or expression_of(record, one) in called_modules(record):
                    is_used = is_used or _goes_into(record, one, calls)
    return is_used


def _is_receiver(taken: Operation, scored: Operation) -> bool:
    """`decode(z).log_prob(x)`: what was made of the sample is the distribution that data are scored by."""
    is_called_on = (taken.line, taken.col) == (scored.line, scored.col)
    return is_called_on and taken.operation in scored.inner and scored.function.startswith(".")


def _goes_into(record: Record, made: Operation, calls: list[BackwardCall]) -> bool:
    """A result goes into the root of one of these backward calls, or into none that is known."""
    roots = {root.tensor: call.site for call in record.backward_calls for root in call.roots}
    sites, seen, waiting = set[int | None](), {made.operation}, [made]
    while waiting and len(seen) < _MOST:
        row = waiting.pop()
        if row.tensor is not None and row.tensor in roots:
            sites.add(roots[row.tensor])
        further = [one for one in takers(record, row) if one.operation not in seen and one.requires_grad is not False]
        seen.update(one.operation for one in further)
        waiting += further
    if not sites:  # a result that no backward call walks is looked at only
        return made.tensor is None or node_of(record, made.tensor) in walked(record)
    return any(call.site in sites for call in calls)


def _is_weighed(record: Record, scored: Operation) -> bool:
    """A `log_prob` is multiplied by a tensor further on, or goes into a list, behind which it is not followed."""
    waiting, seen = [scored], set[int]()
    while waiting and len(seen) < _MOST:
        taken = waiting.pop()
        rows = takers(record, taken)
        if not rows and scored.requires_grad:
            return True
        for one in rows:
            name = one.function.rpartition(".")[2]
            if one.operation in seen:
                continue
            seen.add(one.operation)
            if name in PRODUCTS and len(one.operands) + len(one.inner) > 1:
                return True
            if name in SUMS or name in PRODUCTS or name == "exp":
                waiting.append(one)
    return False


def _is_fitted(record: Record, node: ast.expr) -> bool:
    """The distribution is also asked for the `log_prob` of something else than what was drawn."""
    receiver = _receiver(node)
    drawn = {row.tensor for row in operations_of(record, node)}
    return any(
        row.function.endswith("log_prob") and drawn.isdisjoint(row.operands) and row.requires_grad
        for other, rows in _scored(record).items()
        if receiver and _receiver(other) == receiver
        for row in rows
    )


def _receiver(node: ast.expr) -> str:
    return ast.unparse(node.func.value) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


@table
def _scored(record: Record) -> dict[ast.expr, list[Operation]]:
    found: defaultdict[ast.expr, list[Operation]] = defaultdict(list)
    for row in record.operations:
        node = expression_of(record, row) if row.function.endswith("log_prob") else None
        if node is not None:
            found[node].append(row)
    return dict(found)


def takers(record: Record, made: Operation) -> list[Operation]:
    """The operations that a result went into."""
    by_tensor, by_operation = _users(record)
    of_tensor = by_tensor.get(made.tensor, []) if made.tensor is not None else []
    return [*of_tensor, *by_operation.get(made.operation, [])]


@table
def _users(record: Record) -> tuple[dict[int, list[Operation]], dict[int, list[Operation]]]:
    """The operations that took each tensor, and those that took what each operation gave."""
    by_tensor: defaultdict[int, list[Operation]] = defaultdict(list)
    by_operation: defaultdict[int, list[Operation]] = defaultdict(list)
    for row in record.operations:
        for one in row.operands:
            by_tensor[one].append(row)
        for one in row.inner:
            by_operation[one].append(row)
    return dict(by_tensor), dict(by_operation)
