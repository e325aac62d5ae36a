"""`with backprobe.watch(model, optimizer) as watching:` in a training job: the record of the block, and its findings.

With `url=`, or BACKPROBE_URL set, the record goes to a service while the job goes on (`backprobe.recorder`).
Inside another capture (`backprobe run`, `pytest --backprobe`, a service) that one records the block, not this one.

It sees parameters by name, module calls, backward calls with the line that made them, graphs, saved bytes, gradients,
what happens to `.grad`, optimizers. It does not see locals: `backprobe run` and `backprobe watch` as commands do.
"""

from __future__ import annotations

import inspect
import os
import sys
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self

if TYPE_CHECKING:
    from backprobe.capture.program.watch import Watch
    from backprobe.record import Record
    from backprobe.recorder.finding_poll import FindingTold
    from backprobe.recorder.health import Health
    from backprobe.recorder.record_sender import Sender
    from backprobe.recorder.sources import SourcePolicy
    from backprobe.recorder.training_job import JobRequest, Ranks
    from backprobe.rules import Finding, Judgement

_WIDTH: Final = 100


class Watching:
    """A watched block. After it, `record`, `judgement` and `findings` tell what was seen.

    Attributes:
        lost: Why the file given as `save` is not whole; None while it is.
    """

    def __init__(
        self,
        *watched: Any,
        every: int | None = None,
        histograms: bool = False,
        tier: Literal["state", "grad", "full"] = "full",
        save: str | Path | None = None,
        report: bool | None = None,
        sending: JobRequest | None = None,
    ) -> None:
        from backprobe.capture import Options
        from backprobe.capture.program.watch import check
        from backprobe.recorder.training_job import JobRequest

        if every is not None and every < 1:
            raise ValueError(f"every={every}: a step is taken at every so many, so it is 1 or more")
        check(watched)
        self._watched: tuple[Any, ...] = watched
        self._options = Options(tier=tier, entry="watch", every=every, histograms=histograms)
        self._path = None if save is None else Path(save)
        self._sending = JobRequest(url="") if sending is None else sending
        self._sending.check()
        self._report = not self._sending.sends if report is None else report
        self._sender: Sender | None = None
        self._idle: str | None = None
        self._frames: list[bytes] = []
        self._file: BinaryIO | None = None
        self._watch: Watch | None = None
        self._names: list[str | None] | None = None
        self._record: Record | None = None
        self._judgement: Judgement | None = None
        self._pid = os.getpid()
        self.lost: str | None = None

    def read_names(self, frame: FrameType | None) -> Self:
        """Read from the caller's source what it calls the things that are watched."""
        from backprobe.capture.program.watch import names_given

        self._names = names_given(frame, len(self._watched))
        return self

    def set_names(self, names: Sequence[str | None]) -> Self:
        """Set what the record calls the things that are watched, in their order."""
        self._names = list(names)
        return self

    def __enter__(self) -> Self:
        from backprobe.capture.program.other_capture import leave_recording
        from backprobe.capture.program.watch import Watch
        from backprobe.record.encoding.codec import MAGIC

        if self._watch is not None or self._idle is not None:
            raise RuntimeError("a watch is used once: make another one with backprobe.watch(...)")
        self._idle = leave_recording("backprobe.watch")
        if self._idle is not None:
            self._save_nothing()
            return self
        self._open_sender()
        if self._idle is not None:
            return self
        watch = Watch(self._options, self._keep)
        self._file = None if self._path is None else self._path.open("wb", buffering=0)
        self._keep(MAGIC, keeps_frame=False)
        try:
            watch.start(self._watched, self._names or [None] * len(self._watched), _caller())
        except BaseException:
            self._close()
            raise
        self._watch, self._watched = watch, ()
        return self

    def _save_nothing(self) -> None:
        """Write the record without rows to the file: the program may read it. A file that exists is left as it is."""
        from backprobe.record import dumps

        if self._path is None:
            return
        try:
            with self._path.open("xb") as file:
                file.write(dumps(self.record))
        except FileExistsError:
            pass
        except OSError as error:
            self.lost = error.strerror or str(error)

    def _open_sender(self) -> None:
        """Make the sender, where the record is sent; or let this process be, where another one of its job records."""
        if not self._sending.sends:
            return
        from backprobe.capture.torch_access.ranks import rank_and_size
        from backprobe.recorder.target import place_of

        rank, world_size = rank_and_size()
        place = place_of(rank=rank, world_size=world_size)
        if not self._sending.records(place):
            self._idle = f"this is rank {place.rank}, and the first rank records: ranks='all' makes a run of each"
            return
        self._sender = self._sending.sender(place, tier=self._options.tier, every=self._options.every)
        if self._sender is not None:
            weakref.finalize(
                self, self._sender.close, None
            )  # a job that ends inside of the block: what was put is sent

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._watch is None or os.getpid() != self._pid:
            return
        try:
            self._watch.stop(error)
        finally:
            self._close()
            if self._sender is not None:
                self._sender.close({})
        if self._report:
            self._print()
        elif self._sender is not None:
            sys.stderr.write(f"{self._sender.health.summary()}\n")

    @property
    def record(self) -> Record:
        """What was seen; within the block, as far as it goes. It has no rows where another capture or rank records.

        Raises:
            RuntimeError: the block was not entered.
        """
        if self._record is not None:
            return self._record
        if self._idle is not None:
            from backprobe.capture.program.watch import record_nothing

            self._record = record_nothing(self._options, self._idle)
            return self._record
        from backprobe.record import FrameReader

        reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
        for frame in self._frames:
            reader.feed(frame)
        record = reader.record()
        if record is None:
            raise RuntimeError("nothing was watched: enter the block first, `with backprobe.watch(model):`")
        if record.end is not None:
            self._record, self._frames = record, []
        return record

    @property
    def judgement(self) -> Judgement:
        """What the rules say of the record."""
        if self._judgement is not None and self._record is not None:
            return self._judgement
        from backprobe.rules import judge

        self._judgement = judge(self.record)
        return self._judgement

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings of the judgement that are not suppressed."""
        return tuple(finding for finding in self.judgement.findings if finding.suppressed is None)

    def health(self) -> Health | None:
        """How the sending goes; None: nothing is sent."""
        return None if self._sender is None else self._sender.health

    def summary(self) -> str:
        """Return the findings as text, and a line that says what was judged."""
        from backprobe.show.formats import concise

        if self._idle is not None:
            return f"backprobe: nothing was recorded here: {self._idle}"
        return concise.render(self.record, self.judgement)

    def __repr__(self) -> str:
        if self._idle is not None:
            return f"<backprobe.watch, {self._idle}>"
        if self._watch is None:
            return "<backprobe.watch, not entered>"
        return f"<backprobe.watch, {'ended' if self._file is None and self._record is not None else 'open'}>"

    def _keep(self, frames: bytes, *, keeps_frame: bool = True) -> None:
        """Keep frames here, and in the file as long as it takes them."""
        if keeps_frame:
            self._frames.append(frames)
            if self._sender is not None:
                self._sender.put(frames)
        if self._file is None:
            return
        try:
            self._file.write(frames)
        except OSError as error:
            self.lost, self._file = error.strerror or str(error), None

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _print(self) -> None:
        """Print the findings: an internal error ends in a line, never in the job."""
        try:
            text = self.summary()
        except Exception as error:
            text = f"backprobe: the record was not judged ({type(error).__name__}: {error})"
        if self.lost is not None:
            text += f"\nbackprobe: `{self._path}` was not written ({self.lost})"
        sys.stderr.write(f"{text}\n")


def watch(  # noqa: PLR0913 - a block has one door, and each argument is a keyword with a default
    *watched: Any,
    every: int | None = None,
    histograms: bool = False,
    tier: Literal["state", "grad", "full"] = "full",
    save: str | Path | None = None,
    report: bool | None = None,
    url: str | None = None,
    project: str | None = None,
    source: SourcePolicy = "functions",
    on_finding: FindingTold | None = None,
    ranks: Ranks = "first",
    labels: Mapping[str, str] | None = None,
) -> Watching:
    """Watch modules, optimizers and tensors for the length of a `with` block.

    Of a long job the first six steps are taken in full, then 10, 20, 50, 100, 200, 500 and so on, and the two after a
    step that went wrong. Afterwards torch is as it was: no hook is left, every function has its own code.
    Inside another capture of this process the watch records nothing and says so once: that capture sees the block.

    Args:
        every: Record every N-th step instead; 1: all of them.
        histograms: At each step taken, count the elements of each parameter and gradient by size; at the tier "full".
        tier: How much is recorded: "state" walks no graph, "grad" reads no values.
        save: A file for the record, which `backprobe show` and `backprobe.load` read.
        report: Print the findings to standard error at the end; None: where the record is not sent.
        url: A service that gets the record while the job goes on; None: as BACKPROBE_URL says; "": none. Its key is
            BACKPROBE_API_KEY. A service that is away, slow or refuses never holds the job up: `health()` tells.
        project: Of the service; None: as BACKPROBE_PROJECT says.
        source: What of the program's text is sent: "functions" that the record names, "lines" alone, "full" or "none".
            Rules that need more text than that are among those that were not run.
        on_finding: Called with each finding that the service makes while the job goes on, in another thread, as the
            API has it (`finding["rule"]["name"]`). Set a flag in it, and look at that between two steps.
        ranks: Of a job of several processes that is sent, the "first" is recorded, or "all", as a run each.
        labels: Of the run, beside `group`, `rank` and `world_size`.

    Raises:
        TypeError: something is no module, optimizer or tensor.
        ValueError: an argument cannot be; the message says what can.
        RuntimeError: on entering it a second time.
    """
    from backprobe.recorder.training_job import JobRequest

    sending = JobRequest(url=url, project=project, source=source, on_finding=on_finding, ranks=ranks, labels=labels)
    made = Watching(*watched, every=every, histograms=histograms, tier=tier, save=save, report=report, sending=sending)
    return made.read_names(_caller())


def _caller() -> FrameType | None:
    """Return the frame that called the function which asks."""
    frame = inspect.currentframe()
    here = None if frame is None else frame.f_back
    return None if here is None else here.f_back
