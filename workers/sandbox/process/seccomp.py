"""The system calls that a child may make: an allow-list, compiled by libseccomp, loaded in the child by one prctl.

1. Compiled on the trusted side, once per process; the zygote gets the finished program and can only hand it on.
2. What is not listed fails with EPERM; `clone3` with ENOSYS, because its flags lie in memory where no filter sees them:
   the C library then falls back to `clone`.
3. There is no socket, no exec, no fork (`clone` makes threads only), no ptrace, io_uring, keyctl, bpf or memfd; signals
   go to the child itself only. So nothing here rests on Landlock's newer scopes.
4. What Landlock has no word for, the filter holds: times of files (`utimensat` needs no open file) and locks (of those
   of byte ranges the kernel keeps any number, counted by no limit) are for runs with a private folder only.
5. A run that may have several processes gets fork, signals and sockets besides, still no exec. It has namespaces of its
   own: its signals end at its pid namespace, its sockets at its `lo`, its paths at its private root.
6. What no limit of a run counts is refused: a thread with its own descriptors, which are limited by table; pages of
   the machine's store of huge ones; filters, whose room all programs of the machine share; and pipes that hand over
   each write by itself, for which the supervisor would pay with a read each. Shared anonymous pages stay in memory when
   all but one of them are unmapped, so that no limit on address space counts them: they need a cgroup.
7. What tells of other processes and of the machine is refused: CPU clocks of other processes, process groups and
   sessions of others, the host's name, and pages that the kernel merges with equal ones of other runs.
8. No file is flushed to a disk: the host's files, which a run can open to read, are on disks that others wait for. The
   program reads that it was done, which is true of its private folder: that is memory.
9. A program cannot send itself SIGKILL: when a run dies of one, something outside of it sent the signal.

The list was made for x86-64; another machine needs its own, and its own run of the hostile suite.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import struct
import tempfile
from typing import Final

_READ_AND_WRITE = """read write readv writev pread64 pwrite64 preadv pwritev lseek close dup dup2 dup3
pipe pipe2 poll ppoll select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait eventfd2"""
_FILES = """stat lstat fstat newfstatat statx access faccessat faccessat2 readlink readlinkat getdents64
getcwd chdir ftruncate fallocate rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir
umask statfs fstatfs"""
_MEMORY = "munmap mprotect mremap brk mincore get_mempolicy"
_SIGNALS = """rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack
restart_syscall pause alarm setitimer getitimer"""
_THREADS = """futex futex_waitv set_robust_list get_robust_list rseq membarrier set_tid_address sched_yield
sched_getaffinity sched_getparam sched_getscheduler getcpu arch_prctl gettid"""
_CLOCKS = "nanosleep gettimeofday time times"
_ITSELF = """getpid getppid getuid geteuid getgid getegid getpgrp getgroups getresuid getresgid getrlimit getrusage
sysinfo getrandom wait4 waitid exit exit_group"""
_SEVERAL_PROCESSES = """fork vfork kill tgkill getpgid getsid link fchmod epoll_create shutdown bind listen accept
accept4 connect sendto recvfrom sendmsg recvmsg sendmmsg recvmmsg getsockname getpeername setsockopt getsockopt
socketpair setpgid sched_setaffinity set_mempolicy mbind"""
"""Besides, where a run may have several: DataLoader workers make semaphores by `link` and pass tensors by descriptor,
gloo talks TCP over `lo`."""
ALLOWED: Final = f"{_READ_AND_WRITE} {_FILES} {_MEMORY} {_SIGNALS} {_THREADS} {_CLOCKS} {_ITSELF}".split()

_IOCTLS: Final = (0x5401, 0x541B, 0x5451, 0x5413, 0x5421)
"""TCGETS, FIONREAD, FIOCLEX, TIOCGWINSZ, FIONBIO: what Python and C ask any descriptor."""

_FCNTLS: Final = (0, 1, 2, 3, 9, 1030, 1032, 1034)
"""Copies, flags (but for F_SETFL, below), and reads of owner, size and seals. Never F_SETOWN, F_SETOWN_EX and F_SETSIG,
by which the kernel sends any signal to any process of the uid, past the rule for `kill`; never F_SETPIPE_SZ, which
takes from what all runs of the uid have together; nor leases and notices about files."""

_LOCKS: Final = (5, 6, 7, 36, 37, 38)
"""F_GETLK, F_SETLK, F_SETLKW, and the same of open files: sqlite's, in a private folder. Where a run has a cgroup their
memory is counted in it."""

_PRCTLS: Final = (15, 16, 3, 4, 21, 23, 39, 0x53564D41)
"""Names, dumpable, reads of seccomp, capabilities and no_new_privs, names of memory; PR_SET_PDEATHSIG only
where a cgroup ends what was forked."""

_ADVICE: Final = (0, 1, 2, 3, 4, 8, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23)
"""For `madvise`: how pages will be read, that they can go, whether a fork or a dump has them, huge pages, and reading
them in at once. Never MADV_MERGEABLE: the time of a write shows that a page was merged, and so that another run has an
equal one."""

_F_SETFL, _O_DIRECT = 4, 0x4000
_MAP_HUGETLB: Final = 0x40000
_MAP_SHARED, _MAP_ANONYMOUS = 0x1, 0x20
"""MAP_SHARED_VALIDATE is 3, and has the bit of MAP_SHARED too."""

_CLOCK_OF_ANOTHER: Final = 0x80000000
"""The sign bit of a clock's number: negative numbers name a process, a thread or a descriptor."""

