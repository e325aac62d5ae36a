"""The source, line by line, with what happened on each line."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record.state_flags import NAMES
from store import tables
from store.database.session import Transaction
from store.queries.source.program_answers import LineBinding, SourceFile, SourceLine
from store.queries.tensors.tensor_answers import TensorRow
from store.queries.tensors.tensor_pages import same_key, why_none_row
from store.queries.tensors.tensor_states import AT_ONCE, tensors_at
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow
from store.runs.snippets import find_entry_file

_STATE: Final = (*NAMES, "grad_fn", "grad")

LISTED: Final = 5000
"""Names annotated in one file."""

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
"""What ends a line for Python's own line numbers; `str.splitlines` would end lines at form feeds too."""

_s: Final = tables.site
_b: Final = tables.binding
_t: Final = tables.tensor
_REAL: Final[sa.Double[float]] = sa.Double()


def source(
    transaction: Transaction, run: RunRow, *, path: str | None = None, at: int | None = None
) -> SourceFile | None:
    """Load an annotated file of the run's snippet. Without a record it has no annotations.

    A run without a snippet was recorded elsewhere: its files are those whose text, or some lines of it, came along.

    Args:
        transaction: To read by.
        run: Whose snippet.
        path: One of the snippet's; None: the entry.
        at: As it was at this moment: what came later is left out, but for the findings; None: at the end.

    Returns:
        None: no such file.
    """
    bodies = _texts(transaction, run)
    entry = None if run.entry is None else find_entry_file(bodies, run.entry)
    first = entry or next(iter(bodies), None)  # the script of a watched job may have called the program from elsewhere
    wanted = first if path is None else path
    if wanted is None or wanted not in bodies:
        return None
    others = tuple(name for name in bodies if name != first)
    return SourceFile(
        path=wanted,
        files=(first, *others) if first is not None else others,
        lines=_lines(transaction, run, wanted, bodies[wanted], at),
    )


def _texts(transaction: Transaction, run: RunRow) -> dict[str, str]:
    """Load the text of each file by its path."""
    if run.snippet is None:
        if run.key is None:
            return {}
        kept = transaction.execute(sa.select(tables.record.c.sources).where(at_key(tables.record, run.key))).scalar()
        return {row["path"]: row["text"] for row in kept or () if row["text"]}
    f = tables.snippet_file
    query = (
        sa.select(f.c.path, f.c.body)
        .join_from(f, tables.snippet, tables.snippet.c.id == f.c.snippet_id)
        .where(tables.snippet.c.public_id == run.snippet, tables.snippet.c.tenant_id == run.tenant_id, f.c.is_text)
        .order_by(f.c.n)
    )
    return {row.path: row.body.decode() for row in transaction.execute(query)}


def _lines(transaction: Transaction, run: RunRow, path: str, text: str, at: int | None) -> tuple[SourceLine, ...]:
    texts = _LINE_END.split(text.removeprefix("\ufeff"))
    if texts and not texts[-1]:
        texts.pop()
    key = run.key
    bindings = _bindings(transaction, run, key, path, at) if key else {}
    passes = _passes(transaction, key, path, at) if key else {}
    calls = _calls(transaction, key, path, at) if key else {}
    saved = _load_saved_sizes(transaction, key, path, at) if key else {}
    findings = _findings(transaction, run, path)
    return tuple(
        SourceLine(
            line=number,
            text=line,
            bindings=tuple(bindings.get(number, ())),
            passes=passes.get(number, 0),
            backward_calls=tuple(calls.get(number, ())),
            saved_bytes=saved.get(number, (0, 0, 0))[0],
            step_bytes=saved.get(number, (0, 0, 0))[2],
            held_bytes=saved.get(number, (0, 0, 0))[1],
            findings=tuple(findings.get(number, ())),
        )
        for number, line in enumerate(texts, start=1)
    )


def _at_or_before(column: Any, at: int | None) -> tuple[sa.ColumnElement[bool], ...]:
    return () if at is None else (column <= at,)


def _bindings(
    transaction: Transaction, run: RunRow, key: RunKey, path: str, at: int | None
) -> dict[int, list[LineBinding]]:
    """For each line the names bound there, each with the tensor it got last."""
    at_line = (
        sa.select(_s.c.line, _b.c.name, sa.func.max(_b.c.binding).label("binding"), sa.func.count().label("times"))
        .join_from(_b, _s, sa.and_(same_key(_s, _b), _s.c.site == _b.c.site))
        .where(at_key(_b, key), _s.c.path == path, *_at_or_before(_b.c.moment, at))
        .group_by(_s.c.line, _b.c.name)
        .subquery()
    )
    query = (
        sa.select(_t, at_line.c.line.label("at_line"), at_line.c.name.label("bound_name"), at_line.c.times)
        .join_from(at_line, _b, sa.and_(at_key(_b, key), _b.c.binding == at_line.c.binding))
        .join(_t, sa.and_(same_key(_t, _b), _t.c.tensor == _b.c.tensor))
        .order_by(at_line.c.line, at_line.c.binding)
        .limit(LISTED)
    )
    rows = transaction.execute(query).all()
    then = {} if at is None else _then(transaction, run, sorted({row.tensor for row in rows}), at)
    found: dict[int, list[LineBinding]] = defaultdict(list)
    for row in rows:
        told = _line_binding(row)
        found[row.at_line].append(told if at is None else _as_it_was(told, then.get(row.tensor)))
    return found


