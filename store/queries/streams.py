"""What a run printed, raised and warned of; its attempts and events."""

from __future__ import annotations

from store.queries.answers import AttemptRow, EventRow, Streams
from store.run import RunRow
from store.session import Transaction


def streams(transaction: Transaction, run: RunRow) -> Streams:
    """Tails of stdout and stderr, exceptions and warnings of the visible attempt."""
    raise NotImplementedError


def attempts(transaction: Transaction, run: RunRow) -> tuple[AttemptRow, ...]:
    """Every attempt at the run, in order."""
    raise NotImplementedError


def events(transaction: Transaction, run: RunRow, *, after: int = 0, limit: int = 1000) -> tuple[EventRow, ...]:
    """What happened to the run, in order, later than event `after`."""
    raise NotImplementedError
