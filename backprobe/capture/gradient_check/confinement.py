"""Whether a step can have ghosts, and what a ghost may do: compute. It writes and sends nothing, and ends in time.

descriptors     pipes, sockets, terminals and files open for writing lead to /dev/null
files           none grows (RLIMIT_FSIZE 0); with Landlock none is opened for writing, made or removed
other processes queues and connections are refused; tensors that they share are copied
audit events    opening for writing, removing, connecting, starting a process: refused, as OSError
time            RLIMIT_CPU and an alarm that the program cannot catch; what it forks by native code ends with it
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import resource
import signal
import stat
import struct
import sys
import threading
from collections.abc import Sequence
from multiprocessing import connection, queues
from pathlib import Path
from typing import Any, Final

import torch

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
_CREATE_RULESET, _RESTRICT_SELF = 444, 446
"""Numbers of Landlock's system calls, the same on every machine (linux/landlock.h)."""

_MAP_FIXED: Final = 0x10
"""Of mmap, which Python does not name (asm-generic/mman-common.h)."""

_WRITES: Final = (1 << 1) | (0x3FF << 4) | (1 << 13)
"""LANDLOCK_ACCESS_FS_WRITE_FILE; REMOVE_DIR to MAKE_SYM; REFER. TRUNCATE (1 << 14) came with version 3."""

_EVENTS: Final = """
os.remove os.rename os.rmdir os.mkdir os.link os.symlink os.truncate os.chmod os.chown os.utime os.kill os.killpg
os.fork os.forkpty os.posix_spawn os.exec os.system subprocess.Popen socket.connect socket.bind socket.sendto
socket.sendmsg shutil.rmtree shutil.move signal.pthread_kill
"""
_REFUSED: Final = frozenset(_EVENTS.split())
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def confine(kept: int, seconds: int, shared: Sequence[Region]) -> None:
    """Put this process, which was forked for a ghost, under its limits; there is no way back.

    Args:
        kept: The descriptor through which it answers. seconds: Of processor and of wall time.
        shared: What `shared_regions` said before the fork: in a sandbox a fork cannot ask.
    """
    with contextlib.suppress(OSError):
        os.setpgid(0, 0)  # a new group: what native code forks in it, unseen by audit events, ends with it
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_CORE):
        with contextlib.suppress(ValueError, OSError):  # the sandbox lets nobody change a limit
            resource.setrlimit(limit, (0, 0))
    torch._C.PyTorchFileWriter = _refuse  # type: ignore[misc]  # it opens files without an audit event
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    _cut_off()
    _own_memory(libc, shared)
    _silence(kept)
    _restrict(libc)
    sys.addaudithook(_audit)


def _silence(kept: int) -> None:
    """Lead every descriptor that another process could notice to /dev/null."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in descriptors():
        if number in (kept, null):
            continue
        with contextlib.suppress(OSError):
            if number <= 2 or _leads_out(number):
                os.dup2(null, number)


def descriptors() -> list[int]:
    """Numbers of descriptors that may be open; a sandbox may shut /proc to who is not to be looked at."""
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1 << 16)))


def _leads_out(number: int) -> bool:
    mode = os.fstat(number).st_mode
    if stat.S_ISREG(mode):
        return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    if stat.S_ISCHR(mode):
        return os.isatty(number)
    return not stat.S_ISDIR(mode)


def _restrict(libc: Any) -> None:
    """Let the kernel refuse what changes files, where it has Landlock; where not, only the audit events do."""
    for writes in (_WRITES | (1 << 14), _WRITES, _WRITES & ~(1 << 13)):  # versions 3, 2 and 1
        rules = struct.pack("<Q", writes)
        ruleset = libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), 0)
        if ruleset >= 0:
            libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            libc.syscall(_RESTRICT_SELF, ruleset, 0)
            os.close(ruleset)
            return


def _refuse(*_: Any, **__: Any) -> Any:
    raise OSError("a check of gradients may not write")


def _audit(event: str, given: tuple[Any, ...]) -> None:
    if event in _REFUSED:
        raise OSError(f"a check of gradients may not {event}")
    if event == "open" and _is_writing(given):
        raise OSError("a check of gradients may not write")


def _is_writing(given: tuple[Any, ...]) -> bool:
    path, mode, flags = given
    if path == os.devnull or isinstance(path, int):
        return False
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


_WAITING: Final = frozenset(
    {
        ("threading.py", "wait"),
        ("threading.py", "_wait_for_tstate_lock"),
        ("threading.py", "join"),
        ("selectors.py", "select"),
        ("connection.py", "wait"),
        ("socket.py", "accept"),
    }
)
"""File and function in which a thread of the standard library waits: it computes nothing that a step could need."""

_HARMLESS: Final = ("__KMP_REGISTERED_LIB", "/dev/shm/sem.")  # noqa: S108 - looked for in a list; no file is opened
"""Names of shared memory that a copy of the process may have too: of OpenMP, and of locks that no child holds."""

_TENSORS: Final = "/dev/shm/torch_"  # noqa: S108 - looked for in a list; no file is opened
"""Name of shared memory that holds tensors: a copy of the process gets its own."""

Region = tuple[int, int, str]
"""Begin, end and name of a part of this process's memory."""

