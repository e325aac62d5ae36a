"""How many runs may wait in a queue, of all tenants together: beyond that workers do not keep up, and more is refused.

A tenant's own share is a quota. This bound is the service's: what waits behind it would only be late.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

import sqlalchemy as sa

from store.moves import in_status
from store.session import Transaction
from store.tables import run

MOST_QUEUED: Final = 100_000
"""In each queue, unless the operator says otherwise."""

SURE_SECONDS: Final = 1.0
"""How long a count holds, with what this process has added: at the bound it reads 100,000 entries of an index."""

_QUEUED: Final = (
    sa.select(sa.func.count()).select_from(run).where(run.c.queue == sa.bindparam("of_queue"), in_status("queued"))
)


class Overfull(Exception):
    """So many runs wait in this queue that no more is taken; it passes as they are run. The message has the numbers."""

    def __init__(self, queue: str, queued: int, most: int) -> None:
        super().__init__(f"{queued:,} runs wait in the queue {queue}, {most:,} may")


class Backlog:
    """One per process. Several processes together may pass the bound by what they take in a second.

    A process alone may pass it by what its requests have been allowed and not committed when a count is renewed: by one
    for each of the others at work.

    Args:
        most: Runs that may wait in each queue.
        clock: Seconds that only grow.
    """

    def __init__(self, most: int = MOST_QUEUED, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self._clock = clock
        self._counted: dict[str, tuple[float, int]] = {}
        self._knowing = threading.Lock()

    def demand(self, transaction: Transaction, queue: str, runs: int = 1) -> None:
        """Go on if so many more runs may wait in the queue; they are taken to be there from now on.

        Raises:
            Overfull: they may not.
        """
        with self._knowing:
            at, queued = self._counted.get(queue, (-SURE_SECONDS, 0))
            if self._clock() - at >= SURE_SECONDS:
                at, queued = self._clock(), int(transaction.execute(_QUEUED, {"of_queue": queue}).scalar_one())
            fits = queued + runs <= self.most
            self._counted[queue] = (at, queued + runs if fits else queued)
        if not fits:
            raise Overfull(queue, queued, self.most)
