"""Records past their time are dropped, and the oldest ones of who stores too much where a database outgrows its cap.

1. A run, its findings and its audits stay; `record_state` says `expired`, and `record_gone` why. Pinned and unfinished
   runs are never touched.
2. First the run says that its record has expired, then the rows go, a few thousand in a transaction, the head last. So
   a reader never meets half a record, and what a crash left is found again by its head (`leftovers`).
3. On PostgreSQL, where all of a past month goes within 31 days, its rows wait for `partitions.py` to drop it whole.
4. Near its cap a database drops records of tenants that have more than their share (`store.access.shares`), and no
   others; beyond it these tenants are refused, and when they have no record left, their programs that nobody ran go.
5. SQLite reuses the room at once; the file shrinks as `incremental_vacuum` gives pages back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from store.access import shares
from store.database.session import Database
from store.records.expiry import partitions
from store.records.expiry.sweep import RECORD_TABLES
from store.records.reader import at_key
from store.runs import snippets
from store.runs.model import RunKey
from store.runs.transitions import tell
from store.tables import KEY, Now, delivery, delivery_try, outbox, record, run, run_event, snippet

ROWS: Final = 5000
"""Rows deleted in one transaction: near 50 ms on SQLite."""

PAGES: Final = 2000
"""Pages that SQLite gives back to the disk in one go: 8 MB."""

SENT_SECONDS: Final = 30 * 86400.0
"""How long an event that has left is kept, with its deliveries."""

_kept: Final = (
    run.c.record_state.in_([sa.literal_column("'partial'"), sa.literal_column("'whole'")]),
    sa.not_(run.c.pinned),
    run.c.finished_at.is_not(None),
)
_PAST: Final = sa.select(run.c.id).where(*_kept, run.c.kept_until < Now()).order_by(run.c.kept_until)
_OLDEST: Final = (
    sa.select(run.c.id)
    .where(*_kept, run.c.tenant_id.in_(sa.bindparam("tenants", expanding=True)))
    .order_by(run.c.kept_until, run.c.id)
)
_EXPIRE: Final = (
    sa.update(run)
    .where(run.c.id == sa.bindparam("which"), *_kept)
    .values(record_state="expired", record_gone=sa.bindparam("why"), version=run.c.version + 1)
    .returning(run.c.id, run.c.public_id, run.c.part, run.c.result_attempt, run.c.snippet_id)
)
_ASK_AFTER_PROGRAM: Final = (
    sa.update(snippet)
    .where(snippet.c.id == sa.bindparam("its_program"), snippet.c.kept_until.is_not(None))
    .values(kept_until=Now())
)
_LEFT: Final = (
    sa.select(record.c.part, record.c.run_id, record.c.attempt)
    .join_from(record, run, sa.and_(run.c.part == record.c.part, run.c.id == record.c.run_id))
    .where(run.c.record_state == "expired")
    .where(sa.or_(run.c.record_bytes == 0, run.c.part.not_in(sa.bindparam("going", expanding=True))))
)
"""What somebody had deleted (of no bytes) waits for no month."""

_over: Final = (
    sa.select(outbox.c.id)
    .where(outbox.c.created_at < Now(-SENT_SECONDS), outbox.c.planned_at.is_not(None))
    .where(~sa.exists().where(delivery.c.outbox_id == outbox.c.id, delivery.c.state == "pending"))
    .order_by(outbox.c.created_at)
    .limit(500)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expired:
    """A record that is gone for its readers: its run's public id, and rows deleted; 0: its month goes whole."""

    run: str
    rows: int


def expire(database: Database, *, limit: int = 100) -> Iterator[Expired]:
    """Drop the records of runs that were to be kept till now, the longest overdue first, at most `limit`."""
    with database.read() as reading:
        found = reading.execute(_PAST.limit(limit)).scalars().all()
        going = partitions.going(reading) if found else frozenset[int]()
    yield from _expire_runs(database, found, "kept-until", going)


