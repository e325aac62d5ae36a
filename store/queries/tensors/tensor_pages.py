"""The tensors of a run: a page of them, as values or as JSON.

A page of the usual kind, by number and without filters, is asked for by statements that were made once a month's
partition: building a statement costs SQLAlchemy as long as the database takes to answer it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import sqlalchemy as sa

from backprobe.record.state_flags import NAMES
from store import tables
from store.database.session import Transaction
from store.queries.tensors.mentions import load_mentions
from store.queries.tensors.tensor_answers import TensorCreated, TensorPage, TensorRow, TensorState, WhyNoneRow
from store.queries.tensors.tensor_filter import TensorFilter, same_key
from store.records.reader import at_key, in_month
from store.runs.model import RunKey, RunRow

_t: Final = tables.tensor
_s: Final = tables.site
_m: Final = tables.moment

SHOWN: Final = (
    "tensor", "name", "fqn", "role", "class", "shape", "dtype", "device", "numel", "size_bytes", "line", "storage",
    "view_of", "created_by", "created_how", "proof", "died", "last_moment", "grad_fn", "version", "grad",
    "held_bytes", "why_none", "why_line", "why_call", "why_text", "grad_norm", "value_norm", "nonfinite", "grad_ever",
)  # fmt: skip
"""Columns of `tensor` that lists show beside the flags of its state; the others are not fetched."""

SELECT_TENSORS: Final = (
    sa.select(*[_t.c[name] for name in SHOWN], _s.c.path, _m.c.kind.label("last_kind"), *[_t.c[name] for name in NAMES])
    .select_from(_t)
    .outerjoin(_s, sa.and_(same_key(_s, _t), _s.c.site == _t.c.site))
    .outerjoin(_m, sa.and_(same_key(_m, _t), _m.c.moment == _t.c.last_moment))
)


Sort = Literal["tensor", "name", "line", "-grad_norm", "-held_bytes"]

_SORTS: Final[Mapping[str, tuple[sa.ColumnElement[Any], bool]]] = {
    "name": (sa.func.coalesce(_t.c.name, chr(0x10FFFF)), False),
    "line": (sa.func.coalesce(_t.c.line, 2**31 - 1), False),
    "-grad_norm": (sa.func.coalesce(_t.c.grad_norm, -1.0), True),
    "-held_bytes": (sa.func.coalesce(_t.c.held_bytes, -1), True),
}
"""What is sorted by, and whether the greatest comes first; where there is none, it comes last."""


@functools.lru_cache(maxsize=64)
def _usual(part: int) -> sa.Select[Any]:
    """Select a page of all tensors, by number."""
    behind, most = sa.bindparam("after", type_=sa.Integer()), sa.bindparam("most", type_=sa.Integer())
    return SELECT_TENSORS.where(in_month(_t, part), _t.c.tensor > behind).order_by(_t.c.tensor).limit(most)


def tensors(transaction: Transaction, run: RunRow, **asked: Any) -> TensorPage:
    """Tensors by their last state.

    Args:
        transaction: To read by.
        run: Whose tensors.
        asked: As of `found_tensors`.
    """
    rows, following = found_tensors(transaction, run, **asked)
    items = tensor_rows(transaction, run, rows)
    return TensorPage(items=items, next=following)


def found_tensors(
    transaction: Transaction,
    run: RunRow,
    *,
    sort: Sort = "tensor",
    after: int | None = None,
    limit: int = 100,
    **filters: Any,
) -> tuple[Sequence[Any], int | None]:
    """Rows of `SELECT_TENSORS`, and the `after` of the next page, None at the end.

    Args:
        transaction: To read by.
        run: Whose tensors.
        sort: In which order; equal ones by number.
        after: What the page before answered; None: the first page.
        limit: Tensors at most.
        filters: The fields of `TensorFilter`.
    """
    if run.key is None:
        return (), None
    if sort == "tensor" and not filters:
        least = -1 if after is None else after
        which = {"run_id": run.key.run_id, "attempt": run.key.attempt, "after": least, "most": limit + 1}
        rows = transaction.execute(_usual(run.key.part), which).all()
    else:
        rows = transaction.execute(_query(transaction, run.key, sort, after, filters).limit(limit + 1)).all()
    return rows[:limit], rows[limit - 1].tensor if len(rows) > limit else None


def _query(
    transaction: Transaction, key: RunKey, sort: Sort, after: int | None, filters: Mapping[str, Any]
) -> sa.Select[Any]:
    query = SELECT_TENSORS.where(at_key(_t, key), *TensorFilter(**filters).conditions(transaction))
    if after is not None:
        query = query.where(_follows_cursor(key, sort, after))
    if sort == "tensor":
        return query.order_by(_t.c.tensor)
    by, greatest_first = _SORTS[sort]
    return query.order_by(by.desc() if greatest_first else by, _t.c.tensor)


def _follows_cursor(key: RunKey, sort: Sort, after: int) -> sa.ColumnElement[bool]:
    """Those that come behind tensor `after`: its own value is asked for, so that a cursor need not hold a NaN."""
    if sort == "tensor":
        return _t.c.tensor > after
    by, greatest_first = _SORTS[sort]
    its = sa.select(by).where(at_key(_t, key), _t.c.tensor == after).correlate(None).scalar_subquery()
    return sa.or_(by < its if greatest_first else by > its, sa.and_(by == its, _t.c.tensor > after))


def tensor_rows(transaction: Transaction, run: RunRow, rows: Sequence[Any]) -> tuple[TensorRow, ...]:
    """Rows of `SELECT_TENSORS` with the names that the tensors had and the findings about them."""
    names, findings = load_mentions(transaction, run, [row.tensor for row in rows])
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
        **{name: row[name] for name in NAMES},
        grad_fn=row["grad_fn"],
        version=row["version"],
        grad=row["grad"],
        held_bytes=row["held_bytes"],
    )


def why_none_row(row: Mapping[Any, Any]) -> WhyNoneRow | None:
    """Read the verdict from a row of `tensor`; None if the tensor has a gradient, or nobody judged."""
    if row["why_none"] is None:
        return None
    return WhyNoneRow(
        verdict=row["why_none"], line=row["why_line"], backward_call=row["why_call"], text=row["why_text"] or ""
    )
