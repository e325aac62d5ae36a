"""The tensors of a run as they were at a moment: each with its last snapshot at or before it.

1. Filters of state look at the state then; a tensor that was first seen later is not there.
2. Names, findings and `grad_ever` are those of the whole run; only a tensor's last snapshot has `why_none`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import sqlalchemy as sa

from backprobe.record.rows.tensors import Grad
from backprobe.record.state_flags import FlagsOrNone
from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.graph.graph_part import flags_told
from store.queries.history.value_series import state_at
from store.queries.tensors.tensor_answers import TensorPage, TensorRow, TensorState
from store.queries.tensors.tensor_pages import tensors
from store.records.chunk_format import MISSING
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

AT_ONCE: Final = 500
"""Tensors looked at together."""

_m: Final = tables.moment
_t: Final = tables.tensor
_r: Final = tables.retention
_COUNTS: Final = ("value_nan", "value_inf", "grad_nan", "grad_inf")
_COLUMNS: Final = ("flags", "version", "grad_fn", "value_norm", "grad_norm", *_COUNTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFilter(FlagsOrNone):
    """Which tensors, by their state at the moment; what is None, or empty, lets all pass.

    Attributes:
        grad: Any of these. grad_norm_gt, value_norm_gt: more than this, as measured then; NaN is more than any number.
    """

    grad: Sequence[Grad] = ()
    grad_norm_gt: float | None = None
    value_norm_gt: float | None = None

    def passes(self, row: TensorRow) -> bool:
        """Whether a tensor is wanted."""
        wanted = self.known_flags
        if row.state is None:
            return not (wanted or self.grad) and self.grad_norm_gt is None and self.value_norm_gt is None
        if any(getattr(row.state, name) != value for name, value in wanted.items()):
            return False
        if self.grad and row.state.grad not in self.grad:
            return False
        return _more(row.grad_norm, self.grad_norm_gt) and _more(row.value_norm, self.value_norm_gt)


def _more(value: float | None, least: float | None) -> bool:
    return least is None or (value is not None and (math.isnan(value) or value > least))


def tensors_at(
    transaction: Transaction,
    run: RunRow,
    moment: int,
    *,
    state: StateFilter = StateFilter(),
    after: int | None = None,
    limit: int = 100,
    **filters: Any,
) -> TensorPage:
    """List the tensors that existed at a moment, by number.

    Args:
        transaction: To read by.
        run: Whose tensors.
        moment: When; `nonfinite` and the norms are those of the returned snapshot, None: not measured then.
        state: Which ones, by their state then.
        after: `TensorPage.next` of the page before; None: the first page.
        limit: Tensors at most.
        filters: The fields of `TensorFilter` that do not speak of state: names, role, place.
    """
    found: list[TensorRow] = []
    while run.key is not None:
        page = tensors(transaction, run, after=after, limit=AT_ONCE, seen_by=moment, **filters)
        for row in _then(transaction, run, run.key, page.items, moment):
            if not state.passes(row):
                continue
            if len(found) == limit:
                return TensorPage(items=tuple(found), next=found[-1].tensor)
            found.append(row)
        if page.next is None:
            break
        after = page.next
    return TensorPage(items=tuple(found), next=None)


def _then(
    transaction: Transaction, run: RunRow, key: RunKey, rows: Sequence[TensorRow], moment: int
) -> Sequence[TensorRow]:
    numbers = [row.tensor for row in rows]
    found = state_at(transaction, run, moment, _COLUMNS, numbers)
    missing = {name: found[name].view("<u4") == MISSING for name in ("value_norm", "grad_norm") if len(found[name])}
    place = {tensor: n for n, tensor in enumerate(found["tensor"].tolist())}
    kinds = _kinds(transaction, key, np.unique(found["moment"]).tolist())
    held = _load_held_bytes(transaction, key, numbers, moment)
    head = sa.select(tables.record.c.grad_fns).where(at_key(tables.record, key))
    grad_fns: list[str | None] = [None, *(transaction.execute(head).scalar() or ())]
    told: list[TensorRow] = []
    for row in rows:
        n = place.get(row.tensor)
        if n is None:
            nothing = {"state": None, "why_none": None, "grad_norm": None, "value_norm": None, "nonfinite": 0}
            told.append(replace(row, **nothing))
            continue
        at = int(found["moment"][n])
        version = int(found["version"][n])
        state = TensorState(
            moment=at,
            kind=kinds[at],
            **flags_told(int(found["flags"][n])),
            grad_fn=grad_fns[int(found["grad_fn"][n])],
            version=None if version == -1 else version,
            held_bytes=held.get(row.tensor, 0),
        )
        norms = {name: None if gone[n] else float(found[name][n]) for name, gone in missing.items()}
        last = row.state is not None and row.state.moment == at
        odd = sum(int(found[name][n]) for name in _COUNTS)
        told.append(replace(row, state=state, why_none=row.why_none if last else None, nonfinite=odd, **norms))
    return told


def _kinds(transaction: Transaction, key: RunKey, moments: Sequence[int]) -> Mapping[int, str]:
    query: Any = sa.select(_m.c.moment, _m.c.kind).where(at_key(_m, key), in_numbers(_m.c.moment, moments))
    return {row.moment: row.kind for row in transaction.execute(query)}


def _load_held_bytes(transaction: Transaction, key: RunKey, numbers: Sequence[int], moment: int) -> Mapping[int, int]:
    """Load the bytes that the graphs behind tensors held when they were last looked at before a moment."""
    query: Any = sa.select(_r.c.root, _r.c.held_bytes).where(
        at_key(_r, key), in_numbers(_r.c.root, numbers), _r.c.moment <= moment
    )
    return {row.root: row.held_bytes for row in transaction.execute(query.order_by(_r.c.moment, _r.c.n))}
