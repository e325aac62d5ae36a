"""What a child does to itself before any user code: the steps of its level, in this order; one that raises ends it.

At `none` nothing of the service is inherited, resources are limited, and the process group can be ended; that holds no
one who attacks. `process` adds NO_NEW_PRIVS, Landlock and seccomp. `namespace` begins with its own namespaces, in
which the program is pid 1, and a private /tmp. `gvisor` has its own kernel around all runs of its warm process,
which has no Landlock: its own root and its own uid stand in for it there.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import resource
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from backprobe.isolation import IsolationLevel
from workers.sandbox.gvisor import guest_root
from workers.sandbox.process import landlock, namespaces, orphans, seccomp
from workers.sandbox.process.messages import Fork

OPEN_FILES: Final = 64
MORE_OPEN_FILES: Final = 256
"""Where a run may have several processes: tensors travel between them by descriptor, one each. And where it has a
device: its driver opens tens of them."""

STACK_BYTES: Final = 512 << 20
"""Soft limit of the main thread's stack: engines recurse through deep graphs. It grows at run time; threads take
theirs from the 8 MiB that the zygote was exec'ed with."""

_MORE_TASKS: Final = 512
"""RLIMIT_NPROC counts the tasks of a uid, not of a run: this is a backstop for the host, not the limit `processes`."""

_MORE_THREADS: Final = 32
"""In its own user namespace a run's tasks are counted alone: those of torch, and so many of the program's."""

_NO_DISK_BYTES: Final = 0
"""Nothing can be written at level `process`: no folder is limited there without a mount namespace. Files of the run are
written before this holds."""

OUT_OF_MEMORY_SCORE: Final = 1000
"""`oom_score_adj` of a child: where the machine runs out of memory, the kernel ends a run before the worker, and the
largest run first."""

APART: Final = b"apart"
PLACED: Final = b"placed"
"""Said on `SYNC` by a child that has its user namespace, and by the supervisor that has given it its cgroup and uid."""

SYNC: Final = 4
"""The descriptor on which a child says that it is locked, and waits for `go`."""

PROGRAM: Final = 5
"""The descriptor of the program: read after `go`, and closed before any of it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the zygote prepared for one child.

    Attributes:
        zygote: Its pid; vm_bytes: its address space.
        folder: The private folder; it exists and is empty, but for the files of a run that may not write there.
        descriptors: stdin, stdout, stderr, record, sync, program: they become 0 to 5.
        environment: The variables beside those that every child gets.
        level: How much it is locked down.
        folders: What it may read, from `process` on.
        calls: The compiled filter of system calls, from `process` on.
        ours: Descriptors to close; None: all but the six. What a device's driver has opened must stay open.
        root: The folder that becomes its root, at level `gvisor`.
    """

    order: Fork
    zygote: int
    vm_bytes: int
    folder: str
    descriptors: tuple[int, int, int, int, int, int]
    environment: dict[str, str]
    level: IsolationLevel = "none"
    folders: tuple[str, ...] = ()
    calls: bytes = b""
    ours: tuple[int, ...] | None = None
    root: str = ""


def own_descriptors(around: Surroundings) -> None:
    """Those of `Surroundings`, in their places; every other descriptor is closed. Before all other steps."""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 512) for fd in around.descriptors]
    for place, fd in enumerate(high):
        os.dup2(fd, place, inheritable=place <= 2)
    if around.ours is None:
        os.closerange(PROGRAM + 1, 1 << 20)
        return
    for fd in {*high, *around.ours} - set(range(PROGRAM + 1)):
        os.close(fd)


def first_to_end(around: Surroundings) -> None:
    """Where the machine runs out of memory, this process ends before the worker and the warm process."""
    with contextlib.suppress(OSError) if around.level == "none" else contextlib.nullcontext():
        Path("/proc/self/oom_score_adj").write_text(str(OUT_OF_MEMORY_SCORE), encoding="ascii")


def own_session(_: Surroundings) -> None:
    """Lead a new session and process group, to be ended as one; orphans of the run come back to it."""
    os.setsid()
    orphans.adopt_orphans()


def python_signals(_: Surroundings) -> None:
    """Set the signal dispositions that `python script.py` starts with, and block nothing."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def own_folder(around: Surroundings) -> None:
    """Make the private folder the working directory."""
    os.chdir(around.folder)
    os.umask(0o077)


def own_namespaces(around: Surroundings) -> None:
    """From here on another process, pid 1 of its namespaces; the first one stands outside as its relay.

    Where the supervisor gives a cgroup and a uid, it does so before anything is forked.
    """
    place = _be_placed if around.order.placed else None
    namespaces.enter(around.zygote, around.order.uid, place)


def own_mounts(around: Surroundings) -> None:
    """Mount a private /tmp of the size asked for and /proc of this pid namespace; set the loopback device up."""
    namespaces.fresh_mounts(around.order.file_bytes, landlock.not_below(around.folders))
    namespaces.loopback_up()
    socket.sethostname("localhost")  # of this run alone: gloo looks its own name up


def no_capabilities(_: Surroundings) -> None:
    """Those that came with the user namespace go."""
    namespaces.no_capabilities()


def own_root(around: Surroundings) -> None:
    """Under a kernel of the sandbox's own: a root that shows what Python needs, a private /tmp and its own /proc."""
    guest_root.enter(around.root)


