"""Private working folders of children: made by the zygote, removed without ever following a link.

1. A folder's name is a serial number; nothing of a snippet is in it.
2. Removal opens each folder relative to a descriptor and with O_NOFOLLOW, and flattens what is nested: a tree that is
   deeper than any stack, or a link in place of a folder, leads nowhere else.
3. What a killed zygote left behind is removed by the next one to boot: a root that nobody holds a lock on is dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PREFIX: Final = "backprobe-zygote-"
_FRESH: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_out(folder: str, files: Mapping[str, str]) -> None:
    """Write the files of a run into its private folder, which is empty and which only this process knows.

    Raises:
        ValueError: a path leads out of the folder.
        OSError: there is no room for them.
    """
    made = {""}
    for path, text in files.items():
        above, _, name = path.rpartition("/")
        if path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
            raise ValueError(f"{path[:200]!r} is no path in a folder")
        if above not in made:
            Path(folder, above).mkdir(0o700, parents=True, exist_ok=True)
            made.add(above)
        file = os.open(f"{folder}/{above}/{name}", _FRESH, 0o600)
        try:
            left = memoryview(text.encode("utf-8", "surrogatepass"))
            while left:
                left = left[os.write(file, left) :]
        finally:
            os.close(file)


class Scratch:
    """One zygote's root folder, locked as long as it lives; a folder per child in it."""

    def __init__(self) -> None:
        self.path, self.root = _locked_root()

    def make(self, serial: int) -> str:
        """Make the folder of a child; its absolute path comes back."""
        os.mkdir(str(serial), 0o700, dir_fd=self.root)
        return f"{self.path}/{serial}"

    def remove_empty(self, serial: int) -> bool:
        """Remove a child's folder if that takes one call; False: it needs `sweep`, in its own process."""
        try:
            os.rmdir(str(serial), dir_fd=self.root)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True

    def sweep(self, serial: int) -> None:
        """Remove a child's folder with all that is in it."""
        remove_tree(self.root, str(serial))

    def close(self) -> None:
        """Remove the root with all that is in it; a second time, nothing."""
        root, self.root = self.root, -1
        if root >= 0:
            _remove_root(self.path, root)


def sweep_dead_roots(parent: str | None = None) -> None:
    """Remove the roots of zygotes that died without doing it."""
    for path in Path(parent or tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            root = os.open(path, _FOLDER)
        except OSError:
            continue
        if os.fstat(root).st_uid == os.getuid() and _locked(root):
            _remove_root(path, root)
        else:
            os.close(root)


def remove_tree(parent: int, name: str) -> None:
    """Remove what has this name in the folder `parent` (a descriptor), whatever it is.

    Folders inside folders are first moved up beside it, so neither depth nor path length matters. What cannot be
    removed (another user's file, say) stays.
    """
    todo, moved = [name], 0
    while todo:
        current = todo.pop()
        try:
            folder = _open_folder(parent, current)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(current, dir_fd=parent)
            continue
        try:
            for entry in os.listdir(folder):  # noqa: PTH208 - of a descriptor
                if not stat.S_ISDIR(os.stat(entry, dir_fd=folder, follow_symlinks=False).st_mode):
                    with contextlib.suppress(OSError):
                        os.unlink(entry, dir_fd=folder)
                    continue
                moved += 1
                up = f"{name}~{moved}"
                with contextlib.suppress(OSError):
                    os.rename(entry, up, src_dir_fd=folder, dst_dir_fd=parent)
                    todo.append(up)
        finally:
            os.close(folder)
        with contextlib.suppress(OSError):
            os.rmdir(current, dir_fd=parent)


def _open_folder(parent: int, name: str) -> int:
    """Open a folder and make sure that its owner may change it; a link is an error."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        Path(f"/proc/self/fd/{handle}").chmod(0o700)
        return os.open(".", _FOLDER, dir_fd=handle)
    finally:
        os.close(handle)


def _locked_root() -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=PREFIX))
        root = os.open(path, _FOLDER)
        # another zygote that boots now may have taken the folder for a dead one before the lock was ours
        if _locked(root) and path.is_dir():
            return path, root
        os.close(root)


def _locked(root: int) -> bool:
    try:
        fcntl.flock(root, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_root(path: Path, root: int) -> None:
    for name in os.listdir(root):
        remove_tree(root, name)
    with contextlib.suppress(OSError):
        path.rmdir()
    os.close(root)
