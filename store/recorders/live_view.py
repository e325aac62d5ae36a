"""What recorders have sent so far, shown while they go on: decoded once more, and written as a worker's run in hand is.

1. A recorder is answered before any of this, and the end of its run has all of it again: what is shown may lag or stop.
2. Each transaction looks whether frames still come: once the end is begun nothing more is written.
3. Frames are untrusted, and so is the memory they take: the runs with the latest heartbeats are shown, each
   until it holds too much. How that is written: `store.records.live_record`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from backprobe.record import frame_rows
from store.database.session import Database, Transaction, is_unavailable
from store.recorders.frames import bodies
from store.recorders.recorders import claim_of
from store.records.expiry.sweep import delete_records
from store.records.live_record import LiveRecord
from store.runs.claims import RECORDER, renew
from store.runs.model import Claim, FencedOut
from store.runs.transitions import in_status
from store.tables import recorder, run

MOST_SHOWN: Final = 8
"""Runs shown at a time: of each tenant the run with the latest heartbeat, then of each the second, and so on."""

MOST_HELD: Final = 50_000
"""Rows of one run in memory: its tensors and their names, its moments and lines, and snapshots that wait for them."""

PIECE_BYTES: Final = 1 << 20
"""Of frames that are decoded at a time, and one frame of 1 MiB more: those of a hostile recorder take a hundred times
their bytes."""

PIECE_FRAMES: Final = 250
"""Decoded, and written, at a time: two at a time were 250 transactions for the first twenty steps of a job."""

_log: Final = logging.getLogger(__name__)

_place: Final = sa.func.row_number().over(partition_by=run.c.tenant_id, order_by=run.c.heartbeat_at.desc())
_OPEN: Final = (
    sa.select(run, recorder.c.next_frame)
    .join_from(run, recorder, recorder.c.run_id == run.c.id)
    .where(in_status("running"), run.c.origin == "watched", run.c.lease_owner == RECORDER)
    .where(run.c.cancel_requested_at.is_(None), recorder.c.next_frame > 0)
    .order_by(_place, run.c.heartbeat_at.desc())
    .limit(MOST_SHOWN)
)


@dataclass(slots=True)
class _View:
    """One run that is shown.

    Attributes:
        wanted: The first frame that was not decoded yet. over: no more of it is shown.
    """

    claim: Claim
    record: LiveRecord
    wanted: int = 0
    over: bool = False


class Views:
    """The live view of one process; rows that another process wrote before are dropped and written again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: dict[int, _View] = {}
        self._broke_off_at: int | None = None
        """The run at which the last turn's time was over; the next turn begins behind it."""

    def turn(self, seconds: float) -> None:
        """Show what has come since the last turn, for so long at most, and one piece more.

        A run whose frames take all of a turn is the last one of the next turn.
        """
        until = time.monotonic() + seconds
        with self._database.read() as reading:
            rows = reading.execute(_OPEN).all()
        self._open = {row.id: self._open[row.id] for row in rows if row.id in self._open}
        numbers = [row.id for row in rows]
        first = numbers.index(self._broke_off_at) + 1 if self._broke_off_at in numbers else 0
        self._broke_off_at = None
        for row in (*rows[first:], *rows[:first]):
            if self._show(row, until):
                self._broke_off_at = row.id
                return

    def _show(self, row: Any, until: float) -> bool:
        """Whether the time is over."""
        try:
            view = self._open.get(row.id) or self._open_view(row)
            while not view.over and view.wanted < row.next_frame:
                piece = bodies(self._database, row.id, view.wanted, most_bytes=PIECE_BYTES, most_frames=PIECE_FRAMES)
                if not piece:
                    break
                self._decode(view, piece)
                if time.monotonic() > until:
                    return True
        except FencedOut:
            self._open.pop(row.id, None)
        except Exception as error:  # noqa: BLE001 - a stranger's frames may break anything; the end has them again
            if is_unavailable(error):
                self._open.pop(row.id, None)
            else:
                self._give_up(row.id, type(error).__name__)
        return False

    def _open_view(self, row: Any) -> _View:
        claim = claim_of(row, worker=RECORDER, lease_seconds=0.0)
        with self._database.begin() as transaction:
            _drop_shown(transaction, claim)
        view = self._open[row.id] = _View(claim, LiveRecord(self._database, claim))
        return view

    def _decode(self, view: _View, piece: Sequence[tuple[int, bytes]]) -> None:
        for _, body in piece:
            kind, rows = frame_rows(body)
            if kind != "end":
                view.record.take(kind, rows)
        view.wanted += len(piece)
        view.record.flush()
        if view.record.rows_in_memory > MOST_HELD:
            self._give_up(view.claim.run_id, "it holds too many rows")

    def _give_up(self, run_id: int, why: str) -> None:
        view = self._open.get(run_id)
        if view is not None:
            view.over = True
            view.record = LiveRecord(self._database, view.claim)  # what was held is let go
            _log.warning("no more of %s is shown before its end: %s", view.claim.public_id, why)


def _drop_shown(transaction: Transaction, claim: Claim) -> None:
    renew(transaction, claim)
    delete_records(transaction, claim.part, claim.run_id, below=claim.attempt + 1)
