"""The root of one run inside a sandbox of gVisor: what Python needs, bound read-only, and a private /tmp.

The sandbox's kernel has no Landlock, and its older versions share their mounts among all: so each run is shut into a
folder that shows nothing else. A root is made once and used again by later runs; what one of them can write is not.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from workers.sandbox.process import landlock
from workers.sandbox.process.namespaces import BIND, NODEV, NOEXEC, NOSUID, READ_ONLY, mount, unmount

_HOME: Final = "/tmp/roots"  # noqa: S108 of the sandbox, writable for the warm process alone
_FLAGS: Final = NOSUID | NODEV | NOEXEC
_OF_A_RUN: Final = ("proc", "tmp", "dev/shm", "tmp")
"""Mounted for each run, in the order in which they are taken away."""


class Roots:
    """Those of one warm process.

    Args:
        folders: What a run may read.
    """

    def __init__(self, folders: Iterable[str]) -> None:
        self._folders = tuple(folders)
        self._free: list[str] = []
        self._made = 0

    def take(self, uid: int, disk_bytes: int) -> str:
        """Take a root with an empty /tmp and /dev/shm of this uid, together of so many bytes; return its path.

        Raises:
            OSError: a mount was refused.
        """
        root = self._free.pop() if self._free else self._new()
        size = f"size={max(disk_bytes, 4096)},mode=0755"
        mount("tmpfs", f"{root}/tmp", "tmpfs", _FLAGS, size)  # noqa: S108 a mount point
        for name, place in (("shm", "dev/shm"), ("tmp", "tmp")):
            inside = f"{root}/tmp/{name}"  # noqa: S108 as above
            os.mkdir(inside, 0o700)  # noqa: PTH102 before a Path could do more
            if disk_bytes:
                os.chown(inside, uid, uid)
            else:
                os.chmod(inside, 0o555)  # noqa: PTH101, S103 as above; nobody writes
            mount(inside, f"{root}/{place}", None, BIND)
        return root

    def give_back(self, root: str) -> None:
        """Its run is over: what that could write is gone."""
        try:
            for place in _OF_A_RUN:
                with contextlib.suppress(OSError) if place == "proc" else contextlib.nullcontext():
                    unmount(f"{root}/{place}")  # a run that ended early has mounted no proc
        except OSError:
            return  # it is not used again
        self._free.append(root)

    def _new(self) -> str:
        self._made += 1
        root = f"{_HOME}/{self._made}"
        for name in ("proc", "tmp", "dev/shm", "etc"):
            Path(root, name).mkdir(mode=0o755, parents=True)
        for folder in landlock.not_below(self._folders):
            _show(folder, root)
        for file in landlock.FILES:
            if Path(file).exists():
                shutil.copyfile(file, root + file)
        for device in landlock.DEVICES:
            Path(root + device).touch()
            mount(device, root + device, None, BIND)
        return root


def enter(root: str) -> None:
    """In the run, pid 1 of its namespace: its own /proc, and nothing of the file system but this root.

    Raises:
        OSError: it was refused.
    """
    mount("proc", f"{root}/proc", "proc", _FLAGS | READ_ONLY)
    os.chroot(root)
    os.chdir("/")


def _show(folder: str, root: str) -> None:
    if Path(folder).is_symlink():
        Path(root + folder).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        Path(root + folder).symlink_to(Path(folder).readlink())
        return
    Path(root + folder).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if Path(folder).is_dir():
        Path(root + folder).mkdir(mode=0o755, exist_ok=True)
    else:
        Path(root + folder).touch()
    mount(folder, root + folder, None, BIND | READ_ONLY)
