"""What runs get now: at which level, or why none is executed; for health checks, pages, and the terminal of `serve`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from store.admin import workers

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from service.context import Context
    from store.database.session import Transaction
    from store.runs.model import Queue


ANNOUNCE_SECONDS: Final = 0.3
ANNOUNCE_AGAIN_SECONDS: Final = 2.0
"""Between two looks at what runs get: until it is known, and after that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """As `store.admin.workers.Standing`; and `cannot-start`: the workers of this process end before they work."""

    state: Literal["ready", "starting", "broken", "absent", "cannot-start"]
    levels: tuple[str, ...]
    why: tuple[str, ...]

    @property
    def tone(self) -> Literal["", "notice", "warn"]:
        """How a page shows it: nothing is to be done, something is to come, somebody must act."""
        if self.state in ("starting", "absent"):
            return "notice"
        return "" if self.state == "ready" and "none" not in self.levels and not self.why else "warn"

    def without_reasons(self) -> Standing:
        """For who is not to know the machine: a reason may hold paths."""
        return replace(self, why=())

    @property
    def words(self) -> str:
        """One or two sentences for people."""
        why = f": {'; '.join(self.why)}" if self.why else ""
        if self.state == "ready":
            held = ", which holds nothing back: for trusted code only" if self.levels[0] == "none" else ""
            more = f" A stronger level is not available{why}. This is checked again." if why else ""
            return f"Runs execute at isolation level {' or '.join(self.levels)}{held}.{more}"
        return {
            "starting": "Runs wait until a worker has proved its isolation.",
            "broken": f"No run is executed now{why or ', no worker can'}. The worker tries again; runs wait.",
            "absent": "No worker is alive; runs wait for one.",
            "cannot-start": f"No run is executed now, a worker cannot start{why}. It is started again; runs wait.",
        }[self.state]


def standing(shared: Context, transaction: Transaction, queue: Queue) -> Standing:
    """Return at which levels runs of this queue are executed now, or why they are not."""
    found = workers.standing(transaction, queue)
    if queue == "cpu" and found.state == "absent" and (unstarted := tuple(shared.unstarted())):
        return Standing(state="cannot-start", levels=(), why=unstarted)
    return Standing(state=found.state, levels=found.levels, why=found.why)


def announce(shared: Context, say: Callable[[str], None], stop: threading.Event) -> None:
    """Say at which level runs are executed, as soon as that is known and whenever it changes, until `stop` is set."""
    said = ""
    while not stop.wait(ANNOUNCE_SECONDS if not said else ANNOUNCE_AGAIN_SECONDS):
        try:
            with shared.database.read() as transaction:
                found = standing(shared, transaction, "cpu")
        except Exception:  # noqa: BLE001 - a database that is away tells nothing about the workers
            found = None
        is_news = found is not None and found.words != said and (said or found.state not in ("starting", "absent"))
        if found is not None and is_news and not stop.is_set():
            say(found.words)
            said = found.words
