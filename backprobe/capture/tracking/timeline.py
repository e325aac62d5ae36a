"""Which statement an autograd node belongs to: the ranges of sequence numbers that were issued between two taps.

torch numbers nodes per thread. The counter is read at every tap; what was issued since the last one belongs to the
statement that ends there. A number that several threads issued has no single owner and is answered with "ambiguous".
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from dataclasses import dataclass
from typing import Final

from backprobe.capture.output.text import name
from backprobe.capture.output.writer import Writer
from backprobe.capture.torch_access.torch_internals import next_sequence_number as next_number
from backprobe.record import Thread

_MOST_RANGES = 200_000
"""Ranges kept per thread; the older half goes when it is reached."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Who issued a sequence number.

    Attributes:
        site: The statement; None where unknown. call: The backward call that was open.
        module_call: The innermost open one.
    """

    site: int | None = None
    call: int | None = None
    module_call: int | None = None


_UNKNOWN = Owner()


TRANSFORMED: Final = -1
LIGHT: Final = -2
OF_COMPILER: Final = -3
"""The value in `Timeline.calls` of a call without a number: one under a transform of `torch.func`, one of a step not
taken in full, one by which a compiler traces a backward pass. Each is below 0, where no number is."""


class Timeline:
    """The sequence numbers of one thread.

    Attributes:
        thread: Number of the thread in the record.
        last: The first number that is not yet owned.
        calls: Backward calls open in this thread, outermost first: numbers, or what stands for one
            without a number. modules: module calls, numbers alone.
        library: How many module calls were open when the last one began, if its `forward` is a library's; else 0.
        modules_ran: Since the tensors were last compared, a module ended, or a library's ran.
    """

    __slots__ = (
        "calls", "entries", "grad_bases", "last", "library", "lows", "modules", "modules_ran", "owners", "thread",
    )  # fmt: skip

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.last: int = next_number()
        self.lows: list[int] = [self.last]
        self.owners: list[Owner] = []
        self.calls: list[int] = []
        self.modules: list[int] = []
        self.library, self.modules_ran = 0, False
        self.entries: list[object] = []
        self.grad_bases: list[tuple[int, int | None]] = []

    def close(self, site: int | None) -> bool:
        """Give the numbers issued since the last tap to a statement; whether there were any."""
        now = next_number()
        if now == self.last:
            return False
        self.owners.append(Owner(site, open_call(self), self.modules[-1] if self.modules else None))
        self.lows.append(now)
        self.last = now
        if len(self.owners) > _MOST_RANGES:
            del self.owners[: _MOST_RANGES // 2], self.lows[: _MOST_RANGES // 2]
        return True

    def module_begins(self, *, is_library: bool) -> None:
        """Note that a module is called, whose `forward` is a library's or the user's; its call is not open yet."""
        self.library = len(self.modules) + 1 if is_library else 0
        self.modules_ran = self.modules_ran or is_library

    def note_comparison(self) -> None:
        """Note that the tensors were compared with their last state; a library's module that is open goes on."""
        self.modules_ran = 0 < len(self.modules) == self.library

    def owner(self, number: int) -> Owner | None:
        """Who issued a number; None if it was not issued between two taps of this thread."""
        if not self.lows[0] <= number < self.last:
            return None
        return self.owners[bisect_right(self.lows, number) - 1]


def open_call(timeline: Timeline) -> int | None:
    """Return the number of the innermost backward call open in a thread; None: none is open, or it has none."""
    call = timeline.calls[-1] if timeline.calls else -1
    return call if call >= 0 else None


class Threads:
    """The timelines of all threads."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._local = threading.local()
        self._all: list[Timeline] = []

    def here(self) -> Timeline:
        """Return this thread's timeline."""
        timeline: Timeline | None = getattr(self._local, "timeline", None)
        if timeline is None:
            timeline = Timeline(len(self._all))
            write_thread(self._writer, timeline.thread, timeline.last)
            self._local.timeline = timeline
            self._all.append(timeline)
        return timeline

    def owner(self, number: int) -> tuple[Owner, int]:
        """Who issued a number, and in which thread; unknown if no thread or several did."""
        if len(self._all) == 1:
            return self._all[0].owner(number) or _UNKNOWN, 0
        found = [(owner, timeline.thread) for timeline in self._all if (owner := timeline.owner(number)) is not None]
        return found[0] if len(found) == 1 else (_UNKNOWN, self.here().thread)


def write_thread(writer: Writer, thread: int, first: int) -> None:
    """Write the row of the calling thread."""
    current = threading.current_thread()
    main = current.ident == threading.main_thread().ident
    writer.add("threads", Thread(thread=thread, name=name(current.name), main=main, first_seq=first))