_MOST_SHARED_BYTES: Final = 1 << 30


def why_not_checked(optimizers: list[Any], *, is_compiled: bool) -> str | None:
    """Return why the step that begins is not checked; None: it can be."""
    if is_compiled:
        return "the step runs compiled code"
    if not sys.platform.startswith("linux"):
        return "the check needs Linux"
    busy = _busy_thread()
    if busy is not None:
        return f"the thread {busy!r} of the program runs: a copy of the process would not have it"
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return "the process is one of a group: a copy of it cannot take part in what they exchange"
    if not _is_unnoticed(signal.getsignal(signal.SIGCHLD)):
        return "the program handles SIGCHLD: it would notice the copies"
    held = [tensor for optimizer in optimizers for group in optimizer.param_groups for tensor in group["params"]]
    if any(tensor.device.type != "cpu" for tensor in held):
        return "parameters are on a device: a process that uses one cannot be copied"
    if any(tensor.is_shared() for tensor in held):
        return "parameters are shared with other processes"
    return "memory is shared with other processes" if _shares() else None


def _busy_thread() -> str | None:
    """Return the name of another thread that does not just wait; None if there is none."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if thread is threading.current_thread() or frame is None:
            continue
        code = frame.f_code
        if (os.path.basename(code.co_filename), code.co_name) not in _WAITING:
            return thread.name
    return None


def _is_unnoticed(handler: Any) -> bool:
    """Who handles the end of a child asks only for its own: the handler of torch's DataLoader, or none."""
    if handler in (signal.SIG_DFL, None):
        return True
    return getattr(handler, "__module__", None) == "torch.utils.data._utils.signal_handling"


def shared_regions() -> list[Region]:
    """Begin, end and name of the memory of files that this process writes and others have too.

    Raises:
        OSError: the kernel does not tell.
    """
    found: list[Region] = []
    for line in Path("/proc/self/maps").read_text(errors="replace").splitlines():
        place, rights, rest = line.split(" ", 2)
        if rights in ("rw-s", "rwxs") and "/" in rest and not any(name in rest for name in _HARMLESS):
            begin, end = (int(part, 16) for part in place.split("-"))
            found.append((begin, end, rest[rest.index("/") :]))
    return found


def _shares() -> bool:
    """Memory of this process is another one's too, and a copy cannot get its own."""
    try:
        regions = shared_regions()
    except OSError:
        return True
    shared = sum(end - begin for begin, end, _name in regions)
    return shared > _MOST_SHARED_BYTES or not all(name.startswith(_TENSORS) for _begin, _end, name in regions)


def _own_memory(libc: Any, shared: Sequence[Region]) -> None:
    """Put a private copy in the place of each tensor that another process has too: batches of a DataLoader, say."""
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 4]
    for begin, end, _name in shared:
        content = ctypes.string_at(begin, end - begin)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_FIXED
        if libc.mmap(begin, end - begin, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0) != begin:
            raise OSError("memory that is shared could not be copied")
        ctypes.memmove(begin, content, end - begin)


def _cut_off() -> None:
    """Refuse what would speak to other processes, before it takes one of the locks that are shared with them."""
    for kind in (queues.Queue, queues.SimpleQueue):
        kind.get = kind.put = _refuse_to_speak  # type: ignore[method-assign] - replaced in this process only
    connection.Connection.send = connection.Connection.recv = _refuse_to_speak  # type: ignore[method-assign] - replaced in this process only
    connection.Connection.send_bytes = connection.Connection.recv_bytes = _refuse_to_speak  # type: ignore[method-assign] - replaced in this process only


def _refuse_to_speak(*_: Any, **__: Any) -> Any:
    raise OSError("a check of gradients may not speak to other processes")
