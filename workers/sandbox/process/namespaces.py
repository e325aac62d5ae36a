"""What a child at level `namespace` does first: its own namespaces, an empty /tmp, no capability.

1. Needs one thread, and either an unprivileged user namespace or root; both go the same way here, because the zygote
   is never root by then.
2. The program becomes pid 1 of its namespace: when it ends, the kernel ends everything in it.
3. The relay, which stands outside, runs no code of the user and is not what gets killed: it ends as the program did.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, NoReturn

from workers.sandbox.process import orphans

_NEWNS, _NEWCGROUP, _NEWUTS, _NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000

READ_ONLY, NOSUID, NODEV, NOEXEC, BIND, _REC, _PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 0x40000
_DETACH: Final = 2
_MOUNT_SETATTR, _MOUNT_ATTR_RDONLY, _AT_FDCWD, _AT_RECURSIVE = 442, 1, -100, 0x8000

_BYTES_PER_FILE: Final = 16 << 10
_LEAST_FILES: Final = 256

NO_CORE: Final = 1
"""RLIMIT_CORE of a child. 0 means "no file" only: a program to which the machine hands memory dumps would be started
for every crash, as root and outside; for 1 it is not (do_coredump in the kernel's fs/coredump.c)."""

_PR_CAPBSET_DROP, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
_CAPABILITY_VERSION_3: Final = 0x20080522
_CAP_SYS_ADMIN: Final = 21

_LIBC: Final = ctypes.CDLL(None, use_errno=True)
_exit: Final = os._exit


def enter(zygote: int, slot_uid: int = 0, place: Callable[[], None] | None = None) -> None:
    """Return in a new process that is pid 1 of new namespaces; this one becomes its relay and never returns.

    Args:
        zygote: Pid of the parent, whose end ends this process.
        slot_uid: Whom to become, by a map that only a privileged supervisor can write; 0: nobody else.
        place: Called with the user namespace made and nothing forked: comes back when the supervisor has done its part.

    Raises:
        OSError: a namespace was refused.
    """
    uid, gid = os.getuid(), os.getgid()
    _unshare(_NEWUSER)
    if place is not None:
        place()
    if slot_uid:
        os.setresgid(slot_uid, slot_uid, slot_uid)
        os.setresuid(slot_uid, slot_uid, slot_uid)
        orphans.make_dumpable()  # else its own /proc would be closed to it
        orphans.die_with(zygote)  # a change of uid clears it
    else:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    _unshare(_NEWPID | _NEWNS | _NEWNET | _NEWIPC | _NEWUTS | _NEWCGROUP)
    pid = os.fork()
    if pid:
        _relay(pid)
    orphans.die_with(0)  # how a parent outside the pid namespace is seen


def fresh_mounts(disk_bytes: int, shown: Iterable[str] = ()) -> None:
    """Mount a private /tmp and /dev/shm on one tmpfs of this size, and /proc; hide the list of PCI devices.

    Args:
        shown: What Python needs. The part of it that lies in /tmp or /dev/shm is mounted there again.

    Raises:
        OSError: a mount was refused.
    """
    mount("none", "/", None, _REC | _PRIVATE)
    shown = tuple(shown)
    opened = {place: _open_below(place, shown) for place in ("/dev/shm", "/tmp")}  # noqa: S108 mount points
    size = f"size={max(disk_bytes, 1)},nr_inodes={max(_LEAST_FILES, disk_bytes // _BYTES_PER_FILE)},mode=0755"
    mount("tmpfs", "/tmp", "tmpfs", NOSUID | NODEV | NOEXEC, size)  # noqa: S108 a mount point, not a file
    read_only = 0 if disk_bytes else READ_ONLY
    for inside, place in (("/tmp/shm", "/dev/shm"), ("/tmp/tmp", "/tmp")):  # noqa: S108 as above
        os.mkdir(inside, 0o700)  # noqa: PTH102 before a Path could do more
        mount(inside, place, None, BIND)
        _mount_again(place, opened[place])
        if read_only:
            mount("none", place, None, BIND | 0x20 | READ_ONLY | NOSUID | NODEV | NOEXEC)
    if Path("/sys/bus/pci/devices").is_dir():  # gloo lists it and reads each entry
        mount("tmpfs", "/sys/bus/pci/devices", "tmpfs", NOSUID | NODEV | NOEXEC, "size=4k,mode=555")
    mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)


def uncovered_proc() -> None:
    """As root in a private root: mount /proc once more, without bubblewrap's covers over parts that root could write.

    The kernel lets a user namespace mount its own /proc only where one is fully visible; who is no root can write
    none of those parts anyway.

    Raises:
        OSError: the mount was refused.
    """
    mount("proc", "/proc", "proc", NOSUID | NODEV | NOEXEC)