def shrink(database: Database, most_bytes: int, *, limit: int = 100) -> Iterator[Expired]:
    """While a database is nearly full, drop the oldest records of tenants over their share; at most `limit`.

    Where it is beyond its cap and they have none left, programs of theirs that nobody ran go too.
    """
    for _ in range(limit):
        with database.read() as reading:
            used = shares.used_bytes(reading)
            if used <= most_bytes * shares.NEARLY:
                return
            over = shares.shares(reading, most_bytes).tenants_over_share
            found = reading.execute(_OLDEST.limit(1), {"tenants": sorted(over)}).scalars().all()
        gone = list(_expire_runs(database, found, "database-full", frozenset()))
        yield from gone
        if not gone and not (used > most_bytes and snippets.drop_unused(database, over)):
            return


def leftovers(database: Database, *, limit: int = 100) -> int:
    """Finish what a crash left of records that have expired; how many. Those of a month that goes whole wait for it."""
    with database.read() as reading:
        left = reading.execute(_LEFT.limit(limit), {"going": sorted(partitions.going(reading))}).all()
    for row in left:
        _drop(database, RunKey(part=row.part, run_id=row.run_id, attempt=row.attempt))
    return len(left)


def drop_sent(database: Database) -> int:
    """Delete events that left long ago, with their deliveries and tries; how many."""
    with database.read() as reading:
        over = reading.execute(_over).scalars().all()
    if not over:
        return 0
    which = sa.select(delivery.c.id).where(delivery.c.outbox_id.in_(over))
    with database.begin() as transaction:
        transaction.execute(sa.delete(delivery_try).where(delivery_try.c.delivery_id.in_(which)))
        transaction.execute(sa.delete(delivery).where(delivery.c.outbox_id.in_(over)))
        transaction.execute(sa.delete(outbox).where(outbox.c.id.in_(over)))
    return len(over)


def give_back_pages(database: Database) -> None:
    """Let SQLite's file shrink a little, where it was made so that it can. Nothing on PostgreSQL."""
    if database.sqlite:
        with database.begin() as transaction:
            transaction.connection.driver_connection.execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()  # pyright: ignore[reportOptionalMemberAccess]


def _expire_runs(database: Database, found: Sequence[int], why: str, going: frozenset[int]) -> Iterator[Expired]:
    """Drop the records of these runs; `going`: months whose rows are left for their end."""
    for number in found:
        with database.begin() as transaction:
            row = transaction.execute(_EXPIRE, {"which": number, "why": why}).first()
            if row is None:
                continue  # pinned, or expired by another, since we looked
            tell(transaction, row.public_id)
            transaction.execute(_ASK_AFTER_PROGRAM, {"its_program": row.snippet_id})
            if row.part in going:
                transaction.execute(_events_of(row.part, row.id))
        if row.part in going:
            yield Expired(run=row.public_id, rows=0)
            continue
        key = RunKey(part=row.part, run_id=row.id, attempt=row.result_attempt)
        yield Expired(run=row.public_id, rows=_drop(database, key))


def _drop(database: Database, key: RunKey) -> int:
    """Delete a record's rows and its run's events, the head last."""
    tables = [table for table in RECORD_TABLES if table is not record]
    rows = sum(_empty_table(database, table, key) for table in (*tables, record))
    with database.begin() as transaction:
        transaction.execute(_events_of(key.part, key.run_id))
    return rows


def _events_of(part: int, run_id: int) -> sa.Delete:
    return sa.delete(run_event).where(run_event.c.part == part, run_event.c.run_id == run_id)


def _empty_table(database: Database, table: sa.Table, key: RunKey) -> int:
    """Delete the rows of one table, by stretches of the first column of its key."""
    mine = at_key(table, key)
    place = [column for column in table.primary_key.columns if column.name not in KEY][:1]
    gone = 0
    while True:
        stretch = mine
        if place:
            beyond = sa.select(place[0]).where(mine).order_by(place[0]).offset(ROWS).limit(1)
            with database.read() as reading:
                end = reading.execute(beyond).scalar()
                if end is None and reading.execute(sa.select(place[0]).where(mine).limit(1)).first() is None:
                    return gone
            if end is not None:
                stretch = sa.and_(mine, place[0] <= end)
        with database.begin() as transaction:
            gone += transaction.execute(sa.delete(table).where(stretch)).rowcount
        if stretch is mine:
            return gone
