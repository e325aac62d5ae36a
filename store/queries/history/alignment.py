"""What is needed of a run to lay it beside another: its tensors and operations with their places, and its source."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import sqlalchemy as sa

from backprobe.record.state_flags import by_name, flags_of
from backprobe.show.operation_comparison import Operand, PlacedOperation
from backprobe.show.run_comparison import PlacedTensor
from store import tables
from store.database.session import Transaction
from store.queries.tensors.tensor_pages import same_key
from store.records.reader import at_key
from store.runs.model import RunRow

_t: Final = tables.tensor
_s: Final = tables.site
_m: Final = tables.moment
_c: Final = tables.module_call
_o: Final = tables.operation


def placed_tensors(transaction: Transaction, run: RunRow, *, limit: int) -> tuple[PlacedTensor, ...]:
    """Load the tensors of a run that have a name or an fqn, in order, at most `limit`."""
    key = run.key
    if key is None:
        return ()
    query = (
        sa.select(_t, _s.c.path, _s.c.function, _c.c.chain)
        .select_from(_t)
        .outerjoin(_s, sa.and_(same_key(_s, _t), _s.c.site == _t.c.site))
        .outerjoin(_m, sa.and_(same_key(_m, _t), _m.c.moment == _t.c.moment))
        .outerjoin(_c, sa.and_(same_key(_c, _t), _c.c.module_call == _m.c.module_call))
        .where(at_key(_t, key), sa.or_(_t.c.name.is_not(None), _t.c.fqn.is_not(None)))
        .order_by(_t.c.tensor)
        .limit(limit)
    )
    return tuple(
        PlacedTensor(
            tensor=row.tensor,
            name=row.name,
            fqn=row.fqn,
            module_call=row.chain,
            path=row.path,
            line=row.line,
            function=row.function,
            **by_name(flags_of(row)),
            grad=row.grad,
            grad_norm=row.grad_norm,
            value_norm=row.value_norm,
            held_bytes=row.held_bytes,
        )
        for row in transaction.execute(query)
    )


def count_operations(transaction: Transaction, run: RunRow) -> int:
    """How many operations of a run are recorded."""
    if run.key is None:
        return 0
    return transaction.execute(sa.select(sa.func.count()).where(at_key(_o, run.key))).scalar_one()


def placed_operations(transaction: Transaction, run: RunRow, *, limit: int) -> Iterator[PlacedOperation]:
    """Yield the operations of a run thread by thread, at most `limit`."""
    if run.key is None:
        return
    shapes = sa.select(_t.c.tensor, _t.c.shape, _t.c.dtype).where(at_key(_t, run.key))
    operands = {row.tensor: Operand(shape=_dims(row.shape), dtype=row.dtype) for row in transaction.execute(shapes)}
    query = (
        sa.select(_o.c.line, _o.c.function, _o.c.operands, _o.c.result, _o.c.shape, _o.c.dtype, _s.c.path)
        .join_from(_o, _s, sa.and_(same_key(_s, _o), _s.c.site == _o.c.statement))
        .where(at_key(_o, run.key))
        .order_by(_o.c.thread, _o.c.operation)
        .limit(limit)
    )
    for row in transaction.execute(query):
        yield PlacedOperation(
            path=row.path,
            line=row.line,
            function=row.function,
            operands=tuple(operands[number] for number in row.operands if number in operands),
            result=row.result,
            shape=_dims(row.shape),
            dtype=row.dtype,
        )


def _dims(shape: list[int] | None) -> tuple[int, ...] | None:
    return None if shape is None else tuple(shape)


def texts(transaction: Transaction, run: RunRow) -> dict[str, str]:
    """Return the files of the run's snippet by path; empty if the run has no snippet."""
    f = tables.snippet_file
    query = (
        sa.select(f.c.path, f.c.body)
        .join_from(f, tables.snippet, tables.snippet.c.id == f.c.snippet_id)
        .where(tables.snippet.c.public_id == run.snippet, tables.snippet.c.tenant_id == run.tenant_id, f.c.is_text)
        .order_by(f.c.n)
    )
    return {row.path: row.body.decode() for row in transaction.execute(query)}
