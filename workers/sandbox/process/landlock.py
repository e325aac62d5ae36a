"""What a child may read: the interpreter, the packages, the system's libraries. Landlock holds it to that.

1. A path is listed because Python or torch opens it, never because it was convenient: no home, no /etc, no checkout
   beyond the packages that run in a child.
2. The same list is what a private root is made of.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import workers
from workers.sandbox.process import namespaces

LEAST_ABI: Final = 3
"""Landlock of Linux 6.2: it covers truncation. The scopes for signals and abstract sockets came with ABI 6."""

_SYSTEM: Final = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo")
FILES: Final = ("/etc/ld.so.cache", "/etc/localtime")
LINKS: Final = ("lib", "lib64", "bin", "sbin")
"""Of a private root, into its /usr or folders of their own. sbin: ctypes asks ldconfig there where a library lies, and
without it starts a compiler to ask."""
DEVICES: Final = ("/dev/null", "/dev/urandom", "/dev/random")
_OWN: Final = (
    "maps",
    "status",
    "stat",
    "statm",
    "fd",
    "fdinfo",
    "limits",
    "cmdline",
    "comm",
    "auxv",
    "cgroup",
    "environ",
)
"""Of a child's own folder in /proc, where it shares the network namespace: `net` there, and in each of `task`, lists
every connection and listener of the machine, the worker's with its database among them."""

_OF_PREFIX: Final = ("bin", "lib", "lib64", "share/zoneinfo", "pyvenv.cfg")
"""What Python needs of its prefix. A prefix may be a home or a clone, and the rest of it is not Python's."""

_PACKAGES: Final = ("backprobe", "store", "workers")
"""Of a checkout that is not installed: the packages that a child imports from."""


def python_paths() -> tuple[str, ...]:
    """Folders of this interpreter and its packages, and its pyvenv.cfg: those that exist, links resolved and not."""
    home = Path(str(workers.__file__)).resolve().parents[1]
    prefixes = {sys.prefix, sys.base_prefix} - {"/", "/usr"}  # of the system, whose folders are listed above
    found = {f"{prefix}/{part}" for prefix in prefixes for part in _OF_PREFIX}
    found |= {str(home / name) for name in _PACKAGES}
    for entry in sys.path:
        path = Path(entry)
        if path.is_dir() and path.resolve() != home and path.name in ("site-packages", "dist-packages"):
            found.add(entry)
    every = {str(Path(path).resolve()) for path in found} | found
    return tuple(sorted(path for path in every if Path(path).exists()))


def hidden(uid: int) -> tuple[str, ...]:
    """List the folders that keep this uid from the interpreter, the highest of each path; empty unless we are root."""
    if os.geteuid() != 0:
        return ()
    return tuple(
        dict.fromkeys(closed for folder in python_paths() if (closed := _find_closed_folder(Path(folder), uid)))
    )


def unreadable(uid: int) -> tuple[str, ...]:
    """Return what of Python is itself closed to this uid; nothing if this process is not root's."""
    if os.geteuid() != 0:
        return ()
    folder, file = stat.S_IROTH | stat.S_IXOTH, stat.S_IROTH
    paths = [Path(path) for path in python_paths()]
    return tuple(str(path) for path in paths if not _is_open(path, folder if path.is_dir() else file, uid))


def _find_closed_folder(folder: Path, uid: int) -> str | None:
    """Return the highest folder on the way to this one that the uid cannot pass."""
    for part in reversed(folder.parents):
        if not part.exists():
            return None
        if not _is_open(part, stat.S_IXOTH, uid):
            return str(part)
    return None


def _is_open(folder: Path, wanted: int, uid: int) -> bool:
    found = folder.stat()
    return found.st_mode & wanted == wanted or found.st_uid == uid


def seen_by(uid: int) -> None:
    """Show the interpreter to this process, root and about to become `uid`, even if it lies in a closed folder.

    Raises:
        OSError: it may not mount.
    """
    if closed := hidden(uid):
        namespaces.show(tuple(not_below(python_paths())), tuple(not_below(closed)))


def system_folders() -> tuple[str, ...]:
    """Of the system, what is there."""
    return tuple(path for path in _SYSTEM if Path(path).exists())


def not_below(folders: Iterable[str], known: Iterable[str] = ()) -> Iterator[str]:
    """Those that lie below none of the known ones, nor below one that was told before."""
    told = list(known)
    for folder in folders:
        if not any(folder.startswith(f"{parent}/") for parent in told):
            told.append(folder)
            yield folder


def landlock_abi() -> int:
    """Landlock's version in this kernel; 0: none. The zygote asks too, so that no child has to import the binding."""
    try:
        from landlockpy import abi_version  # here, not above: absent on other systems
    except ImportError:
        return 0
    return abi_version()


def landlock(folders: tuple[str, ...], writable: tuple[str, ...], *, sockets: bool = False, apart: bool = True) -> None:
    """Restrict this thread, and all that it starts, to reading these folders and writing those; there is no way back.

    Args:
        apart: Its network namespace is its own: all of its folder in /proc may be read.
        sockets: It may make them, and use TCP: a separate network namespace restricts it instead.

    Raises:
        OSError: the kernel is too old for it, or refused.
    """
    from landlockpy import AccessFS, AccessNet, Ruleset, Scope, abi_version, fs_for_abi, net_for_abi

    abi = abi_version()
    if abi < LEAST_ABI:
        raise OSError(f"Landlock is version {abi} here, and {LEAST_ABI} is the least that holds")
    read = AccessFS.READ_FILE | AccessFS.READ_DIR
    write = AccessFS.WRITE_FILE | AccessFS.MAKE_REG | AccessFS.MAKE_DIR | AccessFS.MAKE_FIFO | AccessFS.TRUNCATE
    write |= AccessFS.REMOVE_FILE | AccessFS.REMOVE_DIR | AccessFS.REFER
    if sockets:
        write |= AccessFS.MAKE_SOCK
    with Ruleset(
        handled_fs=fs_for_abi(min(abi, 5)),
        handled_net=AccessNet(0) if sockets else net_for_abi(min(abi, 5)),
        scoped=Scope.ABSTRACT_UNIX_SOCKET | Scope.SIGNAL if abi >= 6 else Scope(0),
        best_effort=False,
    ) as rules:
        own = f"/proc/{os.getpid()}"
        for folder in (*folders, *((own,) if apart else ())):
            rules.allow_path(folder, read if Path(folder).is_dir() else AccessFS.READ_FILE)
        for name in () if apart else _OWN:
            rules.allow_path(f"{own}/{name}", read if name in ("fd", "fdinfo") else AccessFS.READ_FILE)
        for file in (*FILES, *(("/etc/hosts",) if sockets else ())):
            if Path(file).exists():
                rules.allow_path(file, AccessFS.READ_FILE)
        for device in DEVICES:
            rules.allow_path(device, AccessFS.READ_FILE | AccessFS.WRITE_FILE)
        for folder in writable:
            rules.allow_path(folder, read | write)
        rules.restrict()