def own_uid(around: Surroundings) -> None:
    """Under a kernel of the sandbox's own: a uid that no other run in flight has; with root go the capabilities.

    Raises:
        PermissionError: some are left, or no uid was given.
    """
    uid = around.order.uid
    if not uid:
        raise PermissionError("no uid was given to the run")
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    orphans.prctl(orphans.PR_SET_NO_NEW_PRIVS, 1)
    told = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    if int(told["CapPrm"], 16) or int(told["CapEff"], 16):
        raise PermissionError(f"capabilities are left: {told['CapPrm']}")


def limits(around: Surroundings) -> None:
    """Resource limits: soft = hard, so that the program cannot raise them.

    But for CPU time: at the soft limit the kernel says why it kills, by SIGXCPU; a program that ignores that, or is
    deaf to it as pid 1 of a namespace, is killed by SIGKILL a second later.
    """
    order = around.order
    resource.setrlimit(resource.RLIMIT_CPU, (order.cpu_seconds, order.cpu_seconds + 1))
    _limit(resource.RLIMIT_FSIZE, _NO_DISK_BYTES if around.level == "process" else order.file_bytes)
    _limit(resource.RLIMIT_NOFILE, open_files(order))
    _limit(resource.RLIMIT_CORE, namespaces.NO_CORE)
    _limit(resource.RLIMIT_MEMLOCK, 0)
    if around.level != "gvisor":  # whose kernel has no message queues, and refuses
        _limit(resource.RLIMIT_MSGQUEUE, 0)
    alone = around.level in ("namespace", "gvisor")
    # one more than its cgroup, which counts what it refuses
    _limit(resource.RLIMIT_NPROC, tasks(order) + 1 if alone else _tasks() + _MORE_TASKS)
    if order.memory_bytes:
        _limit(resource.RLIMIT_AS, around.vm_bytes + order.memory_bytes)
    hard = resource.getrlimit(resource.RLIMIT_STACK)[1]
    soft = STACK_BYTES if hard == resource.RLIM_INFINITY else min(STACK_BYTES, hard)
    resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))


def few_files(around: Surroundings) -> None:
    """NO_NEW_PRIVS and Landlock: what Python and torch need is readable, the private /tmp is writable, no TCP.

    Files that were written into a folder before it was locked are readable, and no more than that.
    """
    private = ("/tmp", "/dev/shm") if around.level == "namespace" else ()  # noqa: S108 private
    apart = around.level == "namespace"
    own = (around.folder,) if around.order.laid_out else ()
    landlock.landlock((*around.folders, *own), private, sockets=around.order.processes > 1, apart=apart)


def bare_environment(around: Surroundings) -> None:
    """Replace the environment by a fixed one, without any variable of the worker.

    The first optimizer of a process that is not fully warm imports what makes torch's cache folder, and fails where it
    cannot: so that is one that exists.
    """
    os.environ.clear()
    if around.level != "none":
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = around.folder
    os.environ.update(
        PATH="/usr/local/bin:/usr/bin:/bin",
        LANG="C.UTF-8",
        LOGNAME="nobody",
        HOME=around.folder,
        TMPDIR=around.folder,
        OMP_NUM_THREADS=str(around.order.threads),
        **({"GLOO_SOCKET_IFNAME": "lo"} if around.order.processes > 1 else {}),
        **around.environment,
    )


def few_calls(around: Surroundings) -> None:
    """Load the filter of system calls. It comes last because the steps above need calls that it refuses."""
    seccomp.load(seccomp.pin_pid(around.calls, os.getpid()))


Step = Callable[[Surroundings], None]

_PLAIN: Final = (first_to_end, own_session, python_signals, own_folder, limits, bare_environment)
STEPS: Final[dict[IsolationLevel, tuple[Step, ...]]] = {
    "none": _PLAIN,
    "process": (*_PLAIN, few_files, few_calls),
    "namespace": (
        first_to_end,
        own_namespaces,
        own_session,
        python_signals,
        own_mounts,
        no_capabilities,
        own_folder,
        limits,
        bare_environment,
        few_files,
        few_calls,
    ),
    "gvisor": (own_root, own_uid, own_session, python_signals, own_folder, limits, bare_environment, few_calls),
}


def lock(around: Surroundings) -> None:
    """Take every step; the death of the zygote ends this process from here on.

    Raises:
        OSError: a step failed: no user code may run.
    """
    orphans.die_with(around.zygote)
    for step in STEPS[around.level]:
        step(around)


def open_files(order: Fork) -> int:
    """How many descriptors each process of a run may hold."""
    return OPEN_FILES if order.processes == 1 and order.memory_bytes else MORE_OPEN_FILES


def tasks(order: Fork) -> int:
    """How many threads all processes of a run may have together; the relay beside them is one more."""
    return order.processes * (order.threads + _MORE_THREADS) + 1


def _be_placed() -> None:
    os.write(SYNC, APART)
    if os.read(SYNC, len(PLACED)) != PLACED:
        raise ConnectionError("nobody put it into its place")


def _limit(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(which, (value, value))


def _tasks() -> int:
    """Tasks on this machine: at least those of our uid, for one read."""
    return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
