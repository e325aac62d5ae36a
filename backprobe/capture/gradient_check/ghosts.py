"""Ghosts: forks of the program that compute its step once more, with one thing changed, and tell what came out.

parent   ask(seconds) -----------------------------> waits, reads the answer, goes on as if nothing had been
ghost    ask(seconds) returns None: it is a ghost, and goes on in the program's own code up to the optimizer's step
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import stat
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Final

import msgspec
import torch

from backprobe.capture.gradient_check.confinement import Region, confine, descriptors, shared_regions
from backprobe.capture.instrument.torch_taps import Observers

MOST_BYTES: Final = 64 << 20
"""Of one answer."""


class Value(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value at an explicit cut.

    Attributes:
        function: What cut. filename, line: where, in the program's innermost frame. kind: tensor or number.
        dtype, shape, elements: Of a tensor, its bytes. number: Of a number.
    """

    function: str
    filename: str
    line: int
    kind: str = "number"
    dtype: str = ""
    shape: tuple[int, ...] = ()
    elements: bytes = b""
    number: float = 0.0


class FunctionCheck(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A custom Function compared alone, at the inputs that it had in the step.

    Attributes:
        name: Its class. filename, line: of its `backward`. verdict: agrees, differs, identity (it hands its input on,
            so that its backward is what it is for), flat (its derivative is 0 almost everywhere), surrogate (its
            derivative is constant but for jumps, and its backward is not), unknown.
        numeric, used: Along one direction.
    """

    name: str
    filename: str
    line: int
    verdict: str
    numeric: float = 0.0
    used: float = 0.0


class Answer(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a ghost tells as it ends.

    Attributes:
        roots: For each backward call that accumulates, the sum of its roots times their gradients.
        cuts: Values at explicit cuts, in order; only of the ghost in which nothing was moved. changed: numbers of those
            whose value differs from it. error: Why it did not reach the step; empty: it did.
        functions: Custom Functions that were compared alone. unheld: a cut's value could not be held.
        half: Some function gave a tensor in half precision.
    """

    roots: tuple[float, ...] = ()
    cuts: tuple[Value, ...] = ()
    changed: tuple[int, ...] = ()
    error: str = ""
    functions: tuple[FunctionCheck, ...] = ()
    unheld: bool = False
    half: bool = False


_ENCODE: Final = msgspec.msgpack.Encoder().encode
_DECODER: Final = msgspec.msgpack.Decoder(Answer)


_LENGTH: Final = struct.Struct("<Q")
"""Before an answer: whoever was forked in a ghost holds its pipe open, so that its end tells nothing."""


@dataclass(slots=True)
class Ghost:
    """This process, if it is one: where it answers.

    Attributes:
        pid: A copy that native code made of it is not the ghost, and tells nothing.
    """

    descriptor: int
    pid: int

    def end(self, answer: Answer) -> None:
        """Tell, and end without anything that the interpreter or the program does at its end."""
        try:
            data = _frame_answer(answer)
            while data and self.pid == os.getpid():
                data = data[os.write(self.descriptor, data) :]
        finally:
            os._exit(0)


def _frame_answer(answer: Answer) -> bytes:
    data = _ENCODE(answer)
    if len(data) > MOST_BYTES:
        data = _ENCODE(Answer(error="it has more to tell than is kept"))
    return _LENGTH.pack(len(data)) + data


def ask(seconds: int) -> Answer | Ghost:
    """Fork: the ghost's answer in the parent, the ghost itself in the fork.

    A ghost that does not answer within `seconds` is ended. Files that are open keep the place at which they are read.

    Raises:
        OSError: no process could be started, or the kernel does not tell which memory is shared.
    """
    places, shared = _places(), shared_regions()  # a fork in a sandbox may not read its own /proc
    reads, writes = os.pipe()
    observers, Observers.now = Observers.now, None  # it is not the program that forks
    try:
        pid = os.fork()
    except OSError:
        os.close(reads)
        os.close(writes)
        raise
    finally:
        Observers.now = observers
    if pid == 0:
        return _born(reads, writes, seconds, shared)
    os.close(writes)
    try:
        data = _read(reads, time.monotonic() + seconds + 1)
    finally:
        os.close(reads)
        for end in (os.killpg, os.kill):  # with what native code in it has forked
            with contextlib.suppress(OSError):
                end(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(pid, 0)
        _put_back(places)
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError:
        return Answer(error="it did not reach the step in time")


def _born(reads: int, writes: int, seconds: int, shared: Sequence[Region]) -> Ghost:
    Observers.now = None
    try:
        os.close(reads)
        confine(writes, seconds, shared)
        torch.set_num_threads(1)  # threads of the pool do not survive a fork
    except BaseException as error:
        os.write(
            writes, _frame_answer(Answer(error=f"it could not be confined: {type(error).__name__}: {error}"[:500]))
        )
        os._exit(1)
    return Ghost(writes, os.getpid())


def _read(descriptor: int, deadline: float) -> bytes:
    data, whole = bytearray(), _LENGTH.size
    while len(data) < whole and (left := deadline - time.monotonic()) > 0:
        if not select.select([descriptor], [], [], left)[0]:
            break
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            break
        data += piece
        if whole == _LENGTH.size <= len(data):
            whole += min(_LENGTH.unpack_from(data)[0], MOST_BYTES)
    return bytes(data[_LENGTH.size : whole]) if len(data) >= whole else b""


def _places() -> dict[int, int]:
    """Return where files that are open for reading alone are read: a fork shares it.

    Those open for writing lead to /dev/null in the ghost, and another thread may write to them meanwhile.
    """
    found: dict[int, int] = {}
    for number in descriptors():
        with contextlib.suppress(OSError):
            is_read = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
            if is_read and stat.S_ISREG(os.fstat(number).st_mode):
                found[number] = os.lseek(number, 0, os.SEEK_CUR)
    return found


def _put_back(places: dict[int, int]) -> None:
    for number, place in places.items():
        with contextlib.suppress(OSError):
            if os.lseek(number, 0, os.SEEK_CUR) != place:
                os.lseek(number, place, os.SEEK_SET)


def place_of(frame: FrameType | None, is_user_file: Callable[[str], bool]) -> tuple[str, int]:
    """File and line of the program's innermost frame; empty and 0 if there is none."""
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0
