"""`with backprobe.watch(model, optimizer) as watching:` in a training job: the record of the block, and its findings.

It sees parameters by name, module calls, backward calls with the line that made them, graphs, saved bytes, gradients,
what happens to `.grad`, optimizers. It does not see locals: `backprobe run` and `backprobe watch` as commands do.
"""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, Self

if TYPE_CHECKING:
    from backprobe.capture.program.watch import Watch
    from backprobe.record import Record
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
        report: bool = True,
    ) -> None:
        from backprobe.capture import Options
        from backprobe.capture.program.watch import check

        if every is not None and every < 1:
            raise ValueError(f"every={every}: a step is taken at every so many, so it is 1 or more")
        check(watched)
        self._watched: tuple[Any, ...] = watched
        self._options = Options(tier=tier, entry="watch", every=every, histograms=histograms)
        self._path = None if save is None else Path(save)
        self._report = report
        self._frames: list[bytes] = []
        self._file: BinaryIO | None = None
        self._watch: Watch | None = None
        self._names: list[str | None] | None = None
        self._record: Record | None = None
        self._judgement: Judgement | None = None
        self._pid = os.getpid()
        self.lost: str | None = None

    def named(self, frame: FrameType | None) -> Self:
        """Read from the caller's source what it calls the things that are watched."""
        from backprobe.capture.program.watch import names_given

        self._names = names_given(frame, len(self._watched))
        return self

    def __enter__(self) -> Self:
        from backprobe.capture.program.watch import Watch
        from backprobe.record.encoding.codec import MAGIC

        if self._watch is not None:
            raise RuntimeError("a watch is used once: make another one with backprobe.watch(...)")
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

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._watch is None or os.getpid() != self._pid:
            return
        try:
            self._watch.stop(error)
        finally:
            self._close()
        if self._report:
            self._print()

    @property
    def record(self) -> Record:
        """What was seen; within the block, as far as it goes.

        Raises:
            RuntimeError: the block was not entered.
        """
        if self._record is not None:
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

    def summary(self) -> str:
        """The findings as text, and a line that says what was judged."""
        from backprobe.show.reports import concise

        return concise.render(self.record, self.judgement)

    def __repr__(self) -> str:
        if self._watch is None:
            return "<backprobe.watch, not entered>"
        return f"<backprobe.watch, {'ended' if self._file is None and self._record is not None else 'open'}>"

    def _keep(self, frames: bytes, *, keeps_frame: bool = True) -> None:
        """The sink: keep frames here, and in the file as long as it takes them."""
        if keeps_frame:
            self._frames.append(frames)
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
        """Print the findings: an error of ours ends in a line, never in the job."""
        try:
            text = self.summary()
        except Exception as error:
            text = f"backprobe: the record was not judged ({type(error).__name__}: {error})"
        if self.lost is not None:
            text += f"\nbackprobe: `{self._path}` was not written ({self.lost})"
        sys.stderr.write(f"{text}\n")


def watch(
    *watched: Any,
    every: int | None = None,
    histograms: bool = False,
    tier: Literal["state", "grad", "full"] = "full",
    save: str | Path | None = None,
    report: bool = True,
) -> Watching:
    """Watch modules, optimizers and tensors for the length of a `with` block.

    Of a long job the first 20 steps are taken in full, then 20, 50, 100, 200, 500 and so on, and the two after a step
    that went wrong. Afterwards torch is as it was: no hook is left, every function has its own code.

    Args:
        every: Take every so-manieth step instead; 1: all of them.
        histograms: At each step taken, count the elements of each parameter and gradient by size; at the tier "full".
        tier: How much is recorded: "state" walks no graph, "grad" reads no values.
        save: A file for the record, which `backprobe show` and `backprobe.load` read.
        report: Print the findings to standard error at the end.

    Raises:
        TypeError: something is no module, optimizer or tensor.
        RuntimeError: on entering, if another capture is active in this process.
    """
    return Watching(*watched, every=every, histograms=histograms, tier=tier, save=save, report=report).named(_caller())


def _caller() -> FrameType | None:
    """The frame that called the function that asks."""
    frame = inspect.currentframe()
    here = None if frame is None else frame.f_back
    return None if here is None else here.f_back
