"""Terms of a loss that lost their history while its other terms train: where, and whom the term would have trained.

1. The record says that the term brings no gradient to what is stepped next. The source only says at which expression
   the way from what is stepped into the term ends.
2. No finding: `x - x.detach()`, what has a gradient of its own (a baseline, another loss that is shown too), factors,
   targets, and what only another optimizer trains.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.breaks import Break, breaks, site_around, steps_after
from backprobe.rules.analysis.graph.walks import node_of, walked
from backprobe.rules.analysis.modules.parameter_uses import program_of, uses_of
from backprobe.rules.analysis.modules.training_modes import called_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.data_flow import arrivals
from backprobe.rules.analysis.source.data_flow_steps import Arrival, Step
from backprobe.rules.analysis.source.expression_places import expression_of, given_to, operations_of
from backprobe.rules.analysis.source.syntax import statement_at
from backprobe.rules.analysis.tensors.parents import operations_by_number
from backprobe.rules.analysis.terms.cut_inputs import blame_order, is_cut
from backprobe.rules.analysis.terms.recorded_cuts import recorded_cut
from backprobe.rules.analysis.terms.term_sources import linear_sources, may_have_had_history, takes_tracked, trained_by
from backprobe.rules.analysis.terms.terms import Term, terms
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Operation, OptimizerEvent, Record

LEAST: Final = 2
"""Backward calls whose root has the term: once may be a start value."""
_EXTREMES: Final = frozenset({"max", "min", "amax", "amin"})


@table
def partial_cuts(record: Record) -> tuple[Break, ...]:
    """The terms that were cut off from what the next step trains, each with its place, in order."""
    told = {one.ending.node for one in breaks(record)}
    found: dict[ast.expr, Break] = {}
    for rows in terms_by_place(record):
        one = _cut(record, rows)
        if one is not None and one.ending.node not in told:
            found.setdefault(one.ending.node, one)
    return tuple(sorted(found.values(), key=lambda one: (one.moment, one.site)))


@table
def terms_by_place(record: Record) -> list[list[Term]]:
    """The terms of several roots that one expression made."""
    grouped: defaultdict[tuple[ast.expr, ...], list[Term]] = defaultdict(list)
    for one in terms(record):
        grouped[one.nodes].append(one)
    return [rows for rows in grouped.values() if len(rows) >= LEAST]


def untrained_terms(record: Record) -> Iterator[list[Term]]:
    """Terms without a history that nothing leads to which the next step changes, in the source or in the run."""
    for rows in terms_by_place(record):
        if any(one.is_tracked or one.tensor is None or is_meant(record, one) for one in rows):
            continue
        held = stepped_after(record, [row.call for row in rows])
        if held and not any(way.root in rows[0].nodes for way in _into_terms(record, held)):
            yield rows


def _cut(record: Record, rows: list[Term]) -> Break | None:
    """Where the terms of one expression were cut off; None if they train something, or are right as they are."""
    held = stepped_after(record, [one.call for one in rows])
    if not held or any(_trains(record, one, held) or is_meant(record, one) for one in rows):
        return None
    ways = [one for one in _into_terms(record, held) if one.root in rows[0].nodes]
    ended = [one for one in (_ended(record, way) for way in ways) if one is not None and is_cut(record, one)]
    if rows[0].tensor is None and rows[0].operation is None:  # a number: what was detached is still a tensor
        if _is_start(record, rows[0]):
            return None
        ended = [one for one in ended if one.step.ending is None or one.step.ending.kind != "detach"]
        if not ended:
            return None
    if not ended:
        hidden = None if ways else recorded_cut(record, rows, held)
        return None if hidden is None else _of_term(record, hidden, rows)
    if any(_has_own_gradient(record, one, rows[0]) for one in ended):
        return None
    best = min(ended, key=lambda way: blame_order(record, way, rows[0]))
    one = cut_at(record, best, [row.call for row in rows], held)
    if one is None:
        return None
    every = [way.step.ending for way in ended if way.step.ending is not None]
    others = {way.node: way for way in every if way.kind == one.kind and way.node is not one.ending.node}
    of_parameters = not any(way.step.origin in called_modules(record) for way in ended)
    return _of_term(record, replace(one, others=tuple(others.values()), of_parameters=of_parameters), rows)


def _is_start(record: Record, number: Term) -> bool:
    """A sum starts from it: `loss` of `loss = loss + term`, which is a tensor from the second turn on."""
    stmt = statement_at(record, number.site)
    targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target] if isinstance(stmt, ast.AugAssign) else []
    written = {ast.unparse(target) for target in targets}
    return any(ast.unparse(node) in written for node in number.nodes)


def _of_term(record: Record, one: Break, rows: list[Term]) -> Break:
    tensors = tuple(row.tensor for row in rows if row.tensor is not None)
    return replace(one, term=_name(record, rows[0]), tensors=tensors, made=rows[0].site)


def stepped_after(record: Record, calls: Iterable[BackwardCall]) -> frozenset[int]:
    """The leaves whose optimizer steps next after the calls, with these gradients."""
    stepped = {
        optimizer
        for call in calls
        for optimizer in steps_after(record, call)
        if not cleared_first(record, optimizer, call)
    }
    return frozenset(leaf for leaf, optimizers in in_optimizers(record).items() if stepped.intersection(optimizers))


def cleared_first(record: Record, optimizer: int, call: BackwardCall) -> bool:
    """The optimizer clears the gradients of a backward call before it steps, or never steps after it."""
    rows = _events(record).get(optimizer, ())
    kind = next((row.kind for row in rows if row.moment > call.moment_before), "zero_grad")
    return kind == "zero_grad"


@table
def _events(record: Record) -> dict[int, list[OptimizerEvent]]:
    """Steps and clearings of each optimizer, in order."""
    found: defaultdict[int, list[OptimizerEvent]] = defaultdict(list)
    for row in record.optimizer_events:
        if row.optimizer is not None and row.kind in ("step", "zero_grad"):
            found[row.optimizer].append(row)
    return dict(found)


def _trains(record: Record, term: Term, held: frozenset[int]) -> bool:
    """The term leads to something that is stepped, or that is not known."""
    if not term.is_tracked:
        return False
    leaves = trained_by(record, term.operation if term.tensor is None else term.tensor)
    return not leaves or not leaves.isdisjoint(held | _used_later(record, term, leaves))


def _used_later(record: Record, term: Term, leaves: frozenset[int]) -> set[int]:
    """Of these leaves those whose optimizer steps with the gradient of this call at some time, or which have none."""
    held = in_optimizers(record)
    return {
        leaf
        for leaf in leaves
        if leaf not in held or any(not cleared_first(record, optimizer, term.call) for optimizer in held[leaf])
    }


def is_meant(record: Record, term: Term) -> bool:
    """A tensor that was added as it is, and has a gradient of its own, is a summand too, or is taken away elsewhere.

    As it is: nothing else that trains went into the term through an exponential or a square, as into a divergence.
    """
    if term.is_tracked:
        return False
    sources, passed, bent = linear_sources(record, term)
    if any(one in term.beside for one in sources):
        return True
    if any(one.function.rpartition(".")[2] in _EXTREMES and term.beside.intersection(one.operands) for one in bent):
        return True  # `x - x.max().detach()`: a shift by the greatest element, as before an exponential
    if any(node_of(record, one) in walked(record) for one in sources) and not any(
        takes_tracked(record, one) for one in bent
    ):
        return True
    return any(len(_tracked_users(record).get(one, ())) > 1 and may_have_had_history(record, one) for one in passed)


@table
def _tracked_users(record: Record) -> dict[int, set[ast.expr]]:
    """The expressions with a history that a tensor goes into: `top` of `(x - top).exp().sum().log() + top`."""
    found: defaultdict[int, set[ast.expr]] = defaultdict(set)
    for row in record.operations:
        node = expression_of(record, row) if row.requires_grad else None
        for one in _taken(record, row) if node is not None else ():
            found[one] |= set() if node is None else {node}
    return dict(found)


def _taken(record: Record, row: Operation) -> set[int]:
    """The tensors that go into an operation, also through others that gave it something without a history."""
    known, found, waiting = operations_by_number(record), set[int](), [row]
    while waiting:
        one = waiting.pop()
        found |= set(one.operands)
        waiting += [known[inner] for inner in one.inner if inner in known and not known[inner].requires_grad]
    return found


def _has_own_gradient(record: Record, way: Arrival, term: Term) -> bool:
    """The number that the way ends with was taken of a scalar that a backward call walked: a loss that is kept."""
    ending = way.step.ending
    if term.tensor is not None or term.operation is not None or ending is None:
        return False
    for row in operations_of(record, ending.node):
        for one in row.operands:
            if lookup(record).tensors[one].shape == () and node_of(record, one) in walked(record):
                return True
    return False


def ways_from(record: Record, held: frozenset[int], stops: frozenset[ast.expr] = frozenset()) -> list[Arrival]:
    """The ways of what leaves give to the roots of backward calls, and to the stops."""
    starts: dict[tuple[ast.expr, ast.AST | None], Step] = {}
    for leaf in sorted(held):
        for step in _uses(record, leaf):
            starts.setdefault((step.part, step.ending.node if step.ending else None), step)
    return arrivals(program_of(record), starts.values(), stops)


def _into_terms(record: Record, held: frozenset[int]) -> list[Arrival]:
    """The ways of what these leaves give to the terms of the roots."""
    known = _walks(record)
    if held not in known:
        stops = frozenset(node for rows in terms_by_place(record) for one in rows for node in one.nodes)
        known[held] = [one for one in ways_from(record, held, stops) if one.root in stops]
    return known[held]


@table
def _walks(_record: Record) -> dict[frozenset[int], list[Arrival]]:
    """By leaves, filled as they are asked for."""
    return {}


def _uses(record: Record, leaf: int) -> list[Step]:
    """The expressions that a leaf goes into, with those that it is handed to without a name of its own."""
    return [*(step for step, _moment in uses_of(record, leaf)), *_unnamed(record).get(leaf, ())]


@table
def _unnamed(record: Record) -> dict[int, list[Step]]:
    """What stands in the operations that took a leaf: `p` of `sum(p.abs().sum() for p in net.parameters())`."""
    found: defaultdict[int, dict[ast.expr, Step]] = defaultdict(dict)
    held = in_optimizers(record)
    for row in record.operations:
        node = expression_of(record, row) if any(one in held for one in row.operands) else None
        for part in () if node is None else given_to(node):
            step = Step(part=part, source=lookup(record).sites[row.statement].source, origin=part)
            for one in row.operands:
                found[one].setdefault(part, step)
    return {leaf: list(steps.values()) for leaf, steps in found.items() if leaf in held}


def _ended(record: Record, way: Arrival) -> Arrival | None:
    """The way with its ending: where none was met, the statement that made the term may have run without gradients."""
    if way.step.ending is not None:
        return way
    program = program_of(record)
    tree = program.names[way.source].tree
    around = next((above for above in tree.ancestors(way.root) if isinstance(above, ast.stmt)), None)
    off = None if around is None else program.grad_off(way.source, around)
    if off is None:
        return None
    step = Step(part=way.step.part, source=way.step.source, ending=off, ended_in=way.source, origin=way.step.origin)
    return Arrival(root=way.root, source=way.source, step=step)


def cut_at(record: Record, way: Arrival, calls: Sequence[BackwardCall], held: Iterable[int]) -> Break | None:
    """The cut at the ending of a way, for these backward calls; None where it stands at no statement that ran."""
    ending = way.step.ending
    site = None if ending is None else site_around(record, way.step.ended_in, ending.node)
    if ending is None or site is None or statement_at(record, calls[0].site) is None:
        return None
    origin = way.step.origin
    leaves = [leaf for leaf in sorted(held) if any(step.origin is origin for step in _uses(record, leaf))]
    return Break(
        ending=ending,
        source=way.step.ended_in,
        others=(),
        lost="" if origin is None else ast.unparse(origin),
        site=site,
        leaves=tuple(leaves),
        root=calls[0].site,
        calls=tuple(one.call for one in calls),
        raised=None,
        moment=min(one.moment_before for one in calls),
        is_partial=True,
    )


def _name(record: Record, term: Term) -> str:
    """What the program calls the term, before it is walked back."""
    bound = lookup(record).bindings_of[term.tensor] if term.tensor is not None else []
    bound = [row for row in bound if row.moment <= term.call.moment_before]
    return bound[-1].name if bound else " ".join(ast.unparse(term.nodes[0]).split())[:60]
