"""Findings of a run that goes on, told to the job as the service makes them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from backprobe.recorder import requests
from backprobe.recorder.connection import Connection
from backprobe.recorder.pace import MOST_SECONDS, SHARE

FindingTold = Callable[[Mapping[str, Any]], None]

SOON_SECONDS: Final = 4.0
"""After a step that was taken in full: by then the service has judged it."""


class FindingPoll:
    """Asks for the findings now and then, and tells each new one, once by its fingerprint.

    Args:
        told: Called with a finding as `GET /v1/runs/{run}/findings` has it.
        clock: Seconds that only grow.
    """

    def __init__(self, told: FindingTold, clock: Callable[[], float] = time.monotonic) -> None:
        self._told, self._clock = told, clock
        self._began = clock()
        self._at = self._began + SOON_SECONDS
        self._known: set[Any] = set()

    def soon(self) -> None:
        """Something worth judging has been sent."""
        self._at = min(self._at, self._clock() + SOON_SECONDS)

    @property
    def due(self) -> bool:
        """It is time to ask."""
        return self._clock() >= self._at

    def ask(self, connection: Connection, run: str) -> str | None:
        """Ask, and tell what is new; what `told` raised, in words, or None."""
        now = self._clock()
        self._at = now + min(max(SHARE * (now - self._began), SOON_SECONDS), MOST_SECONDS)
        reply = requests.findings(connection, run)
        items = reply.told.get("items", ()) if reply.meaning == "taken" and isinstance(reply.told, dict) else ()
        why = None
        for item in items:
            if item.get("fingerprint") in self._known:
                continue
            self._known.add(item.get("fingerprint"))
            try:
                self._told(item)
            except Exception as error:  # noqa: BLE001 - the job's own code, in our thread
                why = f"on_finding raised {type(error).__name__}: {error}"
        return why