_MS_SYNC: Final = 4
_CLOCK_CALLS: Final = ("clock_gettime", "clock_getres", "clock_nanosleep")
_SIGKILL_BITS, _SIGNAL_BITS = 9, 7
"""SIGKILL is 9; every signal's number fits into 7 bits."""

_CLOSE_RANGE_UNSHARE: Final = 2
_CLONE_FILES, _CLONE_THREAD = 0x400, 0x10000
_NAMESPACES: Final = 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000

_FAMILIES: Final = (1, 2, 10)
"""AF_UNIX, AF_INET, AF_INET6; of AF_NETLINK only NETLINK_ROUTE, by which gloo lists interfaces."""

_PROTOCOLS: Final = (0, 6, 17)
"""The family's own, TCP, UDP: for another the kernel would load a module that nothing else here needs."""

_OWN_PID: Final = 0x5A17C0DE
"""Takes the place of the child's pid in the program, until `pin_pid` writes the pid there."""

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.c_char_p))


@functools.cache
def compile_filter(*, several: bool = False, folder: bool = False, has_cgroup: bool = False) -> bytes:
    """Compile the filter as BPF, without a pid yet.

    Args:
        folder: Of runs that have a private folder, and a host name of their own.
        several: Of runs that may have several processes.
        has_cgroup: Of runs whose cgroup counts memory that is not in their address space.

    Raises:
        OSError: this is no x86-64 Linux, or libseccomp is not installed; the text says which.
    """
    if platform.machine() != "x86_64":
        raise OSError(errno.ENOSYS, f"the filter of system calls was made for x86_64, not for {platform.machine()}")
    try:
        import pyseccomp  # here, not above: it loads libseccomp, which may be absent
    except (ImportError, OSError, RuntimeError) as error:
        raise OSError(errno.ENOENT, f"libseccomp cannot be loaded: {error}") from None
    listed = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
    _allow(listed, pyseccomp)
    _allow_mmap(listed, pyseccomp, has_cgroup=has_cgroup)
    if folder:
        _allow_folder(listed, pyseccomp)
    (_allow_several if several else _allow_one)(listed, pyseccomp)
    with tempfile.TemporaryFile() as file:
        listed.export_bpf(file)
        file.seek(0)
        return file.read()


def pin_pid(program: bytes, pid: int) -> bytes:
    """Put a child's pid into the filter, as the child itself sees the pid."""
    out = bytearray(program)
    for at in range(0, len(program), 8):  # struct sock_filter: u16 code, u8 jt, u8 jf, u32 k
        if struct.unpack_from("<I", program, at + 4)[0] == _OWN_PID:
            struct.pack_into("<I", out, at + 4, pid)
    return bytes(out)


