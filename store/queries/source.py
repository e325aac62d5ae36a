"""The source, line by line, with what happened on each line."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, Final

import sqlalchemy as sa

from store import tables
from store.queries.program_answers import LineBinding, SourceFile, SourceLine
from store.queries.tensors import same_key, why_none_row
from store.record_load import at_key
from store.run import RunKey, RunRow
from store.session import Transaction

LISTED: Final = 5000
"""Names annotated in one file."""

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
"""What ends a line for Python's own line numbers; `str.splitlines` would end lines at form feeds too."""

_s: Final = tables.site
_b: Final = tables.binding
_t: Final = tables.tensor
_REAL: Final[sa.Double[float]] = sa.Double()


def source(transaction: Transaction, run: RunRow, *, path: str | None = None) -> SourceFile | None:
    """A file of the run's snippet, annotated; it needs no record, only then nothing is annotated.

    Args:
        transaction: To read by.
        run: Whose snippet.
        path: One of the snippet's; None: the entry.

    Returns:
        None: no such file.
    """
    f = tables.snippet_file
    query = (
        sa.select(f.c.path, f.c.body)
        .join_from(f, tables.snippet, tables.snippet.c.id == f.c.snippet_id)
        .where(tables.snippet.c.public_id == run.snippet, tables.snippet.c.tenant_id == run.tenant_id, f.c.is_text)
        .order_by(f.c.n)
    )
    bodies = {row.path: row.body for row in transaction.execute(query)}
    wanted = run.entry if path is None else path
    if wanted is None or wanted not in bodies:
        return None
    others = tuple(name for name in bodies if name != run.entry)
    return SourceFile(
        path=wanted,
        files=(run.entry, *others) if run.entry is not None else others,
        lines=_lines(transaction, run, wanted, bodies[wanted].decode()),
    )


def _lines(transaction: Transaction, run: RunRow, path: str, text: str) -> tuple[SourceLine, ...]:
    texts = _LINE_END.split(text.removeprefix("\ufeff"))
    if texts and not texts[-1]:
        texts.pop()
    key = run.key
    bindings = _bindings(transaction, key, path) if key else {}
    passes = _passes(transaction, key, path) if key else {}
    calls = _calls(transaction, key, path) if key else {}
    held = _held(transaction, key, path) if key else {}
    findings = _findings(transaction, run, path)
    return tuple(
        SourceLine(
            line=number,
            text=line,
            bindings=tuple(bindings.get(number, ())),
            passes=passes.get(number, 0),
            backward_calls=tuple(calls.get(number, ())),
            held_bytes=held.get(number, 0),
            findings=tuple(findings.get(number, ())),
        )
        for number, line in enumerate(texts, start=1)
    )


def _bindings(transaction: Transaction, key: RunKey, path: str) -> dict[int, list[LineBinding]]:
    """For each line the names bound there, each with the tensor it got last."""
    at_line = (
        sa.select(_s.c.line, _b.c.name, sa.func.max(_b.c.binding).label("binding"), sa.func.count().label("times"))
        .join_from(_b, _s, sa.and_(same_key(_s, _b), _s.c.site == _b.c.site))
        .where(at_key(_b, key), _s.c.path == path)
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
    found: dict[int, list[LineBinding]] = defaultdict(list)
    for row in transaction.execute(query):
        found[row.at_line].append(_line_binding(row))
    return found


def _line_binding(row: Any) -> LineBinding:
    return LineBinding(
        name=row.bound_name,
        times=row.times,
        tensor=row.tensor,
        shape=None if row.shape is None else tuple(row.shape),
        dtype=row.dtype,
        is_leaf=row.is_leaf,
        requires_grad=row.requires_grad,
        retains_grad=row.retains_grad,
        grad_fn=row.grad_fn,
        grad=row.grad,
        why_none=why_none_row(row._mapping),  # noqa: SLF001 - SQLAlchemy's documented name
        grad_norm=row.grad_norm,
    )


def _passes(transaction: Transaction, key: RunKey, path: str) -> dict[int, int]:
    m = tables.moment
    query = (
        sa.select(_s.c.line, sa.func.count().label("passed"))
        .join_from(m, _s, sa.and_(same_key(_s, m), _s.c.site == m.c.site))
        .where(at_key(m, key), m.c.kind == "after-statement", _s.c.path == path)
        .group_by(_s.c.line)
    )
    return {row.line: row.passed for row in transaction.execute(query)}


def _calls(transaction: Transaction, key: RunKey, path: str) -> dict[int, list[int]]:
    b = tables.backward_call
    query = (
        sa.select(_s.c.line, b.c.call)
        .join_from(b, _s, sa.and_(same_key(_s, b), _s.c.site == b.c.site))
        .where(at_key(b, key), _s.c.path == path)
        .order_by(b.c.call)
    )
    found: dict[int, list[int]] = defaultdict(list)
    for line, call in transaction.execute(query):
        found[line].append(call)
    return found


def _held(transaction: Transaction, key: RunKey, path: str) -> dict[int, int]:
    n = tables.node
    query = (
        sa.select(_s.c.line, sa.func.sum(sa.cast(n.c.saved_bytes, _REAL)).label("held"))
        .join_from(n, _s, sa.and_(same_key(_s, n), _s.c.site == n.c.site))
        .where(at_key(n, key), _s.c.path == path)
        .group_by(_s.c.line)
    )
    return {
        row.line: int(min(row.held, 2.0**53)) for row in transaction.execute(query)
    }  # a hostile record may overflow


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
