"""The life of one child, from the fork to its end: lock itself down, say so, wait for `go`, run the program, exit.

1. Only here, after the fork, is the snippet read, and after `go`: a child can be locked before there is one. But for
   files that are to lie where it may not write once it is locked: they are written before.
2. Nothing of the user runs before `go`. After it, no exit code means "ours".
3. It ends through an `_exit` that was saved before: the program may replace `os._exit`.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import io
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Final, NoReturn

import msgspec

from backprobe import capture
from backprobe.capture.program.warm_up import rehearse
from workers.sandbox.process.lockdown import PROGRAM, SYNC, Surroundings, lock, own_descriptors
from workers.sandbox.process.program import Program
from workers.sandbox.process.scratch import lay_out

LOCKED: Final = b"locked"
GO: Final = b"go"
RECORD: Final = 3
BROKEN: Final = 97
"""Exit code when the child failed before `go`, or capture itself did; after `go` it is a code like any other."""

_exit: Final = os._exit
_write: Final = os.write


_PROGRAM: Final = msgspec.msgpack.Decoder(Program)


def live(around: Surroundings) -> NoReturn:
    """Be the child; called in the forked process, never returns into the zygote's loop."""
    code = BROKEN
    try:
        own_descriptors(around)
        if _locked(around) and _allowed_to_go():
            program = _program()
            if program.on_disk and not around.order.laid_out:
                lay_out(str(Path.cwd()), program.files)
            os.close(PROGRAM)
            code = run(program)
    except BaseException:  # noqa: BLE001 - the last fence of a process: nothing may return into the zygote
        traceback.print_exc()
    finally:
        _exit(code)


def run(program: Program) -> int:
    """Run the program as `python ENTRY ARGUMENTS` would; the exit code comes back."""
    streams = _fresh_streams()
    faulthandler.enable(file=2)  # a crash in native code then shows the Python line on stderr
    gc.enable()
    if program.threads > 1:
        sys.modules["torch"].set_num_threads(program.threads)
    caps = capture.Caps(record_bytes=program.record_bytes, rows=program.record_rows)
    options = capture.Options(
        tier=program.tier,
        entry="service",
        every=program.every,
        histograms=program.histograms,
        check="full" if program.check else "off",
        seed=program.seed,
        caps=caps,
    )
    if program.on_disk:
        end = capture.run_folder(Path.cwd(), program.entry, program.arguments, options, _record_sink())
    else:
        end = capture.run_files(program.files, program.entry, program.arguments, options, _record_sink())
    steps = (threading, "_shutdown"), (atexit, "_run_exitfuncs"), (sys, "stdout.flush"), (sys, "stderr.flush")
    for owner, name in (*steps, *((stream, "flush") for stream in streams)):
        with contextlib.suppress(BaseException):  # as python does at its end: what fails here changes no exit code
            attrgetter(name)(owner)()  # looked up at its turn: the program may have put another there, or taken it away
    return end.exit_code & 0xFF


def _locked(around: Surroundings) -> bool:
    """Lock down, and say so, with the CPU seconds that it took: they are ours, not the program's."""
    began = time.process_time()
    try:
        if around.order.laid_out:
            lay_out(around.folder, _program().files)
        lock(around)
        if around.order.ahead:
            rehearse()
    except Exception as error:  # noqa: BLE001 - a failed step of any kind: it is reported to the supervisor
        _write(SYNC, f"{type(error).__name__}: {error}"[:1000].encode("utf-8", "backslashreplace"))
        return False
    _write(SYNC, b"%s %.6f" % (LOCKED, max(0.0, time.process_time() - began)))  # its clock begins again in a namespace
    return True


def _allowed_to_go() -> bool:
    answer = os.read(SYNC, 16)
    os.close(SYNC)
    return answer == GO


def _program() -> Program:
    return _PROGRAM.decode(os.pread(PROGRAM, os.fstat(PROGRAM).st_size, 0))


def _record_sink() -> Callable[[bytes], None]:
    """Return a function that writes frames to the record pipe. Once the pipe is closed it writes nothing more."""
    broken = False

    def sink(frames: bytes) -> None:
        nonlocal broken
        left = memoryview(frames)
        while left and not broken:
            try:
                left = left[_write(RECORD, left) :]
            except OSError:
                broken = True

    return sink


def _fresh_streams() -> tuple[io.TextIOWrapper, io.TextIOWrapper]:
    """stdin, stdout and stderr as python makes them, but written line by line: a killed child keeps what it printed.

    The two that are written to come back: what waits in them is the program's, also where it put others in their place.
    """
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8")
    sys.stdout = sys.__stdout__ = _writer(1, "strict")
    sys.stderr = sys.__stderr__ = _writer(2, "backslashreplace")
    return sys.stdout, sys.stderr


def _writer(descriptor: int, errors: str) -> io.TextIOWrapper:
    raw = io.FileIO(descriptor, "w", closefd=False)
    stream = io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", errors=errors, line_buffering=True)
    stream.mode = "w"  # pyright: ignore[reportAttributeAccessIssue] - python sets it on its own streams too
    return stream
