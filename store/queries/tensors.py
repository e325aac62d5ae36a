"""The tensors of a run: a page of them, or one in full."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.queries.tensor_answers import (
    GradState,
    TensorCreated,
    TensorPage,
    TensorRow,
    TensorState,
    WhyNoneRow,
)
from store.record_load import at_key
from store.run import RunKey, RunRow
from store.session import Transaction

_t: Final = tables.tensor
_s: Final = tables.site
_m: Final = tables.moment
_b: Final = tables.binding


def same_key(left: sa.Table, right: sa.Table) -> sa.ColumnElement[bool]:
    """Two record tables' rows belong to the same attempt."""
    return sa.and_(*[left.c[name] == right.c[name] for name in tables.KEY])


SELECT_TENSORS: Final = (
    sa.select(_t, _s.c.path, _m.c.kind.label("last_kind"))
    .select_from(_t)
    .outerjoin(_s, sa.and_(same_key(_s, _t), _s.c.site == _t.c.site))
    .outerjoin(_m, sa.and_(same_key(_m, _t), _m.c.moment == _t.c.last_moment))
)


def tensors(
    transaction: Transaction,
    run: RunRow,
    *,
    is_leaf: bool | None = None,
    requires_grad: bool | None = None,
    retains_grad: bool | None = None,
    grad: Sequence[GradState] = (),
    why: Sequence[str] = (),
    name: str | None = None,
    line: int | None = None,
    path: str | None = None,
    after: int | None = None,
    limit: int = 100,
) -> TensorPage:
    """Tensors in order of their number, by their last state.

    Args:
        transaction: To read by.
        run: Whose tensors.
        is_leaf: Only those that are, or are not; None: both. requires_grad, retains_grad: likewise.
        requires_grad: See is_leaf.
        retains_grad: See is_leaf.
        grad: Any of these; empty: all.
        why: Any of these verdicts of `why_none`; empty: all.
        name: Glob over every name the tensor had and its fqn: `h.*.weight`; `*` and `?` are the only wildcards.
        line: Where it was first seen.
        path: In which file.
        after: `TensorPage.next` of the page before; None: the first page.
        limit: Tensors at most.
    """
    if run.key is None:
        return TensorPage(items=(), next=None)
    query = SELECT_TENSORS.where(at_key(_t, run.key))
    flags = ((_t.c.is_leaf, is_leaf), (_t.c.requires_grad, requires_grad), (_t.c.retains_grad, retains_grad))
    for column, wanted in flags:
        if wanted is not None:
            query = query.where(column.is_(wanted))
    if grad:
        query = query.where(_t.c.grad.in_(grad))
    if why:
        query = query.where(_t.c.why_none.in_(why))
    if name is not None:
        query = query.where(_named(transaction, name))
    if line is not None:
        query = query.where(_t.c.line == line)
    if path is not None:
        query = query.where(_s.c.path == path)
    if after is not None:
        query = query.where(_t.c.tensor > after)
    rows = transaction.execute(query.order_by(_t.c.tensor).limit(limit + 1)).all()
    items = tensor_rows(transaction, run, run.key, rows[:limit])
    return TensorPage(items=items, next=items[-1].tensor if len(rows) > limit else None)


def _named(transaction: Transaction, glob: str) -> sa.ColumnElement[bool]:
    """The tensor's fqn, or a name it had, matches."""

    def matches(column: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
        if transaction.dialect.name == "sqlite":
            return column.op("GLOB", is_comparison=True)(glob.replace("[", "[[]"))  # LIKE has no case there
        like = glob.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%").replace("?", "_")
        return column.like(like, escape="\\")

    bound = sa.exists().where(same_key(_b, _t), _b.c.tensor == _t.c.tensor, matches(_b.c.name))
    return sa.or_(matches(_t.c.fqn), bound)


def tensor_rows(transaction: Transaction, run: RunRow, key: RunKey, rows: Sequence[Any]) -> tuple[TensorRow, ...]:
    """Rows of `SELECT_TENSORS` with the names that the tensors had and the findings about them."""
    numbers = [row.tensor for row in rows]
    names: dict[int, dict[str, None]] = defaultdict(dict)
    bound = sa.select(_b.c.tensor, _b.c.name).where(at_key(_b, key), _b.c.tensor.in_(numbers)).order_by(_b.c.binding)
    for row in transaction.execute(bound):
        names[row.tensor][row.name] = None
    f = tables.finding
    about = sa.select(f.c.tensor, f.c.public_id).where(
        f.c.run_id == run.run_id, f.c.attempt == key.attempt, f.c.tensor.in_(numbers), f.c.gone_at.is_(None)
    )
    findings: dict[int, list[str]] = defaultdict(list)
    for row in transaction.execute(about.order_by(f.c.n)):
        findings[row.tensor].append(row.public_id)
    return tuple(_tensor_row(row._mapping, tuple(names[row.tensor]), tuple(findings[row.tensor])) for row in rows)  # noqa: SLF001 - the documented way to a column named `class`


def _tensor_row(row: Mapping[Any, Any], names: tuple[str, ...], findings: tuple[str, ...]) -> TensorRow:
    return TensorRow(
        tensor=row["tensor"],
        name=row["name"],
        fqn=row["fqn"],
        role=row["role"],
        cls=row["class"],
        shape=None if row["shape"] is None else tuple(row["shape"]),
        dtype=row["dtype"],
        device=row["device"],
        numel=row["numel"],
        bytes=row["size_bytes"],
        line=row["line"],
        path=row["path"],
        storage=row["storage"],
        view_of=row["view_of"],
        created=TensorCreated(by=row["created_by"], how=row["created_how"], proof=row["proof"]),
        died=row["died"],
        state=_state(row),
        why_none=why_none_row(row),
        grad_norm=row["grad_norm"],
        value_norm=row["value_norm"],
        nonfinite=row["nonfinite"],
        grad_ever=row["grad_ever"],
        bindings=names,
        findings=findings,
    )


def _state(row: Mapping[Any, Any]) -> TensorState | None:
    if row["last_moment"] is None:
        return None
    return TensorState(
        moment=row["last_moment"],
        kind=row["last_kind"],
        is_leaf=row["is_leaf"],
        requires_grad=row["requires_grad"],
        retains_grad=row["retains_grad"],
        grad_fn=row["grad_fn"],
        version=row["version"],
        grad=row["grad"],
        held_bytes=row["held_bytes"],
    )


def why_none_row(row: Mapping[Any, Any]) -> WhyNoneRow | None:
    """The verdict in a row of `tensor`; None: it has a gradient, or nobody judged."""
    if row["why_none"] is None:
        return None
    return WhyNoneRow(
        verdict=row["why_none"], line=row["why_line"], backward_call=row["why_call"], text=row["why_text"] or ""
    )
