"""The capture of a child process of `multiprocessing`, from its first statement to its last, in a separate record.

    spawn, forkserver    the child unpickles what `told` added to its preparation data, before it imports the program
    fork                 the child takes over what it inherits: code with taps, whose numbers must mean the same

1. Where it fails the child runs as it would without us, and its parent finds no record.
2. What was written is read by another process while this one is killed, so all that a child tells anyone comes later.
"""

from __future__ import annotations

import builtins
import fcntl
import os
import runpy
import sys
import traceback
from dataclasses import dataclass, replace
from multiprocessing import connection, queues, spawn, synchronize
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from backprobe.capture.instrument.child_processes import Starting
from backprobe.capture.instrument.installer import Instrument
from backprobe.capture.instrument.torch_taps import Observers
from backprobe.capture.options import Caps, Options
from backprobe.capture.program.compiler import Tapping
from backprobe.capture.program.dynamo import Watcher
from backprobe.capture.program.header import header
from backprobe.capture.program.importer import FolderFinder, Hook
from backprobe.capture.program.main_module import TAP_FRAMES
from backprobe.capture.program.pickling import Picklers
from backprobe.capture.recorder import CaptureSession
from backprobe.record import End
from backprobe.record.encoding.codec import MAGIC
from backprobe.record.processes import Family

if TYPE_CHECKING:
    from backprobe.capture.torch_access.code_patch import Swaps

PARENT: Final = "before this process"
_PARENT_WHY: Final = "what happened before this child process began is in the record of its parent"
_FIRST_DESCRIPTOR: Final = 200
"""High, so that the program's own files get the numbers that they would have without us."""

_BEGIN: Final = """\
try:
    from backprobe.capture.program.child_run import begin_spawned
except Exception:
    pass
else:
    begin_spawned(told)
"""
"""What a spawned child runs as it unpickles; it need not have Backprobe."""


@dataclass(slots=True)
class Live:
    """The capture of this process; a forked child finds its parent's.

    Attributes:
        folder: The program's, whose files carry taps.
        pid: The process that it is of.
        is_child: It is that of a child, which ends with the child's `_bootstrap`.
        raised: Number of the exception that ended the child.
    """

    recorder: CaptureSession
    instrument: Instrument
    compiler: Tapping
    folder: str
    pid: int
    is_child: bool = False
    raised: int | None = None
    now: ClassVar[Live | None] = None


class BeginCapture:
    """A value that begins the capture of the child that unpickles it."""

    def __init__(self, told: dict[str, Any]) -> None:
        self._told = told

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (_BEGIN, {"told": self._told})


def begin_spawned(told: dict[str, Any]) -> None:
    """In a process that `spawn` or `forkserver` made, which has imported nothing of the program yet."""
    try:
        place = Family(**told["place"])
        options = Options(
            tier=told["tier"], entry=told["entry"], every=told["every"], histograms=told["histograms"], family=place,
            check=told["check"], first_steps=told["first_steps"], first_facts=told["first_facts"],
            caps=msgspec.convert(told["caps"], Caps),
        )  # fmt: skip
        live = _begin_record(options, place, told["folder"])
        guard = live.recorder.guard
        finder = FolderFinder(Path(told["folder"]), live.compiler)
        for part in (Hook(finder), Watcher(guard), Picklers(live.compiler.plain, guard)):
            part.__enter__()
        _tap_main(live.compiler)
        sys.setrecursionlimit(sys.getrecursionlimit() + TAP_FRAMES)
    except Exception:
        _give_up()


def _tap_main(compiler: Tapping) -> None:
    """Tap the program's file when the child imports it as `__mp_main__`; `runpy` has no source to swap."""

    def code_from_file(*given: Any) -> Any:
        _RUNPY._get_code_from_file = _PLAIN_CODE
        found, filename = _PLAIN_CODE(*given), given[-1]
        code = compiler(Path(filename).read_bytes(), filename, Path(filename).name)
        return (code, *found[1:]) if isinstance(found, tuple) else code

    _RUNPY._get_code_from_file = code_from_file


_RUNPY: Final[Any] = runpy
"""By its private function `multiprocessing` loads the program's file in a child; there is no public place before it."""

_PLAIN_CODE: Final = _RUNPY._get_code_from_file


def begin_forked(place: Family, parent: Live) -> None:
    """In a process that was forked from a captured one."""
    try:
        parent.instrument.take_out()
        old = parent.recorder
        live = _begin_record(replace(old.options, family=place, seed=None), place, parent.folder, parent.compiler)
        live.recorder.sites.take_over(old.sites)
        live.recorder.main = old.main
    except Exception:
        _give_up()