def load(program: bytes) -> None:
    """Put this thread, and all that it starts, under the filter; there is no way back.

    Raises:
        OSError: the kernel refused.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    wanted = _Program(len(program) // 8, program)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(wanted), 0, 0) < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"seccomp: {os.strerror(error)}")


def _allow(listed, sc) -> None:  # noqa: ANN001 pyseccomp has no types
    for call in ALLOWED:
        listed.add_rule(sc.ALLOW, call)
    listed.add_rule(sc.ALLOW, "prlimit64", sc.Arg(0, sc.EQ, 0), sc.Arg(2, sc.EQ, 0))  # reads its own limits
    for request in _IOCTLS:
        listed.add_rule(sc.ALLOW, "ioctl", sc.Arg(1, sc.EQ, request))
    for command in _FCNTLS:
        listed.add_rule(sc.ALLOW, "fcntl", sc.Arg(1, sc.EQ, command))
    for option in _PRCTLS:
        listed.add_rule(sc.ALLOW, "prctl", sc.Arg(0, sc.EQ, option))
    listed.add_rule(sc.ERRNO(errno.ENOSYS), "clone3")
    for advice in _ADVICE:
        listed.add_rule(sc.ALLOW, "madvise", sc.Arg(2, sc.EQ, advice))
    for call in _CLOCK_CALLS:
        listed.add_rule(sc.ALLOW, call, sc.Arg(0, sc.MASKED_EQ, _CLOCK_OF_ANOTHER, 0))
    for call in ("fsync", "fdatasync"):
        listed.add_rule(sc.ERRNO(0), call)
    listed.add_rule(sc.ERRNO(0), "msync", sc.Arg(2, sc.MASKED_EQ, _MS_SYNC, _MS_SYNC))
    listed.add_rule(sc.ALLOW, "msync", sc.Arg(2, sc.MASKED_EQ, _MS_SYNC, 0))  # a way to ask whether a page is there
    thread = _CLONE_THREAD | _CLONE_FILES
    listed.add_rule(sc.ALLOW, "clone", sc.Arg(0, sc.MASKED_EQ, _NAMESPACES | thread, thread))
    for call, place, flag in (
        ("open", 1, _O_DIRECT),
        ("openat", 2, _O_DIRECT),
        ("close_range", 2, _CLOSE_RANGE_UNSHARE),
    ):
        listed.add_rule(sc.ALLOW, call, sc.Arg(place, sc.MASKED_EQ, flag, 0))
    listed.add_rule(sc.ALLOW, "fcntl", sc.Arg(1, sc.EQ, _F_SETFL), sc.Arg(2, sc.MASKED_EQ, _O_DIRECT, 0))


def _allow_mmap(listed, sc, *, has_cgroup: bool) -> None:  # noqa: ANN001 as above
    if has_cgroup:
        listed.add_rule(sc.ALLOW, "mmap", sc.Arg(3, sc.MASKED_EQ, _MAP_HUGETLB, 0))
        return
    shared = _MAP_HUGETLB | _MAP_SHARED
    listed.add_rule(sc.ALLOW, "mmap", sc.Arg(3, sc.MASKED_EQ, shared, 0))  # private
    listed.add_rule(sc.ALLOW, "mmap", sc.Arg(3, sc.MASKED_EQ, shared | _MAP_ANONYMOUS, _MAP_SHARED))  # of a file


def _allow_folder(listed, sc) -> None:  # noqa: ANN001 as above
    for call in ("utimensat", "flock", "uname"):
        listed.add_rule(sc.ALLOW, call)
    for command in _LOCKS:
        listed.add_rule(sc.ALLOW, "fcntl", sc.Arg(1, sc.EQ, command))


def _allow_one(listed, sc) -> None:  # noqa: ANN001 as above
    listed.add_rule(sc.ALLOW, "sched_setaffinity", sc.Arg(0, sc.EQ, 0))  # itself only
    listed.add_rule(sc.ALLOW, "socketpair", sc.Arg(0, sc.EQ, 1))  # AF_UNIX: asyncio's way to wake itself
    for call in ("getpgid", "getsid"):
        for itself in (0, _OWN_PID):
            listed.add_rule(sc.ALLOW, call, sc.Arg(0, sc.EQ, itself))
    for call, place in (("kill", 1), ("tgkill", 2)):
        for bit in (1 << n for n in range(_SIGNAL_BITS)):  # a number that differs in one bit is another signal
            differs = sc.Arg(place, sc.MASKED_EQ, bit, ~_SIGKILL_BITS & bit)
            listed.add_rule(sc.ALLOW, call, sc.Arg(0, sc.EQ, _OWN_PID), differs)


def _allow_several(listed, sc) -> None:  # noqa: ANN001 as above
    for call in _SEVERAL_PROCESSES.split():
        listed.add_rule(sc.ALLOW, call)
    listed.add_rule(sc.ALLOW, "prctl", sc.Arg(0, sc.EQ, 1))  # PDEATHSIG: what torch spawns ends with what spawned it
    for family in _FAMILIES:
        for protocol in _PROTOCOLS:
            listed.add_rule(sc.ALLOW, "socket", sc.Arg(0, sc.EQ, family), sc.Arg(2, sc.EQ, protocol))
    listed.add_rule(sc.ALLOW, "socket", sc.Arg(0, sc.EQ, 16), sc.Arg(2, sc.EQ, 0))
    listed.add_rule(sc.ALLOW, "clone", sc.Arg(0, sc.MASKED_EQ, _NAMESPACES | _CLONE_THREAD, 0))
