"""Snapshots, out of their chunks: of one tensor, or of a whole run by page."""

from __future__ import annotations

from collections.abc import Sequence

from store.queries.answers import SnapshotPage, SnapshotRow
from store.run import RunRow
from store.session import Transaction


def tensor_snapshots(
    transaction: Transaction,
    run: RunRow,
    tensor: int,
    *,
    kind: Sequence[str] = (),
    from_moment: int = 0,
    to_moment: int | None = None,
    after: int | None = None,
    limit: int = 1000,
) -> tuple[SnapshotRow, ...]:
    """Snapshots of one tensor by moment.

    Args:
        kind: Kinds of moments, any of these; empty: all.
        from_moment, to_moment: First and last moment, both included; None: to the end.
        after: Only later moments than this: the last one of the page before.
    """
    raise NotImplementedError


def snapshots(
    transaction: Transaction,
    run: RunRow,
    *,
    kind: Sequence[str] = (),
    after: tuple[int, int] | None = None,
    limit: int = 100,
) -> SnapshotPage:
    """Snapshots of all tensors, by (tensor, moment)."""
    raise NotImplementedError
