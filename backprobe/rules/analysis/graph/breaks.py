"""Where the history of what is trained was lost for the whole run: a total cut, its place, its kind, and whom it robs.

1. The record says that it was lost: a leaf that is wanted was used, and no backward call of the run ever reached it; or
   a root had no history at all. The source only says at which expression.
2. Only what reaches the root of a backward call counts; what is logged, counted or plotted cuts nothing.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.losses.handed_losses import handed_roots, ways_to_roots
from backprobe.rules.analysis.modules.parameter_uses import uses_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.break_syntax import KINDS, Ending, Kind
from backprobe.rules.analysis.source.data_flow_steps import Arrival, Step
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import is_same_statement, site_at, site_of, statement, trees
from backprobe.rules.analysis.tensors.autograd_errors import raised_as
from backprobe.rules.analysis.training.grad_modes import off_around_walk
from backprobe.rules.analysis.training.trained_parameters import (
    in_optimizers,
    never_reached,
    required_grad,
    trained,
    with_gradient,
)
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Raised, Record


_COMPARES: Final = frozenset({"cosine_similarity", "kl_div", "cross_entropy", "criterion", "pairwise_distance"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """One place at which the history of trained tensors ends for good.

    Attributes:
        ending: The expression. site: its statement; source: its file.
        others: Further expressions of that kind on the ways of the same value.
        lost: The expression whose history it was, as written.
        leaves: The trained tensors behind it that never got a gradient.
        root: The statement of the backward call that they should have been reached from; calls: those calls.
        raised: The exception with which that call ended, if nothing at all was left to walk.
        is_partial: Other ways to the leaves stay open; term: the name of the one term of the loss that was cut off, if
            it is a whole one; tensors: its values; made: the statement that made it.
        of_parameters: What was cut off are parameters themselves, not what modules made of them.
    """

    ending: Ending
    source: int
    others: tuple[Ending, ...]
    lost: str
    site: int
    leaves: tuple[int, ...]
    root: int | None
    calls: tuple[int, ...]
    raised: Raised | None
    moment: int
    is_partial: bool = False
    term: str = ""
    tensors: tuple[int, ...] = ()
    made: int | None = None
    of_parameters: bool = False

    @property
    def kind(self) -> Kind:
        """What kind of end it is."""
        return self.ending.kind


@table
def breaks(record: Record) -> tuple[Break, ...]:
    """The total cuts of a run, each with all leaves behind it, in order of the source."""
    found: dict[ast.expr, list[Break]] = {}
    for leaf in wanted(record):
        one = _break_of(record, leaf)
        if one is not None:
            found.setdefault(one.ending.node, []).append(one)
    merged = [_merged(rows) for rows in found.values()]
    return tuple(sorted(merged, key=lambda one: (one.moment, one.site)))


@table
def break_behind(record: Record) -> dict[int, Break]:
    """The total cut that each leaf went without a gradient for: the one that its finding is about, by leaf."""
    return {leaf: one for one in breaks(record) for leaf in one.leaves}


def _merged(rows: list[Break]) -> Break:
    first = min(rows, key=lambda one: one.moment)
    return replace(
        first,
        leaves=tuple(sorted({leaf for one in rows for leaf in one.leaves})),
        calls=tuple(sorted({call for one in rows for call in one.calls})),
        raised=next((one.raised for one in rows if one.raised is not None), None),
    )


@table
def wanted(record: Record) -> tuple[int, ...]:
    """Leaves that require grad, that the program means to train, and that no backward call of the run reached."""
    index = lookup(record)
    stepped = {row.optimizer for row in record.optimizer_events if row.kind == "step"}
    held = in_optimizers(record)
    failed = _failed(record)
    read = {row.tensor for row in record.grad_reads if row.was_none}
    wanted: list[int] = []
    for leaf in _untouched(record):
        history = index.snapshots_of[leaf]
        if not history or not history[-1].is_leaf or not required_grad(record, leaf):
            continue
        if failed is not None or leaf in read or any(one in stepped for one in held.get(leaf, ())):
            wanted.append(leaf)
    return tuple(wanted)


def _untouched(record: Record) -> list[int]:
    """What is trained and never got a gradient, and leaves that a program flagged itself."""
    index = lookup(record)
    got = with_gradient(record)
    flagged = (row.tensor for row in record.tensors if row.created_by == "user" and index.snapshots_of[row.tensor])
    return sorted({*never_reached(record), *(one for one in flagged if one not in got)})


def _failed(record: Record) -> Raised | None:
    """The exception that said that a root has no history, if one ended a backward call."""
    rows = [row for row in raised_as(record, "no-history") if off_around_walk(record, row, row.site) is None]
    return rows[0] if rows else None


def _break_of(record: Record, leaf: int) -> Break | None:
    """The cut on the leaf's way to a root that its optimizer steps on, else to any."""
    used = list(uses_of(record, leaf))
    ways = _for_its_step(record, leaf, _ways(record).of([step for step, _moment in used]))
    best = min(ways, key=lambda way: _order(record, way), default=None)
    if best is None or best.step.ending is None:
        return None
    site, root = (
        site_around(record, best.step.ended_in, best.step.ending.node),
        site_around(record, best.source, best.root),
    )
    walks = calls_of(record, best)
    if best.root in handed_roots(record):
        root = walks[0].site
    calls = tuple(call.call for call in walks)
    raised = next((row for row in raised_as(record, "no-history") if is_same_statement(record, row.site, root)), None)
    if raised is not None and off_around_walk(record, raised, raised.site) is not None:
        return None
    if site is None or (raised is None and (not calls or _is_flagged(record, calls, best.step.ending))):
        return None
    same = [
        one.step.ending for one in ways if one.step.ending is not None and one.step.ending.kind == best.step.ending.kind
    ]
    return Break(
        ending=best.step.ending,
        source=best.step.ended_in,
        others=tuple({one.node: one for one in same if one.node is not best.step.ending.node}.values()),
        lost="" if best.step.origin is None else ast.unparse(best.step.origin),
        site=site,
        leaves=(leaf,),
        root=root,
        calls=calls,
        raised=raised,
        moment=min((moment for _step, moment in used), default=0),
    )


