"""Runs of the spool sent after all: by the next recorder of the same service, or by `backprobe spool send`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.recorder.connection import Connection
from backprobe.recorder.delivery import Delivery
from backprobe.recorder.spool import Spooled, SpoolFolder, list_spooled_runs

MOST_PAUSE_SECONDS: Final = 5.0
"""To wait for a service that asks for time, once per request; longer, and the rest is left for another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """What came of a run of the spool.

    Attributes:
        run: Its id, which the service may have changed. left: why some of it is still spooled; None: nothing is.
        is_there: The service has the run.
        over: Why the service wanted no more of it, and the rest was deleted; None: it took all.
    """

    run: str
    left: str | None = None
    is_there: bool = False
    over: str | None = None


def resend(kept_run: Spooled, connection: Connection, stop: Callable[[], bool] = lambda: False) -> Resent:
    """Send a run of the spool; its files go as they are taken.

    Args:
        one: Of `list_spooled_runs`.
        connection: To its service.
        stop: Whether to leave the rest for another time.
    """
    folder = SpoolFolder(kept_run.folder.parent, kept_run.run)
    if not folder.hold():
        return Resent(run=kept_run.run, left="the job that spooled it goes on, and sends it itself")
    try:
        delivery = Delivery(connection, kept_run.run, kept_run.body)
        delivery.pieces.extend(kept_run.pieces)
        delivery.end = kept_run.end
        why = _deliver_run(delivery, folder, kept_run.url, stop)
        if why is None:
            folder.remove()
        over = None if delivery.wanted else delivery.stopped
        return Resent(run=delivery.run, left=why, is_there=delivery.begun, over=over)
    finally:
        folder.close()


def _deliver_run(delivery: Delivery, folder: SpoolFolder, url: str, stop: Callable[[], bool]) -> str | None:
    tried = False
    while delivery.waits:
        if stop():
            return "it was stopped"
        first = delivery.pieces[0] if delivery.begun and delivery.pieces else None
        reply = delivery.advance()
        if delivery.run != folder.path.name:
            move(delivery, folder)
            folder.keep_run(url, delivery.body)
        if reply.meaning == "taken":
            tried = False
            if first is not None:
                delivery.pieces.popleft()
                folder.let_go(first)
        elif reply.meaning == "again":
            pause = reply.retry_after or 0.0
            if tried or pause > MOST_PAUSE_SECONDS:
                return reply.why
            tried = True
            time.sleep(pause)
    if delivery.stopped is not None and delivery.wanted:
        return delivery.stopped
    return None


def move(delivery: Delivery, folder: SpoolFolder) -> None:
    """Rename the folder of a run, and its pieces, to the id that the run has now.

    Raises:
        OSError: the folder cannot be renamed.
    """
    folder.rename(delivery.run)
    for at, piece in enumerate(tuple(delivery.pieces)):
        delivery.pieces[at] = folder.here(piece)


def resend_all(home: Path, url: str, connection: Connection, stop: Callable[[], bool]) -> bool:
    """Send what other jobs have spooled for a service; what cannot be sent now stays. False: it was stopped."""
    for kept_run in list_spooled_runs(home):
        if stop():
            return False
        if kept_run.url == url and not kept_run.in_use:
            resend(kept_run, connection, stop)
    return True
