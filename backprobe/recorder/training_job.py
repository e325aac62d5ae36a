"""What a watched job asks of the recorder: whether this process records, and the sender of its record."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from backprobe.recorder.finding_poll import FindingTold
from backprobe.recorder.record_sender import Sender
from backprobe.recorder.sources import POLICIES, SourcePolicy
from backprobe.recorder.target import Place, target_of, url_of

Ranks = Literal["first", "all"]

_log: Final = logging.getLogger("backprobe.recorder")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRequest:
    """What a job asks for.

    Attributes:
        url: Of the service; None: as BACKPROBE_URL says; "": nothing is sent. project: None: as BACKPROBE_PROJECT says.
        source: How much of the program's text leaves: the lines that the record names, all of it, or none.
        on_finding: Called with each finding that the service makes, in another thread.
        ranks: Of a job of several processes: the first one is recorded, or all.
        labels: Of the run, beside group, rank and world_size.
    """

    url: str | None = None
    project: str | None = None
    source: SourcePolicy = "functions"
    on_finding: FindingTold | None = None
    ranks: Ranks = "first"
    labels: Mapping[str, str] | None = None

    def check(self) -> None:
        """Refuse what cannot be.

        Raises:
            ValueError: with what is asked for instead.
        """
        if self.source not in POLICIES:
            raise ValueError(f"source={self.source!r}: it is one of {', '.join(map(repr, POLICIES))}")
        if self.ranks not in ("first", "all"):
            raise ValueError(f"ranks={self.ranks!r}: it is 'first' or 'all'")
        if self.url:
            target_of(url=self.url, project=None, labels={}, capture={})

    @property
    def sends(self) -> bool:
        """A service is named."""
        return bool(url_of(self.url))

    def records(self, place: Place) -> bool:
        """Return whether this process is recorded: the first one is, or every one."""
        return not self.sends or self.ranks == "all" or place.rank == 0

    def sender(self, place: Place, *, tier: str, every: int | None) -> Sender | None:
        """Make the sender of this process; None if nothing is sent. A wrong address is logged, and the job goes on."""
        capture: dict[str, Any] = {"tier": tier} | ({} if every is None else {"every": every})
        try:
            labels = dict(self.labels or {}) | place.labels
            target = target_of(url=self.url, project=self.project, labels=labels, capture=capture)
            return None if target is None else Sender(target, source=self.source, on_finding=self.on_finding)
        except Exception as error:  # noqa: BLE001 - the fence: the job goes on without
            _log.warning("backprobe: nothing of this job is sent: %s", error)
            return None