class _Ways:
    """The ways from a set of expressions to roots on which a history ends: parameters of one module share them."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._known: dict[tuple[ast.AST | None, ...], list[Arrival]] = {}

    def of(self, starts: list[Step]) -> list[Arrival]:
        key = tuple(part for one in starts for part in (one.part, one.ending.node if one.ending else None))
        if key not in self._known:
            ways = ways_to_roots(self._record, starts)
            self._known[key] = [way for way in ways if way.step.ending is not None]
        return self._known[key]


@table
def _ways(record: Record) -> _Ways:
    return _Ways(record)


def _order(record: Record, way: Arrival) -> tuple[bool, int, bool, int]:
    """Of several `no_grad` the one in the function of the root: what comes from elsewhere may be data.

    A target that is detached is meant to be: where another cut is on a way too, that one is told.
    """
    ending = way.step.ending
    if ending is None:
        return False, 0, False, 0
    sites = site_around(record, way.step.ended_in, ending.node), site_around(record, way.source, way.root)
    functions = {None if one is None else site_of(record, one).function for one in sites}
    elsewhere = ending.kind == "no-grad" and len(functions) > 1
    return _is_target(record, way.step.ended_in, ending), KINDS.index(ending.kind), elsewhere, ending.node.lineno


def _is_target(record: Record, source: int, ending: Ending) -> bool:
    """`.detach()` of what a loss compares with something: an argument of `mse_loss`, a side of a difference."""
    if ending.kind != "detach" or not isinstance(ending.node, ast.Call):
        return False
    above = trees(record)[source].parents.get(ending.node)
    if isinstance(above, ast.keyword):
        above = trees(record)[source].parents.get(above)
    if isinstance(above, ast.Call):
        name = last_name(above.func).lower()
        return len(above.args) + len(above.keywords) > 1 and (name in _COMPARES or "loss" in name)
    return isinstance(above, ast.BinOp) and isinstance(above.op, ast.Sub)


def site_around(record: Record, source: int, node: ast.expr) -> int | None:
    """The site of the statement around an expression."""
    above: ast.AST = node
    tree = trees(record)[source]
    for above in tree.ancestors(node):
        if isinstance(above, ast.stmt):
            break
    row = site_at(record, above) if isinstance(above, ast.stmt) else None
    if row is not None:
        return row.site
    # a decorator, or a `with` of which nothing was written down itself: what runs under it begins after it
    behind = [one for one in record.sites if one.source == source and one.line > node.lineno and one.kind != "module"]
    return min(behind, key=lambda one: (one.line, one.end_line)).site if behind else None


def _is_flagged(record: Record, calls: tuple[int, ...], ending: Ending) -> bool:
    """An untracked root was flagged by hand, and its call reaches nothing that is trained: that is told as such."""
    index = lookup(record)
    if any(not reaches(record)[number].leaves.isdisjoint(trained(record)) for number in calls):
        return False
    if isinstance(ending.node, ast.Call) and keyword(ending.node, "requires_grad") is not None:
        return True
    for number in calls:
        for root in index.calls[number].roots:
            history = index.snapshots_of[root.tensor] if root.tensor is not None else []
            if history and history[-1].is_leaf and (not history[0].requires_grad or _calls_flag(record, root.tensor)):
                return True
    return False


def _calls_flag(record: Record, tensor: int | None) -> bool:
    site = lookup(record).tensors[tensor].site if tensor is not None else None
    node = statement(record, site_of(record, site)) if site is not None else None
    return any(
        isinstance(part, ast.Attribute) and part.attr == "requires_grad_"
        for part in (ast.walk(node) if node is not None else ())
    )


def _for_its_step(record: Record, leaf: int, ways: list[Arrival]) -> list[Arrival]:
    """Of several roots those that an optimizer of the leaf steps on."""
    held = set(in_optimizers(record).get(leaf, ()))
    own = [one for one in ways if held & _steps_of(record, one)]
    return own or ways


def _steps_of(record: Record, way: Arrival) -> set[int]:
    """The optimizers that step next after the backward calls of a root."""
    return {optimizer for call in calls_of(record, way) for optimizer in steps_after(record, call)}


def calls_of(record: Record, way: Arrival) -> tuple[BackwardCall, ...]:
    """The backward calls that walk a root, in the program or in the library that it is returned to."""
    handed = handed_roots(record).get(way.root)
    if handed is not None:
        return handed
    site = site_around(record, way.source, way.root)
    return tuple(call for call in record.backward_calls if is_same_statement(record, call.site, site))


def steps_after(record: Record, call: BackwardCall) -> set[int]:
    """The optimizers that step next after a backward call."""
    found: set[int] = set()
    starts = sorted(one.moment_before for one in record.backward_calls if one.moment_before > call.moment_before)
    steps = [row for row in record.optimizer_events if row.kind == "step" and row.moment > call.moment_before]
    for until in (*starts, None):
        found = {row.optimizer for row in steps if row.optimizer is not None and (until is None or row.moment <= until)}
        if found:
            break
    return found
