"""The autograd nodes of a run by page, one in full, and what a backward call did at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.session import Transaction
from store.queries.graph.graph_answers import EdgeRow, NodeRow
from store.queries.graph.graph_rows import node_rows
from store.queries.tensors.snapshots import statistics_row
from store.queries.tensors.tensor_answers import StatisticsRow
from store.queries.tensors.tensor_filter import same_key
from store.records.reader import at_key, statistics_of
from store.runs.model import RunKey, RunRow

LISTED: Final = 1000
"""Edges, saved tensors and passes listed of one node."""

NOT_RUN: Final = 2**31 - 1
"""Sorts what a walk met and did not run behind what ran."""

_n: Final = tables.node
_s: Final = tables.site
_p: Final = tables.node_pass
_e: Final = tables.edge


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePage:
    """Some nodes in order of their number; `next`: the `after` of the next page, None at the end."""

    items: tuple[NodeRow, ...]
    next: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassRow:
    """One node in one backward call.

    Attributes:
        output_nr: Which forward output the gradient belongs to.
        position: Order of execution; None: reached by the walk, not run. hole: no gradient arrived.
        freed: This call freed what it saved. grad_output: the gradient that arrived; None: not measured.
    """

    call: int
    node: int
    type: str
    output_nr: int
    position: int | None
    freed: bool
    hole: bool
    grad_output: StatisticsRow | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PassPage:
    """Some passes in order of execution; `next`: the `after` of the next page, None at the end."""

    items: tuple[PassRow, ...]
    next: tuple[int, int, int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRow:
    """A tensor that a node holds for backward.

    Attributes:
        tensor: None: not one that the record knows. size_bytes: None: a hook's object is held instead.
        version: At the birth of the node; None: not known. held_by: plain, or the class of that object.
    """

    n: int
    name: str
    tensor: int | None
    size_bytes: int | None
    shape: tuple[int, ...]
    dtype: str
    version: int | None
    proof: str
    held_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFull:
    """One node in full.

    Attributes:
        proof: How its line is known: seen, range, source, unknown. module_call: the call chain open then, `h.3.attn#0`.
        custom_path, custom_line: Where the user's autograd.Function is defined.
        next: Its edges, towards the leaves. previous: edges that lead to it. passes: by backward call.
    """

    node: NodeRow
    proof: str
    module_call: str | None
    born_call: int | None
    custom_path: str | None
    custom_line: int | None
    next: tuple[EdgeRow, ...]
    previous: tuple[EdgeRow, ...]
    saved: tuple[SavedRow, ...]
    passes: tuple[PassRow, ...]


_SELECT: Final = (
    sa.select(_n, _s.c.path, _s.c.line).select_from(_n).outerjoin(_s, sa.and_(same_key(_s, _n), _s.c.site == _n.c.site))
)


def nodes(
    transaction: Transaction,
    run: RunRow,
    *,
    type: Sequence[str] = (),  # noqa: A002 - the API's word
    line: int | None = None,
    path: str | None = None,
    call: int | None = None,
    module_call: int | None = None,
    held: bool | None = None,
    after: int | None = None,
    limit: int = 100,
) -> NodePage:
    """Nodes in order of their number.

    Args:
        transaction: To read by.
        run: Whose.
        type: Any of these, `MulBackward0`; empty: all.
        line: Made there. path: in which file.
        path: See line.
        call: Met by this backward call.
        module_call: Made in this call of a module.
        held: Whether what it saved is still held; None: both.
        after: `NodePage.next` of the page before; None: the first page.
        limit: Nodes at most.
    """
    key = run.key
    if key is None:
        return NodePage(items=(), next=None)
    query = _SELECT.where(at_key(_n, key))
    if type:
        query = query.where(_n.c.type.in_(type))
    for column, value in ((_s.c.line, line), (_s.c.path, path), (_n.c.module_call, module_call)):
        if value is not None:
            query = query.where(column == value)
    if call is not None:
        query = query.where(_n.c.node.in_(sa.select(_p.c.node).where(at_key(_p, key), _p.c.call == call)))
    if held is not None:
        still = sa.and_(_n.c.saved_bytes > 0, _n.c.freed_by.is_(None), _n.c.died.is_(None))
        query = query.where(still if held else sa.not_(still))
    if after is not None:
        query = query.where(_n.c.node > after)
    rows = transaction.execute(query.order_by(_n.c.node).limit(limit + 1)).all()
    items = node_rows(transaction, key, rows[:limit])
    return NodePage(items=items, next=items[-1].node if len(rows) > limit else None)


def node(transaction: Transaction, run: RunRow, number: int) -> NodeFull | None:
    """One node with its edges, what it saved and its passes; None: no such node."""
    key = run.key
    if key is None:
        return None
    row = transaction.execute(_SELECT.where(at_key(_n, key), _n.c.node == number)).first()
    if row is None:
        return None
    custom, m = tables.site, tables.module_call
    there = sa.select(custom.c.path, custom.c.line).where(at_key(custom, key), custom.c.site == row.custom_site)
    place: Any = transaction.execute(there).first()
    chain = sa.select(m.c.chain).where(at_key(m, key), m.c.module_call == row.module_call)
    return NodeFull(
        node=node_rows(transaction, key, [row])[0],
        proof=row.proof,
        module_call=transaction.execute(chain).scalar(),
        born_call=row.born_call,
        custom_path=None if place is None else place.path,
        custom_line=None if place is None else place.line,
        next=_edges(transaction, key, _e.c.node == number),
        previous=_edges(transaction, key, _e.c.to_node == number),
        saved=_load_saved_rows(transaction, key, number),
        passes=_passes(transaction, key, _p.c.node == number, LISTED),
    )


def passes(
    transaction: Transaction,
    run: RunRow,
    call: int,
    *,
    after: tuple[int, int, int] | None = None,
    limit: int = 100,
) -> PassPage:
    """List what a backward call did at each node, in order of execution; nodes that it did not run come last."""
    if run.key is None:
        return PassPage(items=(), next=None)
    wanted = _p.c.call == call
    if after is not None:
        wanted = sa.and_(wanted, sa.tuple_(_PLACE, _p.c.node, _p.c.output_nr) > sa.tuple_(*after))
    found = _passes(transaction, run.key, wanted, limit + 1)
    if len(found) <= limit:
        return PassPage(items=found, next=None)
    last = found[limit - 1]
    place = NOT_RUN if last.position is None else last.position
    return PassPage(items=found[:limit], next=(place, last.node, last.output_nr))


_PLACE: Final = sa.func.coalesce(_p.c.position, NOT_RUN)


def _edges(transaction: Transaction, key: RunKey, wanted: sa.ColumnElement[bool]) -> tuple[EdgeRow, ...]:
    query = sa.select(_e).where(at_key(_e, key), wanted).order_by(_e.c.node, _e.c.slot).limit(LISTED)
    return tuple(
        EdgeRow(node=row.node, slot=row.slot, to_node=row.to_node, input_nr=row.input_nr)
        for row in transaction.execute(query)
    )


def _load_saved_rows(transaction: Transaction, key: RunKey, number: int) -> tuple[SavedRow, ...]:
    s = tables.saved
    names = [name for name in SavedRow.__slots__ if name != "shape"]
    query = sa.select(s).where(at_key(s, key), s.c.node == number).order_by(s.c.n).limit(LISTED)
    return tuple(
        SavedRow(shape=tuple(row.shape), **{name: getattr(row, name) for name in names})
        for row in transaction.execute(query)
    )


def _passes(transaction: Transaction, key: RunKey, wanted: sa.ColumnElement[bool], limit: int) -> tuple[PassRow, ...]:
    query = (
        sa.select(_p, _n.c.type)
        .join_from(_p, _n, sa.and_(same_key(_n, _p), _n.c.node == _p.c.node))
        .where(at_key(_p, key), wanted)
        .order_by(_p.c.call, _PLACE, _p.c.node, _p.c.output_nr)
        .limit(limit)
    )
    return tuple(
        PassRow(
            call=row.call,
            node=row.node,
            type=row.type,
            output_nr=row.output_nr,
            position=row.position,
            freed=row.freed,
            hole=row.hole,
            grad_output=_statistics(row),
        )
        for row in transaction.execute(query)
    )


def _statistics(row: Any) -> StatisticsRow | None:
    return statistics_row(statistics_of(row._mapping))  # noqa: SLF001 - the documented way to columns by name
