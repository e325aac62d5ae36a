"""How many runs may wait in a queue, of all tenants together: beyond that workers do not keep up, and more is refused.

A tenant's own bound is a quota. This one is the service's: what waits behind it would only be late. Where it is lower
than a tenant's quota, a quarter of it is left to the others all the same.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.transitions import in_status
from store.tables import run

MOST_QUEUED: Final = 100_000
"""In each queue, unless the operator says otherwise."""

SURE_SECONDS: Final = 1.0
"""How long a count holds, with what this process has added: at the bound it reads 100,000 entries of an index."""

_QUEUED: Final = (
    sa.select(sa.func.count()).select_from(run).where(run.c.queue == sa.bindparam("of_queue"), in_status("queued"))
)
_OF_TENANT: Final = _QUEUED.where(run.c.tenant_id == sa.bindparam("of_tenant"))


class Overfull(Exception):
    """So many runs wait in this queue that no more is taken; it passes as they are run. The message has the numbers."""

    def __init__(self, queue: str, queued: int, most: int, whose: str = "") -> None:
        super().__init__(f"{queued:,} runs{whose} wait in the queue {queue}, {most:,} may")


class Backlog:
    """One per process. Several processes together may pass the bound by what they take in a second.

    Args:
        most: Runs that may wait in each queue.
        clock: Seconds that only grow.
    """

    def __init__(self, most: int = MOST_QUEUED, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self._clock = clock
        self._counted: dict[tuple[str, int | None], tuple[float, int]] = {}
        self._at_work: list[tuple[Transaction, str, int | None, int]] = []
        """Runs that were allowed: until their transaction has ended, no count sees them."""
        self._knowing = threading.Lock()

    def demand(self, transaction: Transaction, queue: str, runs: int = 1, *, tenant_id: int | None = None) -> None:
        """Go on if so many more runs may wait in the queue; they are taken to be there from now on.

        Args:
            transaction: To count by.
            queue: Which.
            runs: How many more.
            tenant_id: Whose, which may have three quarters of the queue; None: of who may have it all.

        Raises:
            Overfull: they may not.
        """
        with self._knowing:
            self._check(transaction, queue, runs, tenant_id)
            self._at_work = [entry for entry in self._at_work if not entry[0].closed]
            self._at_work.append((transaction, queue, tenant_id, runs))
            for place in {(queue, None), (queue, tenant_id)} & set(self._counted):
                at, known = self._counted[place]
                self._counted[place] = at, known + runs

    def check(self, transaction: Transaction, queue: str, runs: int, *, tenant_id: int | None = None) -> None:
        """As `demand`, for runs that will be demanded one by one: nothing is taken to be there."""
        with self._knowing:
            self._check(transaction, queue, runs, tenant_id)

    def _check(self, transaction: Transaction, queue: str, runs: int, tenant_id: int | None) -> None:
        queued, share = self._count(transaction, queue, None), max(1, self.most * 3 // 4)
        if queued + runs > self.most:
            raise Overfull(queue, queued, self.most)
        if tenant_id is not None and queued + runs > share:  # else its own are fewer too
            mine = self._count(transaction, queue, tenant_id)
            if mine + runs > share:
                raise Overfull(queue, mine, share, " of one tenant")

    def _count(self, transaction: Transaction, queue: str, tenant_id: int | None) -> int:
        """Count the runs that wait in the queue, of a tenant or of all. A count is kept for a second."""
        at, queued = self._counted.get((queue, tenant_id), (-SURE_SECONDS, 0))
        if self._clock() - at >= SURE_SECONDS:
            at, which = self._clock(), {"of_queue": queue}
            if tenant_id is None:
                queued = int(transaction.execute(_QUEUED, which).scalar_one())
            else:
                queued = int(transaction.execute(_OF_TENANT, which | {"of_tenant": tenant_id}).scalar_one())
            queued += sum(
                runs
                for other, of_queue, whose, runs in self._at_work
                if of_queue == queue and tenant_id in {None, whose} and other is not transaction and not other.closed
            )
            self._counted[queue, tenant_id] = at, queued
        return queued
