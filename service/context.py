"""What every view of one application shares: the database, the hub of waiters, the wake-ups, the cursors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flask import current_app

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.auth.key_uses import KeyUses
    from service.limits.rates import Rates
    from service.limits.request_bodies import Senders
    from service.limits.seats import Seats, Waiters
    from service.process.event_streams import Streams
    from service.process.recent_curves import RecentCurves
    from service.settings import Settings
    from service.telemetry.metrics import Metrics
    from service.wake_up import Wakeups
    from service.web.cursors import Cursors
    from store.access.backlog import Backlog
    from store.access.quotas import Room
    from store.database.session import Database
    from store.runs.reading.wait import Hub
    from store.telemetry.broker_probe import BrokerWatch
    from store.telemetry.spans import Spans

EXTENSION: Final = "backprobe"


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One per application, made by `create_app`.

    Attributes:
        lists: Seats for lists that hold a thread while their client reads.
        records: Seats for records that are in memory whole, to be sent or stored.
        senders: Who is known to the server before a request is looked at.
        ends: The same for recorders' records at their end: seats of their own, so that a job can always end.
    """

    settings: Settings
    database: Database
    waiters: Waiters
    wakeups: Wakeups
    cursors: Cursors
    hub: Hub
    streams: Streams
    lists: Seats
    records: Seats
    ends: Seats
    senders: Senders
    metrics: Metrics
    rates: Rates
    room: Room
    backlog: Backlog
    key_uses: KeyUses
    curves: RecentCurves
    spans: Spans
    broker: BrokerWatch
    unstarted: Callable[[], Sequence[str]]
    """Why workers that this process starts end before they work; empty: none does, or it starts none."""

    def close(self) -> None:
        """Stop listening and close the database's connections; waiters return."""
        self.wakeups.close()
        self.broker.close()
        self.hub.close()
        self.streams.close()
        self.key_uses.close()
        self.database.close()
        self.spans.close()


def context() -> Context:
    """Return the context of the application that answers this request."""
    found: Context = current_app.extensions[EXTENSION]
    return found