def _then(transaction: Transaction, run: RunRow, numbers: Sequence[int], at: int) -> dict[int, TensorRow]:
    """Load those of the tensors with these numbers that had been seen by then."""
    found: dict[int, TensorRow] = {}
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        found |= {row.tensor: row for row in tensors_at(transaction, run, at, limit=AT_ONCE, numbers=some).items}
    return found


def _as_it_was(told: LineBinding, row: TensorRow | None) -> LineBinding:
    if row is None or row.state is None:
        nothing = dict.fromkeys(_STATE)
        return replace(told, **nothing, why_none=None, grad_norm=None)
    state = {name: getattr(row.state, name) for name in _STATE}
    return replace(told, **state, why_none=row.why_none, grad_norm=row.grad_norm)


def _line_binding(row: Any) -> LineBinding:
    return LineBinding(
        name=row.bound_name,
        times=row.times,
        tensor=row.tensor,
        shape=None if row.shape is None else tuple(row.shape),
        dtype=row.dtype,
        **{name: getattr(row, name) for name in _STATE},
        why_none=why_none_row(row._mapping),  # noqa: SLF001 - SQLAlchemy's documented name
        grad_norm=row.grad_norm,
    )


def _passes(transaction: Transaction, key: RunKey, path: str, at: int | None) -> dict[int, int]:
    m = tables.moment
    query = (
        sa.select(_s.c.line, sa.func.count().label("passed"))
        .join_from(m, _s, sa.and_(same_key(_s, m), _s.c.site == m.c.site))
        .where(at_key(m, key), m.c.kind == "after-statement", _s.c.path == path, *_at_or_before(m.c.moment, at))
        .group_by(_s.c.line)
    )
    return {row.line: row.passed for row in transaction.execute(query)}


def _calls(transaction: Transaction, key: RunKey, path: str, at: int | None) -> dict[int, list[int]]:
    b = tables.backward_call
    query = (
        sa.select(_s.c.line, b.c.call)
        .join_from(b, _s, sa.and_(same_key(_s, b), _s.c.site == b.c.site))
        .where(at_key(b, key), _s.c.path == path, *_at_or_before(b.c.moment_before, at))
        .order_by(b.c.call)
    )
    found: dict[int, list[int]] = defaultdict(list)
    for line, call in transaction.execute(query):
        found[line].append(call)
    return found


def _load_saved_sizes(
    transaction: Transaction, key: RunKey, path: str, at: int | None
) -> dict[int, tuple[int, int, int]]:
    """For each line what its nodes saved, how much of that is held, and the most that they saved in one step."""
    n, b, m = tables.node, tables.backward_call, tables.moment
    over = sa.select(b.c.call).where(
        at_key(b, key), sa.func.coalesce(b.c.moment_after, b.c.moment_before + 1) <= (at or 0)
    )
    freed = n.c.freed_by.is_not(None) if at is None else n.c.freed_by.in_(over)
    gone = n.c.died.is_not(None) if at is None else sa.func.coalesce(n.c.died <= at, sa.false())
    size = sa.cast(n.c.saved_bytes, _REAL)
    held = sa.case((sa.or_(sa.func.coalesce(freed, sa.false()), gone), 0.0), else_=size)
    query = (
        sa.select(_s.c.line, m.c.step, sa.func.sum(size).label("saved"), sa.func.sum(held).label("held"))
        .join_from(n, _s, sa.and_(same_key(_s, n), _s.c.site == n.c.site))
        .outerjoin(m, sa.and_(same_key(m, n), m.c.moment == n.c.first_seen))
        .where(at_key(n, key), _s.c.path == path, *_at_or_before(n.c.first_seen, at))
        .group_by(_s.c.line, m.c.step)
    )
    sums: dict[int, tuple[float, float, float]] = {}
    for row in transaction.execute(query):
        saved, held_bytes, most = sums.get(row.line, (0.0, 0.0, 0.0))
        sums[row.line] = (saved + row.saved, held_bytes + row.held, max(most, row.saved))
    # a hostile record may overflow
    return {line: (_whole(saved), _whole(still), _whole(most)) for line, (saved, still, most) in sums.items()}


def _whole(size: float) -> int:
    return int(min(size, 2.0**53))


def _findings(transaction: Transaction, run: RunRow, path: str) -> dict[int, list[str]]:
    f = tables.finding
    found: dict[int, list[str]] = defaultdict(list)
    if run.key is not None:
        query = sa.select(f.c.line, f.c.public_id).where(
            f.c.run_id == run.run_id, f.c.attempt == run.key.attempt, f.c.path == path, f.c.gone_at.is_(None)
        )
        for line, public_id in transaction.execute(query.order_by(f.c.n)):
            found[line].append(public_id)
    return found
