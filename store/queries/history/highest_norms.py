"""The highest gradient norms of a run: of its tensors, and of every sixteen snapshots of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.records.chunk_encoding import HEAD, columns_of
from store.records.chunk_format import BLOCK
from store.records.reader import at_key, mappings
from store.runs.model import RunKey, RunRow

FIRST: Final = 32
"""Chunks looked at for each tensor asked for: 21 hold 10,000 moments, and those with high norms are of few tensors."""

_c: Final = tables.snapshot_chunk
_PLACE: Final = (*HEAD, "moments")
_HIGHEST: Final = ("tensor", "first_moment", "grad_norm_max")

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """One of the highest gradient norms of a run.

    Attributes:
        moment: The first moment of the tensor at which its gradient had this norm.
    """

    tensor: int
    moment: int
    grad_norm: float


def top(transaction: Transaction, run: RunRow, *, limit: int = 20) -> tuple[Peak, ...]:
    """Find the tensors with the highest gradient norm ever measured, highest first, each with where that was."""
    if run.key is None or limit < 1:
        return ()
    found = _highest(transaction, run.key, limit)
    if not found:
        return ()
    query = sa.select(*[_c.c[name] for name in (*_PLACE, "grad_norm")]).where(
        at_key(_c, run.key),
        in_numbers(_c.c.tensor, found),
        in_numbers(_c.c.first_moment, [first for first, _ in found.values()]),
    )
    rows = {row["tensor"]: row for row in mappings(transaction.execute(query)) if _is_of(row, found)}
    return tuple(_peak(rows[tensor], highest) for tensor, (_, highest) in found.items())


def _highest(transaction: Transaction, key: RunKey, limit: int) -> dict[int, tuple[int, float]]:
    """Find the tensors with the highest norms, in order: the first chunk that has the norm, and the norm.

    Chunks come from the highest norm on, by an index, and a tensor with a high norm has it in many. Where the first
    ones do not name enough tensors, the database looks at all of them.
    """
    place = sa.func.row_number().over(partition_by=_c.c.tensor, order_by=(_c.c.grad_norm_max.desc(), _c.c.first_moment))
    chunks = sa.select(_c.c.tensor, _c.c.first_moment, _c.c.grad_norm_max, place.label("place")).where(
        at_key(_c, key), _c.c.grad_norm_max.is_not(None)
    )
    order = ("grad_norm_max desc", "tensor", "first_moment")
    first = sa.select(*[_c.c[name] for name in _HIGHEST]).where(at_key(_c, key), _c.c.grad_norm_max.is_not(None))
    rows = transaction.execute(first.order_by(*map(sa.text, order)).limit(FIRST * limit)).all()
    found = _by_tensor(rows)
    if len(found) < limit and len(rows) == FIRST * limit:
        every = chunks.subquery()
        best = sa.select(*[every.c[name] for name in _HIGHEST]).where(every.c.place == 1)
        found = _by_tensor(transaction.execute(best.order_by(*map(sa.text, order)).limit(limit)).all())
    return dict(islice(found.items(), limit))


def _by_tensor(rows: Sequence[Any]) -> dict[int, tuple[int, float]]:
    found: dict[int, tuple[int, float]] = {}
    for tensor, first, highest in rows:
        found.setdefault(tensor, (first, highest))
    return found


def _is_of(row: Mapping[str, Any], found: Mapping[int, tuple[int, float]]) -> bool:
    return found[row["tensor"]][0] == row["first_moment"]


def _peak(row: Mapping[str, Any], highest: float) -> Peak:
    columns = columns_of([row])
    place = int(np.nanargmax(columns["grad_norm"]))
    return Peak(tensor=row["tensor"], moment=int(columns["moment"][place]), grad_norm=float(highest))


def peaks(transaction: Transaction, run: RunRow, tensors: Sequence[int]) -> Mapping[int, tuple[Array, Array]]:
    """Of each tensor the highest gradient norm of every 16 snapshots: first moments and norms, of equal length.

    It reads a sixteenth of what `series` would. The place of a block whose moments have gaps is that of its chunk.
    """
    if run.key is None:
        return {}
    names = ("tensor", "first_moment", "moment_step", "grad_norm_max", "overview")
    query = (
        sa.select(*[_c.c[name] for name in names])
        .where(at_key(_c, run.key), in_numbers(_c.c.tensor, tensors), _c.c.grad_norm_max.is_not(None))
        .order_by(_c.c.tensor, _c.c.first_moment)
    )
    pieces: dict[int, list[tuple[Array, Array]]] = {}
    answers = cast("Iterable[Any]", transaction.execute(query))
    for tensor, first, step, highest, overview in answers:
        norms = np.array([highest], "<f4") if overview is None else np.frombuffer(overview, "<f4")
        places = first + step * BLOCK * np.arange(len(norms), dtype="<i8")
        pieces.setdefault(tensor, []).append((places, norms))
    return {
        tensor: (np.concatenate([p for p, _ in some]), np.concatenate([v for _, v in some]))
        for tensor, some in pieces.items()
    }
