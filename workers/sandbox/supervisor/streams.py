"""The descriptors of runs in flight: what the children write is read, counted and kept here.

Owned by the supervisor's selector thread, like all that it is given.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time
from collections.abc import Callable
from typing import Final

from workers.sandbox.gvisor import runsc, sentry
from workers.sandbox.levels.attestation import Differs, attest, never_root
from workers.sandbox.levels.names import Confinement
from workers.sandbox.process.lockdown import APART, PLACED
from workers.sandbox.supervisor.attempt import PIECE_BYTES, UNDECODED_BYTES, Attempt
from workers.sandbox.supervisor.outcome import Stop
from workers.sandbox.supervisor.pipe import Pipe
from workers.sandbox.supervisor.slots import put

LOCKED: Final = b"locked"
GO: Final = b"go"

DRIP_SECONDS: Final = 5.0
"""After its end, the most that a stream which something else still writes to can delay a run's outcome."""


class Streams:
    """Reads what children write, as it comes.

    Args:
        stop: Called when a run must be ended, and why.
        silent: Called when one stream of a run has ended.
        confinement: What a child must be found in before it goes.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        stop: Callable[[Attempt, Stop], None],
        silent: Callable[[Attempt], None],
        confinement: Confinement,
    ) -> None:
        self._selector, self._stop, self._silent = selector, stop, silent
        self._confinement = confinement

    def open(self, attempt: Attempt, sync: socket.socket) -> None:
        """Begin to listen."""
        for pipe in attempt.pipes.values():
            self._read_on(attempt, pipe)
        self._selector.register(sync, selectors.EVENT_READ, lambda: self._inspect_locked_child(attempt))

    def hand_over(self, attempt: Attempt) -> None:
        """Listen for this attempt, which took over the waiting child of another, and let the child go."""
        for pipe in attempt.pipes.values():
            self._selector.unregister(pipe.descriptor)
            self._read_on(attempt, pipe)
        if attempt.sync is not None:
            self._go(attempt, attempt.sync)

    def resume(self, attempt: Attempt) -> None:
        """Enough of the record was decoded: read on."""
        pipe = attempt.pipes.get("record")
        if pipe is not None and pipe.open and pipe.paused:
            pipe.paused = False
            attempt.patience_until = time.monotonic() + DRIP_SECONDS
            self._read_on(attempt, pipe)

    def last_word(self, attempt: Attempt) -> None:
        """Hear what an attempt that has ended said of its lockdown, if nobody has."""
        if attempt.sync is not None:
            self._inspect_locked_child(attempt)

    def close(self, attempt: Attempt) -> None:
        """Stop listening and close every descriptor."""
        for pipe in attempt.pipes.values():
            if pipe.open and not pipe.paused:
                self._selector.unregister(pipe.descriptor)
        if attempt.sync is not None:
            self._selector.unregister(attempt.sync)
        attempt.close()

    def _read_on(self, attempt: Attempt, pipe: Pipe) -> None:
        self._selector.register(pipe.descriptor, selectors.EVENT_READ, lambda: self._read(attempt, pipe))

    def _read(self, attempt: Attempt, pipe: Pipe) -> None:
        if not pipe.open:
            return
        try:
            piece = os.read(pipe.descriptor, PIECE_BYTES)
        except BlockingIOError:
            return
        if not piece:
            self._selector.unregister(pipe.descriptor)
            pipe.close()
            self._silent(attempt)
            return
        attempt.heard_at = time.monotonic()
        passed = attempt.take(pipe, piece)
        if pipe.name == "record" and attempt.undecoded_bytes > UNDECODED_BYTES and not attempt.abandoned:
            pipe.paused = True
            self._selector.unregister(pipe.descriptor)
        if passed is not None:
            self._stop(attempt, passed)  # last: it may find the warm process gone, and close everything here

    def _inspect_locked_child(self, attempt: Attempt) -> None:
        """Look from outside at a child that has locked itself down, then let it go."""
        sync = attempt.sync
        if sync is None or attempt.proc is None:
            return  # the zygote's report of the fork is still under way: the next turn looks again
        try:
            said = sync.recv(2048)
        except OSError:
            said = b""
        if said == APART:
            refused = self._place_child(attempt)
            with contextlib.suppress(OSError):
                sync.send(PLACED if refused is None else b"no")
            if refused is None:
                return
            said = refused.encode("utf-8", "replace")
        wrong = self._wrong(attempt, said) if said else None
        if said and wrong is None and not attempt.parked:
            attempt.parked = True
            if not attempt.ahead:
                self._go(attempt, sync)
            return
        self._selector.unregister(sync)
        attempt.sync = None
        sync.close()
        # one that ended without a word is its warm process's to report, or is lost with it; any other has failed when
        # its end is reported, and is started again if its warm process is lost instead
        if wrong is not None:
            attempt.broken = attempt.broken or wrong
            self._stop(attempt, "sandbox")

    def _go(self, attempt: Attempt, sync: socket.socket) -> None:
        self._selector.unregister(sync)
        attempt.sync = None
        attempt.parked, attempt.locked, attempt.gone_at = False, True, time.monotonic()
        with sync, contextlib.suppress(OSError):
            sync.send(GO)

    def _place_child(self, attempt: Attempt) -> str | None:
        """Give a child its uid and its cgroup; why that failed comes back."""
        try:
            if attempt.slot is not None and attempt.proc is not None and attempt.pidfd is not None:
                put(attempt.slot, attempt.proc, attempt.pidfd)
        except (OSError, ValueError) as error:
            return f"it has no place: {error}"
        return None

    def _wrong(self, attempt: Attempt, said: bytes) -> str | None:
        """Why a child must not go; None: it is locked down as its level prescribes."""
        word, _, seconds = said.partition(b" ")
        if word != LOCKED:
            return f"the child could not lock itself down: {said.decode('utf-8', 'replace')}"
        attempt.lockdown_cpu_seconds = float(seconds)
        if attempt.proc is not None and attempt.order is not None:
            cgroup = None if attempt.slot is None else attempt.slot.cgroup
            try:
                if self._confinement.level == "gvisor":
                    attempt.seen = sentry.attest(attempt.proc, runsc.program())
                elif self._confinement.level == "none":
                    never_root(attempt.proc, self._confinement)
                else:
                    attempt.seen = attest(attempt.proc, attempt.order, self._confinement, cgroup)
            except (Differs, FileNotFoundError) as error:
                return f"the child is not locked down as level {self._confinement.level} prescribes: {error}"
        return None