def show(folders: Iterable[str], closed: Iterable[str]) -> None:
    """As root, which is about to become another: see these folders although they lie in folders closed to that one.

    Only a closed folder changes, and for this process and its children alone: it is an empty one there, but for what is
    to be seen.

        /root (0700): .ssh, .pyenv/versions/3.11  ->  /root (0755): .pyenv/versions/3.11

    Raises:
        OSError: a mount was refused.
    """
    _unshare(_NEWNS)
    mount("none", "/", None, _REC | _PRIVATE)
    for top in closed:
        opened = _open_below(top, folders)
        mount("tmpfs", top, "tmpfs", NOSUID | NODEV, "size=1m,mode=0755")
        _mount_again(top, opened)
        _make_read_only(top)


def _open_below(top: str, paths: Iterable[str]) -> dict[str, int]:
    """Open what lies below `top`, which is about to be covered; descriptors by path."""
    below = [path for path in paths if path.startswith(f"{top}/")]
    return {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in below}


def _mount_again(top: str, opened: Mapping[str, int]) -> None:
    """Mount opened folders and files at their paths in `top`, which has been covered, and close them."""
    for path, descriptor in opened.items():
        source, target = f"/proc/self/fd/{descriptor}", Path(path)
        parents = [parent for parent in reversed(target.parents) if Path(top) in parent.parents]
        for folder in (*parents, target) if Path(source).is_dir() else parents:
            folder.mkdir(exist_ok=True)
            folder.chmod(0o755)  # whatever our umask is
        target.touch()
        mount(source, path, None, BIND | _REC)
        os.close(descriptor)


def _make_read_only(top: str) -> None:
    """Make the mount at `top` and every mount below it read-only.

    Raises:
        OSError: the kernel refused. Linux before 5.12, where only level `none` is possible, has no such call: ignored.
    """
    attributes = struct.pack("4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    result = _LIBC.syscall(_MOUNT_SETATTR, _AT_FDCWD, top.encode(), _AT_RECURSIVE, attributes, len(attributes))
    if result < 0 and ctypes.get_errno() != errno.ENOSYS:
        _check_result(result, f"mount {top} read-only")


def may_mount() -> bool:
    """Return whether this process has CAP_SYS_ADMIN."""
    told = Path("/proc/self/status").read_text("ascii", "replace").partition("CapEff:")[2].split()
    return bool(told) and bool(int(told[0], 16) >> _CAP_SYS_ADMIN & 1)


def loopback_up() -> None:
    """`lo` of a fresh network namespace is down; what talks to 127.0.0.1 inside the run needs it.

    Raises:
        OSError: the kernel refused.
    """
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x1 | 0x40))  # SIOCSIFFLAGS: UP, RUNNING


def no_capabilities() -> None:
    """Drop every capability, also from what an exec could bring back.

    Raises:
        OSError: the kernel refused.
    """
    for capability in range(64):
        if _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) < 0:
            break  # there are no more
    _check_result(_LIBC.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "ambient capabilities")
    header = struct.pack("II", _CAPABILITY_VERSION_3, 0)
    _check_result(_LIBC.capset(header, struct.pack("6I", *[0] * 6)), "capset")


def _relay(inner: int) -> NoReturn:
    """Wait for the program, and end as it ended: by its exit code, or by its signal."""
    os.closerange(0, 1 << 20)
    resource.setrlimit(resource.RLIMIT_CORE, (NO_CORE, NO_CORE))
    no_capabilities()
    _, status = os.waitpid(inner, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.kill(os.getpid(), number)
    _exit(os.WEXITSTATUS(status))


def _unshare(flags: int) -> None:
    _check_result(_LIBC.unshare(ctypes.c_int(flags)), "unshare")


def next_child_is_first() -> None:
    """Make the next child of this process pid 1 of a new pid namespace; on a real Linux this works only once.

    Raises:
        OSError: the kernel refused.
    """
    _unshare(_NEWPID)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount something.

    Raises:
        OSError: the kernel refused.
    """
    words = (source.encode(), target.encode(), None if kind is None else kind.encode())
    _check_result(_LIBC.mount(*words, ctypes.c_ulong(flags), options.encode()), f"mount {target}")


def unmount(target: str) -> None:
    """Take a mount out of sight; it goes with its last user.

    Raises:
        OSError: nothing is mounted there.
    """
    _check_result(_LIBC.umount2(target.encode(), _DETACH), f"umount {target}")


def _check_result(result: int, what: str) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")
