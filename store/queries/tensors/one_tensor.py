"""One tensor in full: its names, snapshots, changes in place, what saved it, its elements, what it kept alive."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from backprobe.record import SmallValue, nest_elements
from store import tables
from store.database.session import Transaction
from store.queries.tensors.snapshots import tensor_snapshots
from store.queries.tensors.tensor_answers import (
    ArrivedRow,
    BindingRow,
    HolderRow,
    InplaceRow,
    SavedByRow,
    SmallValueRow,
    TensorFull,
)
from store.queries.tensors.tensor_filter import same_key
from store.queries.tensors.tensor_pages import SELECT_TENSORS, tensor_rows
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

LISTED: Final = 1000
"""Rows of one kind in the answer."""

_t: Final = tables.tensor
_s: Final = tables.site
_b: Final = tables.binding


def tensor(transaction: Transaction, run: RunRow, number: int) -> TensorFull | None:
    """One tensor with its names, snapshots, in-place changes, savers, values and holders; None: no such tensor."""
    key = run.key
    if key is None:
        return None
    row = transaction.execute(SELECT_TENSORS.where(at_key(_t, key), _t.c.tensor == number)).first()
    if row is None:
        return None
    return TensorFull(
        tensor=tensor_rows(transaction, run, [row])[0],
        bindings=_bindings(transaction, key, number),
        snapshots=tensor_snapshots(transaction, run, number, limit=LISTED),
        inplace_events=_inplace_events(transaction, key, number),
        saved_by=_saved_by(transaction, key, number),
        values=_values(transaction, key, number),
        holders=_holders(transaction, key, number),
        arrived=_load_arrived_rows(transaction, key, number),
    )


def _bindings(transaction: Transaction, key: RunKey, number: int) -> tuple[BindingRow, ...]:
    query = (
        sa.select(_b, _s.c.path, _s.c.line)
        .join_from(_b, _s, sa.and_(same_key(_s, _b), _s.c.site == _b.c.site))
        .where(at_key(_b, key), _b.c.tensor == number)
    )
    return tuple(
        BindingRow(
            binding=row.binding,
            name=row.name,
            path=row.path,
            line=row.line,
            function=row.function,
            moment=row.moment,
            version=row.version,
            replaces=row.replaces,
            parents=tuple(row.parents),
        )
        for row in transaction.execute(query.order_by(_b.c.binding).limit(LISTED))
    )


def _inplace_events(transaction: Transaction, key: RunKey, number: int) -> tuple[InplaceRow, ...]:
    e = tables.inplace_event
    query = (
        sa.select(e, _s.c.path, _s.c.line)
        .select_from(e)
        .outerjoin(_s, sa.and_(same_key(_s, e), _s.c.site == e.c.site))
        .where(at_key(e, key), e.c.tensor == number)
    )
    return tuple(
        InplaceRow(
            moment=row.moment,
            line=row.line,
            path=row.path,
            version_before=row.version_before,
            version_after=row.version_after,
            done_by=row.done_by,
        )
        for row in transaction.execute(query.order_by(e.c.n).limit(LISTED))
    )


def _saved_by(transaction: Transaction, key: RunKey, number: int) -> tuple[SavedByRow, ...]:
    saved, node = tables.saved, tables.node
    query = (
        sa.select(saved, node.c.type, node.c.freed_by, _s.c.line)
        .join_from(saved, node, sa.and_(same_key(node, saved), node.c.node == saved.c.node))
        .outerjoin(_s, sa.and_(same_key(_s, node), _s.c.site == node.c.site))
        .where(at_key(saved, key), saved.c.tensor == number)
    )
    return tuple(
        SavedByRow(
            node=row.node,
            type=row.type,
            name=row.name,
            version=row.version,
            held_by=row.held_by,
            line=row.line,
            freed_by=row.freed_by,
        )
        for row in transaction.execute(query.order_by(saved.c.node, saved.c.n).limit(LISTED))
    )


def _values(transaction: Transaction, key: RunKey, number: int) -> tuple[SmallValueRow, ...]:
    v = tables.small_value
    query = sa.select(v).where(at_key(v, key), v.c.tensor == number).order_by(v.c.moment, v.c.of).limit(LISTED)
    found: list[SmallValueRow] = []
    for row in transaction.execute(query):
        shape = tuple(row.shape)
        kept = SmallValue(
            tensor=number, moment=row.moment, of=row.of, dtype=row.dtype, shape=shape, elements=row.elements
        )
        elements = _without_complex(nest_elements(kept))
        found.append(SmallValueRow(moment=row.moment, of=row.of, dtype=row.dtype, shape=shape, elements=elements))
    return tuple(found)


def _without_complex(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_complex(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return [value.real, value.imag] if isinstance(value, complex) else value


def _holders(transaction: Transaction, key: RunKey, number: int) -> tuple[HolderRow, ...]:
    kept = tables.retention
    query = sa.select(kept).where(at_key(kept, key), kept.c.root == number).order_by(kept.c.n).limit(LISTED)
    return tuple(
        HolderRow(
            moment=row.moment,
            backward_call=row.call,
            state=row.state,
            freed_by=row.freed_by,
            held_nodes=row.held_nodes,
            held_bytes=row.held_bytes,
            holders=tuple(row.holders),
            holder_search=row.holder_search,
            why=row.why,
        )
        for row in transaction.execute(query)
    )


def _load_arrived_rows(transaction: Transaction, key: RunKey, number: int) -> tuple[ArrivedRow, ...]:
    p = tables.node_pass
    made = transaction.execute(sa.select(_t.c.node, _t.c.output_nr).where(at_key(_t, key), _t.c.tensor == number)).one()
    if made.node is None:
        return ()
    query = sa.select(p.c.call, p.c.norm, p.c.nan, p.c.inf).where(
        at_key(p, key), p.c.node == made.node, p.c.output_nr == made.output_nr, p.c.counted.is_not(None)
    )
    return tuple(
        ArrivedRow(backward_call=row.call, norm=row.norm, nan=row.nan or 0, inf=row.inf or 0)
        for row in transaction.execute(query.order_by(p.c.call).limit(LISTED))
    )
