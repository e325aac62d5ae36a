"""The backward calls of a run."""

from __future__ import annotations

from store.queries.answers import BackwardCallRow
from store.run import RunRow
from store.session import Transaction


def backward_calls(
    transaction: Transaction, run: RunRow, *, call: int | None = None, after: int | None = None, limit: int = 100
) -> tuple[BackwardCallRow, ...]:
    """Backward calls in order; only `call` if that is given. A next page follows the last one's `call`."""
    raise NotImplementedError
