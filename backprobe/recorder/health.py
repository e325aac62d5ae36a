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
            refused, and is not asked again; over: it wants no more of this run; broken: an error of ours; closed.
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
        """What became of a record that was sent, in a line."""
        where = f"{self.url}/runs/{self.run}"
        if self.state == "closed":
            return f"backprobe: {where}"
        spooled = f"; {self.spooled_bytes:,} bytes wait: `backprobe spool send`" if self.spooled_bytes else ""
        return f"backprobe: {where} ({self.state}: {(self.why or 'no answer yet').removesuffix('.')}{spooled})"
