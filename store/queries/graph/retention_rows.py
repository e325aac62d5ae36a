"""What stayed of the autograd graph after each backward call, by the line that made its root; and its growth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.history.curves import TooMuch
from store.queries.tensors.tensor_filter import same_key
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow

MOST_ROOTS: Final = 20_000
"""Live roots, over all moments of one answer, that are read."""

_r: Final = tables.retention
_m: Final = tables.moment
_s: Final = tables.site


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRoot:
    """A live tensor whose graph is held.

    Attributes:
        since_step: Optimizer steps finished when it began to be held; None: not known.
        holders: Paths of Python names that keep it: `global losses[3]`, `global f -> cell of f.<locals>.g: loss`.
        holder_search: done, not-asked or truncated. why: what is odd about it.
    """

    tensor: int
    name: str | None
    path: str | None
    line: int | None
    state: str
    freed_by: int | None
    held_nodes: int
    held_bytes: int
    since_step: int | None
    holders: tuple[str, ...]
    holder_search: str
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLine:
    """Roots that one line made, and what they hold; what two roots share is counted for each.

    Attributes:
        path, line: None: not known, or of the rest beyond `top`.
    """

    path: str | None
    line: int | None
    roots: int
    held_nodes: int
    held_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAfter:
    """What was held after one backward call, or at the end.

    Attributes:
        call: None: at the end of the run.
        live_nodes, held_bytes, live_tensors: Of the whole graph, each counted once; None: not counted.
        lines: By bytes, the most first. other: those beyond `top`, together; None: there are none.
        roots: The `top` roots by bytes.
    """

    call: int | None
    moment: int
    step: int
    live_nodes: int | None
    held_bytes: int | None
    live_tensors: int | None
    lines: tuple[HeldLine, ...]
    other: HeldLine | None
    roots: tuple[HeldRoot, ...]


def load_held_graphs(
    transaction: Transaction, run: RunRow, *, first_step: int = 0, last_step: int = 2**31 - 1, top: int = 12
) -> tuple[HeldAfter, ...]:
    """Load what was held after each backward call of these steps, in order.

    Raises:
        TooMuch: more than `MOST_ROOTS` live roots.
    """
    key = run.key
    if key is None:
        return ()
    steps = _m.c.step.between(first_step, last_step)
    joined = sa.and_(same_key(_m, _r), _m.c.moment == _r.c.moment)
    counted = sa.select(sa.func.count()).select_from(_r).join(_m, joined).where(at_key(_r, key), steps)
    total = transaction.execute(counted).scalar_one()
    if total > MOST_ROOTS:
        raise TooMuch(f"{total:,} live roots; at most {MOST_ROOTS:,} are returned at once: ask for fewer `steps`")
    query = (
        sa.select(_r, _m.c.step, _s.c.path, _s.c.line)
        .join_from(_r, _m, joined)
        .outerjoin(_s, sa.and_(same_key(_s, _r), _s.c.site == _r.c.site))
        .where(at_key(_r, key), steps)
        .order_by(_r.c.moment, _r.c.n)
    )
    roots: dict[int, list[Any]] = defaultdict(list)
    for row in transaction.execute(query):
        roots[row.moment].append(row)
    growth = {graph["moment"]: graph for graph in _growth(transaction, key)}
    for moment, rows in roots.items():
        if moment not in growth and rows[0].call is None:
            growth[moment] = _held_at_end(transaction, key)
    known = sa.select(_m.c.moment, _m.c.step).where(at_key(_m, key), steps).order_by(_m.c.moment)
    wanted = in_numbers(_m.c.moment, sorted({*roots, *growth}))
    return tuple(
        _build_held_after(row.moment, row.step, roots.get(row.moment, ()), growth.get(row.moment), top)
        for row in transaction.execute(known.where(wanted))
    )


def _growth(transaction: Transaction, key: RunKey) -> Iterable[Mapping[str, Any]]:
    head = sa.select(tables.record.c.growth).where(at_key(tables.record, key))
    return transaction.execute(head).scalar() or ()


def _held_at_end(transaction: Transaction, key: RunKey) -> Mapping[str, Any]:
    """Count what lives at the end, as `Growth` counts it after a call: each node and each storage once."""
    n, s = tables.node, tables.saved
    alive = sa.select(sa.func.count()).where(at_key(n, key), n.c.died.is_(None))
    unknown = [sa.case((s.c.storage.is_(None), column)) for column in (s.c.node, s.c.n)]
    sizes = (
        sa.select(sa.func.max(s.c.size_bytes).label("size_bytes"))
        .join_from(s, n, sa.and_(same_key(n, s), n.c.node == s.c.node))
        .where(at_key(s, key), n.c.died.is_(None), n.c.freed_by.is_(None))
        .group_by(s.c.storage, *unknown)
        .subquery()
    )
    size = transaction.execute(sa.select(sa.func.sum(sa.cast(sizes.c.size_bytes, sa.Double)))).scalar()
    nodes = transaction.execute(alive).scalar_one()
    return {"call": None, "live_nodes": nodes, "held_bytes": int(size or 0), "live_tensors": None}


def _build_held_after(
    moment: int, step: int, rows: Sequence[Any], growth: Mapping[str, Any] | None, top: int
) -> HeldAfter:
    by_line: dict[tuple[str | None, int | None], list[Any]] = defaultdict(list)
    for row in rows:
        by_line[row.path, row.line].append(row)
    lines = [_line(path, line, some) for (path, line), some in by_line.items()]
    lines.sort(key=lambda held_line: (-held_line.held_bytes, held_line.path or "", held_line.line or 0))
    largest = sorted(rows, key=lambda row: (-row.held_bytes, row.n))[:top]
    call = growth["call"] if growth is not None else next((row.call for row in rows), None)
    return HeldAfter(
        call=call,
        moment=moment,
        step=step,
        live_nodes=None if growth is None else growth["live_nodes"],
        held_bytes=None if growth is None else growth["held_bytes"],
        live_tensors=None if growth is None else growth["live_tensors"],
        lines=tuple(lines[:top]),
        other=_rest(lines[top:]),
        roots=tuple(_root(row) for row in largest),
    )


def _line(path: str | None, line: int | None, rows: Sequence[Any]) -> HeldLine:
    nodes, size = sum(row.held_nodes for row in rows), sum(row.held_bytes for row in rows)
    return HeldLine(path=path, line=line, roots=len(rows), held_nodes=nodes, held_bytes=size)


def _rest(lines: Sequence[HeldLine]) -> HeldLine | None:
    if not lines:
        return None
    nodes, size = sum(held_line.held_nodes for held_line in lines), sum(held_line.held_bytes for held_line in lines)
    return HeldLine(
        path=None, line=None, roots=sum(held_line.roots for held_line in lines), held_nodes=nodes, held_bytes=size
    )


def _root(row: Any) -> HeldRoot:
    names = [name for name in HeldRoot.__slots__ if name not in {"tensor", "holders"}]
    facts = {name: getattr(row, name) for name in names}
    return HeldRoot(tensor=row.root, holders=tuple(row.holders), **facts)
