"""Snapshots of a run that goes on: appended as short chunks, merged into long ones, always under the fence.

1. A chunk is legal at any length: a reader never knows of tails, and a crash needs no repair.
2. An append is a heartbeat too: the fenced renewal first, then the rows, in one transaction.
3. A merge replaces tails by the same snapshots in fewer rows, in one transaction: a reader sees the old or the new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Database, Transaction
from store.records.bulk import Batch, write
from store.records.chunk_encoding import NAMES, Columns, chunk_rows, merge
from store.records.chunk_format import CHUNK
from store.records.reader import mappings
from store.runs.claims import Beat, renew
from store.runs.model import Claim
from store.tables import snapshot_chunk

FLUSH_MOMENTS: Final = 96
"""After so many moments a writer appends at the latest: 740,000 snapshots/s against 220,000 with 16, in the sketch."""

FLUSH_SECONDS: Final = 2.0
"""Or after so long."""

MERGE_TENSORS: Final = 100
"""Tensors in one merge: 100 x 480 snapshots bound its memory, and SQLite's write lock is held for tens of ms."""

_N: Final = NAMES.index("n")
_FIRST: Final = NAMES.index("first_moment")
_TENSOR: Final = NAMES.index("tensor")
_which: Final = (
    snapshot_chunk.c.part == sa.bindparam("of_part", literal_execute=True),  # see store.records.reader.at_key
    snapshot_chunk.c.run_id == sa.bindparam("of_run"),
    snapshot_chunk.c.attempt == sa.bindparam("of_attempt"),
    snapshot_chunk.c.tensor.in_(sa.bindparam("tensors", expanding=True)),
    snapshot_chunk.c.first_moment >= sa.bindparam("since"),
)
_TAILS: Final = (
    sa.select(*(snapshot_chunk.c[name] for name in NAMES))
    .where(*_which)
    .order_by(snapshot_chunk.c.tensor, snapshot_chunk.c.first_moment)
)
_DROP: Final = sa.delete(snapshot_chunk).where(*_which)
_DROP_SINCE: Final = sa.delete(snapshot_chunk).where(*_which[:3], _which[-1])


class Live:
    """The snapshots of one attempt, as they come. Not thread-safe: one writer has the claim.

    Args:
        database: Where to.
        claim: Whose attempt writes.
    """

    def __init__(self, database: Database, claim: Claim) -> None:
        self._database = database
        self._claim = claim
        self._tails: dict[int, tuple[int, int, int]] = {}
        """By tensor: first moment of its tails, rows and snapshots in them."""
        self._in_doubt = False

    def append(self, columns: Columns) -> Beat:
        """Write snapshots that come after all written before, and merge the tails that have become long enough.

        Args:
            columns: In order of (tensor, moment), as `store.records.chunk_encoding` has them.

        Raises:
            FencedOut: the attempt is stale; nothing was written. Kill the child.
        """
        beat = self.write(columns)
        self.merge()
        return beat

    def write(self, columns: Columns) -> Beat:
        """Write snapshots that come after all written before. If it failed, write the same again, or more than these.

        Raises:
            FencedOut: the attempt is stale; nothing was written. Kill the child.
        """
        rows = chunk_rows(columns)
        with self._database.begin() as transaction:
            beat = renew(transaction, self._claim)
            if self._in_doubt:  # the commit that failed may have happened: nothing else lies so far behind
                since = int(columns["moment"].min())
                transaction.execute(_DROP_SINCE, _whose(self._claim) | {"since": since})
            self._in_doubt = True
            write(transaction, self._claim.key, [Batch(table=snapshot_chunk, rows=rows)])
        self._in_doubt = False
        for row in rows:
            self._count(row)
        return beat

    def merge(self) -> None:
        """Merge the tails that have become long enough.

        Raises:
            FencedOut: the attempt is stale.
        """
        self._merge([tensor for tensor, (_, rows, n) in self._tails.items() if rows > 1 and n >= CHUNK])

    def close(self) -> None:
        """Merge what is left. Without it nothing is lost: the run has more rows than it needs.

        Raises:
            FencedOut: the attempt is stale.
        """
        self._merge([tensor for tensor, (_, rows, _) in self._tails.items() if rows > 1])

    def _count(self, row: tuple[Any, ...]) -> None:
        tensor: int = row[_TENSOR]
        first, rows, n = self._tails.get(tensor, (row[_FIRST], 0, 0))
        if rows or row[_N] < CHUNK:
            self._tails[tensor] = (first, rows + 1, n + row[_N])

    def _merge(self, tensors: list[int]) -> None:
        for start in range(0, len(tensors), MERGE_TENSORS):
            some = tensors[start : start + MERGE_TENSORS]
            since = min(self._tails[tensor][0] for tensor in some)
            with self._database.begin() as transaction:
                renew(transaction, self._claim)
                merged = _merge_rows(transaction, self._claim, {"tensors": some, "since": since})
            for tensor in some:
                del self._tails[tensor]
            for row in merged:
                self._count(row)


def _merge_rows(transaction: Transaction, claim: Claim, which: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Replace rows by as few as hold the same; the new ones."""
    asked = _whose(claim) | dict(which)
    rows = merge(mappings(transaction.execute(_TAILS, asked)))
    transaction.execute(_DROP, asked)
    write(transaction, claim.key, [Batch(table=snapshot_chunk, rows=rows)])
    return rows


def _whose(claim: Claim) -> dict[str, Any]:
    return {"of_part": claim.part, "of_run": claim.run_id, "of_attempt": claim.attempt}
