"""How the sending of a record goes, for whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["idle", "sending", "away", "refused", "over", "broken", "closed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the sending goes.

    Attributes:
        state: idle: nothing was sent yet; sending; away: the service does not answer, and is asked again; refused: it
            refused, and is not asked again; over: it wants no more of this run; broken: an internal error; closed.
        run: Public id of the run. sent_frames: That the service has. requests: That were sent.
        waiting_bytes: In memory. spooled_bytes: In files.
        dropped: Times that memory was full and frames were left out, the first one and all behind it.
        why: The last failure; None: there was none.
    """

    state: State
    run: str
    url: str
    sent_frames: int
    requests: int
    waiting_bytes: int
    spooled_bytes: int
    dropped: int
    why: str | None

    def summary(self) -> str:
        """Say in a line what became of the record: what was sent, spooled, or is in memory only and lost with that."""
        parts = [self._describe_sent()]
        if self.state != "closed":
            parts.append(f"{self.state}: {(self.why or 'no answer yet').removesuffix('.')}")
        if self.spooled_bytes:
            parts.append(f"{self.spooled_bytes:,} bytes spooled, `backprobe spool send` sends them")
        if self.waiting_bytes:
            parts.append(f"{self.waiting_bytes:,} bytes in memory only, lost when this process ends")
        if self.dropped:
            parts.append(f"frames were lost {self.dropped} times because memory was full")
        return f"backprobe: {'; '.join(parts)}"

    def _describe_sent(self) -> str:
        """Say what was sent. The run's page is named only if the service has something of the run."""
        if not self.sent_frames:
            return f"nothing of {self.run} was sent to {self.url}"
        return f"{self.sent_frames:,} frame{'' if self.sent_frames == 1 else 's'} sent to {self.url}/runs/{self.run}"
