"""What a run printed, raised and warned of; its attempts and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from store import tables
from store.database.in_clause import in_numbers
from store.database.session import Transaction
from store.queries.source.program_answers import AttemptRow, EventRow, ExceptionRow, StreamRow, Streams, WarningRow
from store.records.reader import at_key
from store.runs.model import RunKey, RunRow


def streams(transaction: Transaction, run: RunRow) -> Streams:
    """Tails of stdout and stderr, exceptions and warnings of the visible attempt."""
    nothing = Streams(
        stdout=StreamRow(tail="", total_bytes=0), stderr=StreamRow(tail="", total_bytes=0), exceptions=(), warnings=()
    )
    if run.key is None:
        return nothing
    r = tables.record
    query = sa.select(r.c.streams, r.c.exceptions, r.c.warnings).where(at_key(r, run.key))
    row = transaction.execute(query).first()
    if row is None:
        return nothing
    sites = _sites(
        transaction, run.key, {exception["site"] for exception in row.exceptions if exception["site"] is not None}
    )
    return Streams(
        stdout=_stream(row.streams, "stdout"),
        stderr=_stream(row.streams, "stderr"),
        exceptions=tuple(_exception(exception, sites) for exception in row.exceptions),
        warnings=tuple(
            WarningRow(
                category=warning["category"],
                message=warning["message"],
                path=warning["path"],
                line=warning["line"],
                count=warning["count"],
            )
            for warning in row.warnings
        ),
    )


def _stream(kept: Mapping[str, Any], name: str) -> StreamRow:
    stream = kept.get(name, {})
    return StreamRow(tail=stream.get("tail", ""), total_bytes=stream.get("total_bytes", 0))


def _sites(transaction: Transaction, key: RunKey, numbers: set[int]) -> dict[int, tuple[str, int]]:
    s = tables.site
    query = sa.select(s.c.site, s.c.path, s.c.line).where(at_key(s, key), in_numbers(s.c.site, sorted(numbers)))
    return {row.site: (row.path, row.line) for row in transaction.execute(query)}


def _exception(exception: Mapping[str, Any], sites: Mapping[int, tuple[str, int]]) -> ExceptionRow:
    frames: Sequence[Mapping[str, Any]] = exception["frames"]
    path, line = sites.get(exception["site"], (None, None))
    return ExceptionRow(
        type=exception["type"],
        message=exception["message"],
        path=path,
        line=line,
        caught=exception["caught"],
        backward_call=exception["call"],
        frames=tuple(frames),
    )


def attempts(transaction: Transaction, run: RunRow) -> tuple[AttemptRow, ...]:
    """Every attempt at the run, in order."""
    a = tables.run_attempt
    query = sa.select(a).where(a.c.run_id == run.run_id).order_by(a.c.attempt)
    return tuple(
        AttemptRow(
            attempt=row.attempt,
            worker=row.worker,
            started_at=row.started_at,
            ended_at=row.ended_at,
            outcome=row.outcome,
            detail=row.detail,
        )
        for row in transaction.execute(query)
    )


def events(transaction: Transaction, run: RunRow, *, after: int = 0, limit: int = 1000) -> tuple[EventRow, ...]:
    """Load what happened to the run after event `after`, in order."""
    e = tables.run_event
    place = sa.select(tables.run.c.part).where(tables.run.c.id == run.run_id).scalar_subquery()
    query = sa.select(e).where(e.c.part == place, e.c.run_id == run.run_id, e.c.seq > after)
    return tuple(
        EventRow(seq=row.seq, at=row.at, kind=row.kind, attempt=row.attempt, payload=row.payload)
        for row in transaction.execute(query.order_by(e.c.seq).limit(limit))
    )
