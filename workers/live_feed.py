"""What runs in hand say of themselves while they go on, written every few seconds by one thread of the worker.

1. The run's own thread only leaves rows here: a database that is away holds up nobody but this thread.
2. A run that has ended within the first pause is never written here: its record comes with its end.
3. What cannot be written is left to the end of the run, which has all of it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Final

from store.database.session import Database
from store.records.live_record import LiveRecord
from store.records.live_snapshots import FLUSH_SECONDS
from store.runs import lifecycle
from workers.lease import Lease

_log: Final = logging.getLogger(__name__)


class Feed:
    """One run's."""

    def __init__(self, database: Database, lease: Lease) -> None:
        self._database, self._lease = database, lease
        self._record: LiveRecord | None = LiveRecord(database, lease.claim)
        self._written = False
        self._flushing = threading.Lock()
        self._closed = False

    def take(self, table: str, rows: Sequence[Any]) -> None:
        """Rows have come, as `Supervisor.run` gives them."""
        record = self._record
        if record is not None:
            record.take(table, rows)

    def flush(self) -> None:
        """Write what has come."""
        with self._flushing:
            record = self._record
            if record is None or self._closed:
                return
            try:
                beat = record.flush()
            except lifecycle.FencedOut:
                self._lease.end("fenced-out")
            except Exception as error:  # noqa: BLE001 - the fence around a task: what is a stranger's may break anything
                if not self._database.away(error):
                    self._record = None
                    public_id = self._lease.claim.public_id
                    _log.warning("what %s has done so far was not written: %s", public_id, type(error).__name__)
            else:
                if beat is not None and beat.cancel_requested:
                    self._lease.end("canceled")
            self._written = self._written or record.written

    def close(self) -> bool:
        """Write nothing more; something was written: its end must clear it."""
        with self._flushing:
            self._closed = True
            self._record = None
            return self._written


class Feeds:
    """All of a worker's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._open: dict[int, Feed] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="feeds", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Write nothing more."""
        self._stopped.set()

    def open(self, lease: Lease) -> Feed:
        """Open a feed for a run in hand, until `close`."""
        feed = self._open[lease.claim.run_id] = Feed(self._database, lease)
        return feed

    def close(self, lease: Lease) -> bool:
        """Close the feed of a run that has ended; return whether something of it was written."""
        feed = self._open.pop(lease.claim.run_id, None)
        return feed is not None and feed.close()

    def _serve(self) -> None:
        waited: set[Feed] = set()
        while not self._stopped.wait(FLUSH_SECONDS):
            now = set(self._open.values())
            for feed in now & waited:
                feed.flush()
            waited = now
