"""The frames of a watched run as a record, and their going once it has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa

from backprobe.record import BadRecord, FrameReader, Record
from store.database.session import Database
from store.recorders.recorders import MOST_BYTES, MOST_ROWS
from store.tables import Now, frame, run

MOST_WEIGHT: Final = 256 << 20
"""Bytes of memory that the rows of one record may take; what comes beyond is left out, and the record is partial."""

READ_BYTES: Final = 4 << 20
"""Of bodies that are read at a time, and one frame more: 30 steps of a job are some 500 frames of a few hundred bytes,
and a query for each eight of them took longer than all the rest of an end."""

READ_FRAMES: Final = 1000
"""That are read at a time, at most."""

PIECE_BYTES: Final = 4 << 20
"""Bytes of frames that are dropped at a time."""

KEPT_SECONDS: Final = 24 * 3600.0
"""How long frames of ended runs are known by their hash: a sender that was not answered asks again within a day."""

_NEXT: Final = (
    sa.select(
        frame.c.n,
        frame.c.body,
        (sa.func.sum(frame.c.size_bytes).over(order_by=frame.c.n) - frame.c.size_bytes).label("before"),
    )
    .where(frame.c.run_id == sa.bindparam("its_run"), frame.c.body.is_not(None))
    .where(frame.c.n >= sa.bindparam("since"), frame.c.n < sa.bindparam("below"))
    .subquery()
)
_BODIES: Final = sa.select(_NEXT.c.n, _NEXT.c.body).where(_NEXT.c.before < sa.bindparam("most")).order_by(_NEXT.c.n)
_SIZES: Final = sa.select(frame.c.n, frame.c.size_bytes).where(frame.c.run_id == sa.bindparam("its_run"))
_LEFT: Final = (
    sa.select(frame.c.run_id)
    .distinct()
    .join_from(frame, run, run.c.id == frame.c.run_id)
    .where(frame.c.body.is_not(None), run.c.finished_at.is_not(None))
)


def bodies(
    database: Database, run_id: int, since: int, *, most_bytes: int = READ_BYTES, most_frames: int = READ_FRAMES
) -> Sequence[tuple[int, bytes]]:
    """Load the next frames of a run that has not ended, from number `since` on, each with its number.

    Args:
        database: To read from.
        run_id: The run's.
        since: The first number.
        most_bytes: After which no further frame is begun: what comes back has one frame more at most.
        most_frames: That come back, at most.
    """
    which = {"its_run": run_id, "since": since, "below": since + most_frames, "most": most_bytes}
    with database.read() as reading:
        return [(row.n, bytes(row.body)) for row in reading.execute(_BODIES, which)]


def drop_bodies(database: Database, run_id: int) -> None:
    """Forget the bytes of an ended run's frames, some megabytes at a time; their hashes stay for a day."""
    with database.read() as reading:
        sizes = reading.execute(_SIZES.where(frame.c.body.is_not(None)).order_by(frame.c.n), {"its_run": run_id}).all()
    first, total = 0, 0
    for at, row in enumerate(sizes):
        total += row.size_bytes
        if total >= PIECE_BYTES or at == len(sizes) - 1:
            some = frame.c.n.between(sizes[first].n, row.n)
            with database.begin() as transaction:
                transaction.execute(sa.update(frame).where(frame.c.run_id == run_id, some).values(body=None))
            first, total = at + 1, 0


def drop_left(database: Database, *, limit: int = 1000) -> int:
    """Drop what a crash left of the frames of ended runs, and hashes that nobody asks for any more; rows deleted."""
    with database.read() as reading:
        left = reading.execute(_LEFT.limit(10)).scalars().all()
    for run_id in left:
        drop_bodies(database, run_id)
    old = (
        sa.select(frame.c.run_id, frame.c.n)
        .join_from(frame, run, run.c.id == frame.c.run_id)
        .where(frame.c.at < Now(-KEPT_SECONDS), frame.c.body.is_(None), run.c.finished_at < Now(-KEPT_SECONDS))
        .limit(limit)
    )
    with database.begin() as transaction:
        pair = sa.tuple_(frame.c.run_id, frame.c.n)
        return transaction.execute(sa.delete(frame).where(pair.in_(old))).rowcount


def record_of(database: Database, run_id: int, frames: int) -> tuple[Record | None, BadRecord | None]:
    """Decode the frames into a record, as far as they are valid, and return why not further."""
    reader = FrameReader(MOST_BYTES, MOST_ROWS, max_weight=MOST_WEIGHT)
    refused, since = None, 0
    while since < frames and refused is None:
        page = bodies(database, run_id, since)
        if not page:  # somebody else has written the end meanwhile: the fence will say so
            break
        for n, body in page:
            since = n + 1
            try:
                reader.feed(body)
            except BadRecord as error:
                refused = error
                break
    try:
        return reader.record(), refused
    except BadRecord as error:
        return None, error