def _begin_record(options: Options, family: Family, folder: str, compiler: Tapping | None = None) -> Live:
    """Begin a record in the file of the child's place."""
    if options.tier == "deep":
        options = replace(options, tier="full")  # a child is not run a second time
    descriptor = os.open(family.record, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
    kept = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(descriptor)
    recorder, instrument = CaptureSession(options, lambda frames: _write(kept, frames)), Instrument()
    compiler = compiler or Tapping(recorder)
    compiler.recorder = recorder
    live = Live.now = Live(recorder, instrument, compiler, folder, os.getpid(), is_child=True)
    recorder.sites.rows = []
    instrument.put(recorder)
    put_followers(instrument.swaps)
    _write(kept, MAGIC)
    recorder.writer.begin(header(options, sys.argv, instrument.fallbacks))
    recorder.writer.cut(PARENT, _PARENT_WHY)
    recorder.threads.here()
    family.note(pid=os.getpid())
    return live


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _give_up() -> None:
    """Let the child go on without capture."""
    live = Live.now
    if live is not None and live.pid == os.getpid():
        Live.now = None
        live.recorder.guard.apart(live.instrument.take_out)


def _here() -> Live | None:
    """Return the capture of this process, if it is a child."""
    live = Live.now
    return live if live is not None and live.is_child and live.pid == os.getpid() else None


# ---- what the swapped functions call


def prepare_child(given: dict[str, Any]) -> dict[str, Any]:
    """Add to what a spawned child receives first that its capture is to begin."""
    live, place = Live.now, Starting.here.place
    if live is not None and place is not None and Observers.now is not None:
        options = live.recorder.options
        names = ("tier", "entry", "every", "histograms", "check", "first_steps", "first_facts")
        told = {name: getattr(options, name) for name in names}
        told |= {"caps": msgspec.to_builtins(options.caps), "folder": live.folder, "place": msgspec.to_builtins(place)}
        given["backprobe"] = BeginCapture(told)
    return given


def boot_begins() -> None:
    """Open what a child process runs."""
    live, place = Live.now, Starting.here.place
    Starting.here.place = None
    if live is None:
        return
    if live.pid != os.getpid():
        Live.now = None
        if place is not None:
            begin_forked(place, live)
    elif live.is_child:
        _RUNPY._get_code_from_file = _PLAIN_CODE
        live.recorder.main = sys.modules.get("__main__")


def boot_raised() -> None:
    """Open `print_exc` and `format_exc`: only by these `multiprocessing` and torch show what ended a child."""
    live, caller = _here(), sys._getframe(2)
    if live is not None and caller.f_code.co_filename.endswith(_BOOTS):
        recorder, error = live.recorder, sys.exc_info()[1]
        if error is not None:
            live.raised = recorder.guard.run(recorder.failures.uncaught, error, error.__traceback__)


_BOOTS: Final = ("multiprocessing/process.py", "torch/multiprocessing/spawn.py")


def boot_gave(code: Any) -> Any:
    """Record the exit code of a child process."""
    live = _here()
    if live is not None:
        Live.now = None
        live.recorder.guard.apart(_end, live, code)
    return code


def _end(live: Live, code: int) -> None:
    recorder, observers = live.recorder, Observers.now
    guard = recorder.guard
    try:
        guard.run(recorder.finish)
        if observers is not None:
            guard.apart(observers.children.settle)
        end = End(
            ending="raised" if live.raised is not None else "exited" if code else "ended",
            exit_code=code & 0xFF,
            exception=live.raised,
            duration_ns=recorder.writer.time_ns(),
            own_ns=guard.own_ns,
            own_errors=guard.errors,
            own_error=guard.first,
        )
        recorder.writer.end(end)
    finally:
        live.instrument.take_out()
        recorder.close()


def tells() -> None:
    """Flush the record before a child tells other processes something: they may end it at once."""
    live = _here()
    if live is not None:
        live.recorder.guard.run(live.recorder.writer.flush)


_NAMES: Final = {
    "__bp_prepared__": prepare_child,
    "__bp_boot__": boot_begins,
    "__bp_boot_raised__": boot_raised,
    "__bp_boot_gave__": boot_gave,
    "__bp_tells__": tells,
}
_NOTHING: Final = "__bp_nothing__()"


def put_followers(swaps: Swaps) -> None:
    """Follow what is started from now on."""
    for name, function in _NAMES.items():
        setattr(builtins, name, function)
    swaps.put(spawn.get_preparation_data, _NOTHING, _NOTHING, "__bp_prepared__()")
    swaps.put(BaseProcess._bootstrap, "__bp_boot__()", _NOTHING, "__bp_boot_gave__()")  # type: ignore[attr-defined]  # all that a child runs
    for function in (traceback.print_exc, traceback.format_exc):
        swaps.put(function, "__bp_boot_raised__()", _NOTHING)
    for function in (queues.Queue.put, queues.SimpleQueue.put, connection.Connection.send, synchronize.Event.set):
        swaps.put(function, "__bp_tells__()", _NOTHING)
