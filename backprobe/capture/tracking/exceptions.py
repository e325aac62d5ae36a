"""Exceptions: the one that ended the program, and those that left a backward call and were caught."""

from __future__ import annotations

import sys
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.capture.output.text import cut, name
from backprobe.capture.torch_access.fence import OURS
from backprobe.record import Frame, Raised
from backprobe.record.families import facts_in, family_of

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_LIBRARIES: Final = ("/site-packages/", "/dist-packages/")

_Place = tuple[CodeType, int, int]
"""Code, offset of the instruction in it, line."""


class Failures:
    """Writes down exceptions, each object once."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._next = 0
        self.open: list[tuple[int, Raised]] = []

    def left_call(self, error: BaseException, call: int | None) -> int:
        """Write an exception that left a backward call, and return its number. No call: one that was not recorded."""
        return self._write(error, call, error.__traceback__, sys._getframe(1))

    def note_suppression(self, error: BaseException) -> None:
        """Note that a `contextlib.suppress` of the program swallowed an exception."""
        self.caught(error)

    def caught(self, error: BaseException | None) -> None:
        """Note that the program caught an exception in an `except` block."""
        if error is None or isinstance(error, (StopIteration, GeneratorExit)):
            return
        if self._number_of(error) is None and type(error).__module__ == "builtins" and not _is_torchs(error):
            return  # an ordinary KeyError that the program expects says nothing about gradients
        self._recorder.sampler.went_wrong("exception")
        self._write(error, self._unseen_call(), error.__traceback__, None)
        self.went_on()

    def went_on(self) -> None:
        """Mark what left a backward call as caught: a statement ended normally after it."""
        if self.open:
            for _, row in self.open:
                self._recorder.writer.add("raised", msgspec.structs.replace(row, caught=True))
            self.open.clear()

    def uncaught(self, error: BaseException, tb: TracebackType | None) -> int:
        """Write the exception that ended the program, and return its number."""
        self._recorder.sampler.went_wrong("exception")
        number = self._write(error, self._unseen_call(), tb, None)
        self.open.clear()
        return number

    def _unseen_call(self) -> int | None:
        """Return the call that the exception left, if no Python entry reported it."""
        return self._recorder.calls.unseen.settle()

    def _number_of(self, error: BaseException) -> int | None:
        return next((row.n for key, row in self.open if key == id(error)), None)

    def _write(self, error: BaseException, call: int | None, tb: TracebackType | None, frame: FrameType | None) -> int:
        recorder = self._recorder
        known = next((row for key, row in self.open if key == id(error)), None)
        number = self._next if known is None else known.n
        self._next += known is None
        message = _message(error)
        frames, site = self._frames(tb, frame)
        row = Raised(
            n=number,
            type=name(type(error).__name__),
            message=message,
            frames=frames,
            site=site,
            moment=recorder.moments.now() if recorder.moments.last >= 0 else None,
            call=call if known is None or call is not None else known.call,
            facts=facts_in(message),
            family=family_of(message),
        )
        self.open[:] = [entry for entry in self.open if entry[0] != id(error)]
        self.open.append((id(error), row))
        recorder.writer.add("raised", row)
        return number

    def _frames(self, tb: TracebackType | None, frame: FrameType | None) -> tuple[tuple[Frame, ...], int | None]:
        """List the frames from the program's outermost to the innermost; also return the user's innermost site."""
        places: list[_Place] = []
        while frame is not None:
            places.append((frame.f_code, frame.f_lasti, frame.f_lineno or 1))
            frame = frame.f_back
        places.reverse()
        inner: list[_Place] = []
        while tb is not None:
            inner.append((tb.tb_frame.f_code, tb.tb_lasti, tb.tb_lineno or 1))
            tb = tb.tb_next
        if places and inner and _function(places[-1][0]) == _function(inner[0][0]):
            places.pop()  # the traceback begins with the frame that the stack ends with
        return self._limit_frames([*places, *inner])

    def _limit_frames(self, places: list[_Place]) -> tuple[tuple[Frame, ...], int | None]:
        sites, most = self._recorder.sites, self._recorder.options.caps.frames
        first = next((i for i, place in enumerate(places) if sites.is_user_file(place[0].co_filename)), len(places))
        rows: list[Frame] = []
        site: int | None = None
        for code, lasti, line in places[first:]:
            filename = code.co_filename
            if filename.startswith(OURS):
                continue
            user = sites.is_user_file(filename)
            if user:
                site = sites.at_instruction(code, lasti, line)
            path, function = short_path(filename, sites.folder), name(code.co_qualname)
            rows.append(Frame(path=path, line=max(line, 1), function=function, user=user))
        if len(rows) > most:
            rows = [*rows[: most // 2], *rows[-(most - most // 2) :]]
        return tuple(rows), site


def _function(code: CodeType) -> tuple[str, str]:
    return code.co_filename, code.co_qualname


def short_path(filename: str, folder: str) -> str:
    """Shorten a path below the folder, or a library's from its package on; others stay. folder: "": none."""
    if folder and filename.startswith(folder):
        return cut(filename.removeprefix(folder), 4096)
    for mark in _LIBRARIES:
        if mark in filename:
            return cut(filename.rsplit(mark, 1)[1], 4096)
    return cut(filename, 4096)


def _is_torchs(error: BaseException) -> bool:
    """Return whether torch raised the exception, or its text is one of torch's, as for an assignment to `.grad`."""
    return isinstance(error, (RuntimeError, NotImplementedError)) or family_of(_message(error)) is not None


def _message(error: BaseException) -> str:
    try:
        return cut(str(error))
    except Exception:
        return "<its __str__ raised>"
