"""Sends a record while its job goes on: the job appends to a buffer, a daemon thread does all the rest.

    put -> buffer -> pieces -> the service
                            -> files, while it is away, has refused, or did not take all before the job's end

1. `put` appends and returns. It takes no more than `most_bytes` of memory; what does not fit is counted and left out.
2. `close` waits five seconds at most; what the service has not taken by then lies in the spool.
3. A forked child has nothing to do with it: there each call returns at once.
4. The first failure is logged, once; `health` tells the rest.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from backprobe.record import frame_rows, split
from backprobe.recorder.buffer import Buffer
from backprobe.recorder.connection import TIMEOUT_SECONDS, Connection
from backprobe.recorder.delivery import Delivery
from backprobe.recorder.finding_poll import FindingPoll, FindingTold
from backprobe.recorder.health import Health, State
from backprobe.recorder.pace import SOON_BYTES, Backoff, Pace, stagger
from backprobe.recorder.pieces import Piece, gather_pieces
from backprobe.recorder.requests import Reply
from backprobe.recorder.resending import move, resend_all
from backprobe.recorder.sources import SourceCut, SourcePolicy
from backprobe.recorder.spool import SpoolFolder
from backprobe.recorder.target import Target, script_name, spool_home

MOST_BYTES: Final = 64 << 20
CLOSE_SECONDS: Final = 5.0
_KEEP_SECONDS: Final = 1.0
"""Of `CLOSE_SECONDS`, for what goes into the spool."""

_SPREAD: Final = 0.5
"""By up to this part longer than others a sender gathers frames: 64 ranks that begin at once do not send at once."""

_LOOK_SECONDS: Final = 2.0
"""Between two looks of the thread at what waits."""

_log: Final = logging.getLogger("backprobe.recorder")


class Sender:
    """One run, sent from one process.

    Args:
        target: Where to.
        source: How much of the program's text leaves.
        on_finding: Called with each new finding, in the sender's thread; None: nobody asks for them.
        home: Of the spool; None: below BACKPROBE_HOME.
        most_bytes: In memory.
        timeout_seconds: To connect, and between two pieces of an answer.
    """

    def __init__(
        self,
        target: Target,
        *,
        source: SourcePolicy = "functions",
        on_finding: FindingTold | None = None,
        home: Path | None = None,
        most_bytes: int = MOST_BYTES,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._target = target
        self._home = spool_home() if home is None else home
        self._connection = Connection(target.url, target.key, timeout_seconds=timeout_seconds)
        self._delivery = Delivery(self._connection, target.run, {})
        self._folder = SpoolFolder(self._home, target.run)
        self._source = SourceCut(source)
        self._poll = None if on_finding is None else FindingPoll(on_finding)
        later = stagger(target.labels)
        self._pace = Pace(stretch=1.0 + _SPREAD * random.random(), later=later.begin)  # noqa: S311 - no secret
        self._end_later = later.end
        self._backoff = Backoff()
        self._buffer = Buffer(most_bytes)
        self._next = 0
        self._keeping = threading.Lock()
        self._wake, self._done = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._closing = self._abandoned = self._run_kept = self._resumed = False
        self._away = self._silent = self._broken = self._asked_for_time = False
        self._why: str | None = None
        self._ended: Mapping[str, Any] | None = None
        """How the job ended. The delivery gets it with the last frames: told before, it ends the run without them."""
        self._send_by = 0.0
        """On the monotonic clock, while closing: until then a service that asked for time is asked again."""
        self._pid = os.getpid()

    # ---- what the job calls

    def put(self, frames: bytes) -> None:
        """Take whole frames; the sink of a capture."""
        if self._pid != os.getpid() or self._closing:
            return
        self._buffer.put(frames, self._count_held_bytes())
        if self._thread is None:
            self._start()
        elif self._buffer.size >= SOON_BYTES and not self._wake.is_set():
            self._wake.set()

    def close(self, ended: Mapping[str, Any] | None, seconds: float = CLOSE_SECONDS) -> None:
        """Send what is left, for so long at most, and spool the rest. Again: nothing.

        Args:
            ended: How the job ended, as `POST /v1/runs/{run}/end` takes it; None: nobody knows, and the run goes on.
            seconds: To wait.
        """
        if self._pid != os.getpid() or self._closing:
            return
        wait = max(0.0, seconds - _KEEP_SECONDS)
        self._send_by = time.monotonic() + wait
        self._end_later = min(self._end_later, wait / 2)
        self._ended = ended
        self._closing = True
        if self._thread is None:
            return  # nothing was ever put
        self._wake.set()
        if self._done.wait(wait):
            return
        self._abandoned = True
        if self._keeping.acquire(timeout=_KEEP_SECONDS):
            try:
                self._cut_pieces()
                self._keep()
            finally:
                self._keeping.release()

    @property
    def health(self) -> Health:
        """How the sending goes."""
        delivery = self._delivery
        return Health(
            state=self._state(),
            run=delivery.run,
            url=self._target.url,
            sent_frames=delivery.frames,
            requests=delivery.requests,
            waiting_bytes=self._buffer.size + self._count_held_bytes(),
            spooled_bytes=sum(piece.size for piece in tuple(delivery.pieces) if piece.path is not None),
            dropped=self._buffer.dropped,
            why=self._why,
        )

    def _state(self) -> State:
        if self._broken:
            return "broken"
        if self._delivery.stopped is not None:
            return "refused" if self._delivery.wanted else "over"
        if self._away or self._closing:
            return "away" if self._away else "closed"
        return "sending" if self._delivery.begun else "idle"

    def _count_held_bytes(self) -> int:
        """Bytes of pieces in memory."""
        return sum(piece.size for piece in tuple(self._delivery.pieces) if piece.path is None)

    def _start(self) -> None:
        self._thread = threading.Thread(target=self._work, name="backprobe recorder", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the interpreter ends, or the system has no more threads
            self._note_failure(f"no thread could be started: {error}")
            self._broken = True
            self._done.set()

    # ---- the thread

    def _work(self) -> None:
        try:
            while not self._done.is_set():
                self._wake.wait(self._pause())
                self._wake.clear()
                self._turn()
        except Exception as error:  # noqa: BLE001 - the fence: whatever it is, the job goes on
            self._broken = True
            self._note_failure(f"{type(error).__name__}: {error}")
            with contextlib.suppress(Exception), self._keeping:
                self._keep()
        finally:
            self._connection.close()
            self._done.set()

    def _pause(self) -> float:
        if self._closing:
            return 0.0
        pauses = [_LOOK_SECONDS]
        if self._buffer.size:
            pauses.append(self._pace.due_in(self._buffer.size))
        if self._delivery.waits:
            pauses.append(self._backoff.seconds_left())
        return min(pauses)

    def _turn(self) -> None:
        closing = self._closing
        if closing and self._delivery.begun and not self._away:
            time.sleep(self._end_later)
        if closing or self._is_due():
            with self._keeping:
                self._cut_pieces()
        self._send()
        if self._abandoned:
            self._done.set()
            return
        delivery = self._delivery
        if self._away or delivery.stopped is not None or (closing and delivery.waits):
            with self._keeping:
                self._keep()
        elif delivery.begun and not delivery.pieces and not closing:
            self._do_idle_work()
        if closing:
            self._finish()

    def _is_due(self) -> bool:
        return self._buffer.size > 0 and self._pace.due_in(self._buffer.size) <= 0

    def _cut_pieces(self) -> None:
        """Cut what is buffered into pieces. The caller holds `_keeping`."""
        closing = self._closing  # looked at first: if it is set, nothing comes after what is drained
        held = self._buffer.drain()
        if self._poll is not None and sum(map(len, held)) >= SOON_BYTES:
            self._poll.soon()
        frames = list(self._source.cut_sources(self._frames(held, closing=closing)))
        for piece in gather_pieces(frames, self._next):
            self._delivery.pieces.append(piece)
            self._next = piece.first + piece.count
        if frames:
            self._pace.note_sent()
        if self._ended is not None and closing:
            self._delivery.end = {**self._ended, "frames": self._next}

    def _frames(self, held: deque[bytes], *, closing: bool) -> Iterator[bytes]:
        for several in held:
            for part in split(several):
                if not self._delivery.body:
                    _, (header,) = frame_rows(part)
                    environment = header.environment
                    script = script_name(environment.argv)
                    self._delivery.body = self._target.body(environment.torch, environment.python, script)
                yield part
        if closing:
            yield from self._buffer.iter_loss_frames()

    def _send(self) -> None:
        delivery = self._delivery
        if self._closing and self._silent:
            return  # the end of the job does not wait for it once more
        once = self._closing  # also before its time
        while delivery.waits and (once or not self._backoff.seconds_left() or self._wait_to_retry()):
            once = False
            first = delivery.pieces[0] if delivery.begun and delivery.pieces else None
            reply = delivery.advance()
            with self._keeping:  # the end of the job may have lost its patience meanwhile, and spooled what is left
                if self._abandoned:
                    return
                self._note(first, reply)

    def _wait_to_retry(self) -> bool:
        """Wait as long as the service asked for, at the end of the job; return whether to send again.

        Many ranks end at once: one that gave up at the first refusal would leave its run open on the service.
        """
        left = self._backoff.seconds_left()
        if not self._closing or not self._asked_for_time or time.monotonic() + left > self._send_by:
            return False
        self._wake.wait(left)
        self._wake.clear()
        return not self._abandoned

    def _note(self, first: Piece | None, reply: Reply) -> None:
        """Note what a request led to; `first`: the piece that it carried."""
        delivery = self._delivery
        if delivery.run != self._folder.path.name:
            move(delivery, self._folder)
            self._run_kept = False
        if reply.meaning == "taken":
            self._backoff.note_answer()
            self._away = self._silent = False
            if first is not None:
                delivery.pieces.popleft()
                self._folder.let_go(first)
            return
        if reply.meaning == "again":
            self._asked_for_time = reply.retry_after is not None
            self._away, self._silent = True, reply.why.startswith("TimeoutError")
            self._backoff.lengthen_pause(reply.retry_after)
        if reply.meaning == "over":
            delivery.pieces.clear()
        self._note_failure(reply.why)

    def _keep(self) -> None:
        """Write what is in memory into files. The caller holds `_keeping`."""
        delivery = self._delivery
        if not delivery.wanted or delivery.ended or not (delivery.pieces or delivery.end is not None):
            return
        try:
            if not self._folder.hold():
                return
            if not self._run_kept:
                self._folder.keep_run(self._target.url, delivery.body)
                self._run_kept = True
            for at, piece in enumerate(tuple(delivery.pieces)):
                if piece.path is None:
                    delivery.pieces[at] = self._folder.keep(piece)
            if self._closing and delivery.end is not None:
                self._folder.keep_end(delivery.end)
        except OSError as error:
            self._note_failure(
                f"cannot write to the spool ({error.strerror or error}): unsent frames are in memory only"
            )

    def _finish(self) -> None:
        """Finish at the end of the job, when everything was sent or spooled."""
        delivery = self._delivery
        if self._folder.is_held and (not delivery.wanted or (delivery.stopped is None and not delivery.waits)):
            self._folder.remove()
        self._folder.close()
        self._done.set()

    def _do_idle_work(self) -> None:
        """All was sent, and the job goes on: ask for findings, and send once what earlier jobs have spooled."""
        if self._poll is not None and self._poll.due:
            self._delivery.requests += 1
            why = self._poll.ask(self._connection, self._delivery.run)
            if why is not None:
                self._note_failure(why)
        if not self._resumed:
            with contextlib.suppress(OSError):
                self._resumed = resend_all(
                    self._home, self._target.url, self._connection, lambda: self._closing or self._is_due()
                )

    def _note_failure(self, why: str) -> None:
        if self._why is None:
            said = "backprobe: %s: %s; the job goes on, health() tells more, and this is said once"
            _log.warning(said, self._target.url, why.removesuffix("."))
        self._why = why
