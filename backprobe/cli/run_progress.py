"""Waiting for a run of the service, with a line that tells how it stands."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backprobe.client import Client, Run

LOOK_SECONDS: Final = 1.0
"""Between two looks at a run that somebody watches; the service answers at once when it has ended."""


def submit_run(client: Client, body: Mapping[str, Any], seconds: float) -> Run:
    """Submit; return the run when it has ended, or its state after so many seconds. A terminal shows the progress."""
    if not sys.stderr.isatty() or seconds <= 0:
        return client.submit(wait=seconds, **body)
    from rich.console import Console
    from rich.text import Text

    run = client.submit(**body)
    deadline = time.monotonic() + seconds
    with Console(stderr=True).status(Text(standing(run))) as line:
        while not run.ended and (left := deadline - time.monotonic()) > 0:
            run = client.run(run.id, wait=max(1.0, min(LOOK_SECONDS, left)))
            line.update(Text(standing(run)))
    return run


def standing(run: Run) -> str:
    """How a run stands, for people: where it is in the queue, or what came of its record. None of it is markup."""
    name = plain(run.id)
    if run.status == "queued":
        place = run.told.get("queue_position")
        return f"{name} is queued" + ("" if place is None else f", {place} before it" if place else ", next")
    record = run.told.get("record") or {}
    seen = f": {record['tensors']:,} tensors, {record['snapshots']:,} snapshots" if record.get("tensors") else ""
    return f"{name} is {plain(run.status)}{seen}"
