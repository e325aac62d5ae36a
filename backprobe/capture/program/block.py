"""Captures a block of a running program whose functions are of a project: a test, a call of `backprobe.check`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.instrument.tapped_functions import Asserts, TappedFunctions
from backprobe.capture.options import Options
from backprobe.capture.program.header import header
from backprobe.capture.recorder import CaptureSession
from backprobe.capture.torch_access.fence import without_ours
from backprobe.record import End, FrameReader, Record

DEVIATIONS: Final = (
    "names __bp_*__ in builtins",
    "functions of the project have other code objects, which hold taps, for the length of the block",
    "weakref.getweakrefs() and getweakrefcount() are functions of Backprobe, which leave out our references",
    "sys.settrace and profilers see the taps",
    "block: what was made before it is known from where it is first seen",
)


class Block:
    """One capture, from entering it to leaving it; what the block raises goes on its way.

    Attributes:
        record: What was seen; None until the block was left.

    Raises:
        RuntimeError: on entering, if another capture is active in this process.
    """

    def __init__(
        self, functions: Iterable[Any], folder: Path, options: Options, asserts: Asserts | None = None
    ) -> None:
        self._functions, self._folder, self._options = functions, folder.resolve(), options
        self._asserts = asserts
        self.record: Record | None = None

    def __enter__(self) -> Self:
        self._reader = FrameReader(max_bytes=1 << 30, max_rows=10_000_000)
        self._recorder, self._instrument = CaptureSession(self._options, self._reader.feed), Instrument()
        recorder = self._recorder
        self._instrument.put(recorder)
        self._tapped = TappedFunctions(recorder, self._folder, self._asserts)
        try:
            recorder.writer.begin(header(self._options, sys.argv, self._instrument.fallbacks, DEVIATIONS))
            recorder.threads.here()
            recorder.guard.apart(lambda: self._tapped.put(self._functions))
        except BaseException:
            self._take_out()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        recorder, guard = self._recorder, self._recorder.guard
        number: int | None = None
        try:
            if error is not None:
                number = guard.run(recorder.failures.uncaught, error, without_ours(error.__traceback__))
            guard.run(recorder.finish)
            recorder.writer.end(
                End(
                    ending="ended" if error is None else "raised",
                    exit_code=0 if error is None else 1,
                    exception=number,
                    duration_ns=recorder.writer.time_ns(),
                    own_ns=guard.own_ns,
                    own_errors=guard.errors,
                    own_error=guard.first,
                )
            )
        finally:
            self._take_out()
        self.record = self._reader.record()

    def _take_out(self) -> None:
        self._tapped.undo()
        self._instrument.take_out()
        self._recorder.close()
