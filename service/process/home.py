"""The home of one `serve`: locked while it runs, so that two never write the same files."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from pathlib import Path
from typing import IO, Final

_NETWORKED: Final = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "fuse.sshfs", "lustre"}
)

_OURS: Final = ("serve.lock", "secret", "backprobe.db")


class CannotServe(Exception):
    """Serving cannot begin; the message is one line for the operator, with a way out. Exit code 2."""


class ServeLock:
    """Holds `serve.lock` until this process ends, however it ends: the kernel releases it.

    Raises:
        CannotServe: another `serve` holds it, or the file cannot be written.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / "serve.lock"
        try:
            self._file: IO[str] = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise _not_writable(home, error) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotServe(f"{home} is served already{self._who()}: use that one, or name another --home.") from None

    def _who(self) -> str:
        """Where the first one is to be found; "" while it has not said so yet."""
        self._file.seek(0)
        try:
            told = json.loads(self._file.read())
            return f" at {told['url']} (process {told['pid']})"
        except (ValueError, KeyError, TypeError):
            return ""

    def tell(self, url: str) -> None:
        """Say where we are to be found."""
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps({"url": url, "pid": os.getpid()}))
        self._file.flush()


def _not_writable(home: Path, error: OSError) -> CannotServe:
    return CannotServe(
        f"The home {home} cannot be written ({error.strerror}); name another by --home or BACKPROBE_HOME."
    )


def make_writable(home: Path) -> None:
    """Make the home and its folders.

    Raises:
        CannotServe: it cannot be written.
    """
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        _keep_private(home)
        (home / "logs").mkdir(exist_ok=True)
        probe(home)
    except OSError as error:
        raise _not_writable(home, error) from None


def private_files() -> None:
    """Make new files of this process and its children private: the database holds programs of strangers."""
    os.umask(0o077)


def _keep_private(home: Path) -> None:
    """Deny other users access to a Backprobe home. A folder that holds something else stays as it is."""
    found = home.stat()
    ours = not any(home.iterdir()) or any((home / name).exists() for name in _OURS)
    if ours and found.st_uid == os.geteuid() and found.st_mode & 0o077:
        home.chmod(0o700)


def probe(home: Path) -> None:
    """Write a small file there and delete it: rights alone do not tell of a full or read-only disk.

    Raises:
        OSError: it cannot be written.
    """
    written = home / f".writable.{os.getpid()}.{threading.get_ident()}"
    try:
        written.write_bytes(b"backprobe\n")
    finally:
        written.unlink(missing_ok=True)


def refuse_networked(home: Path) -> None:
    """Refuse a home on a network file system: SQLite's WAL needs memory shared by all who open the database.

    Raises:
        CannotServe: it is on one.
    """
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    at = home.resolve()
    best = ("", "")
    for line in mounts:
        parts = line.split(" ")
        where = parts[1].replace("\\040", " ") if len(parts) > 2 else ""
        if where and at.is_relative_to(where) and len(where) >= len(best[0]):
            best = (where, parts[2])
    if best[1] in _NETWORKED:
        raise CannotServe(f"The home {home} lies on {best[1]}, where SQLite is not safe; name a local --home.")
