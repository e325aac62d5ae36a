"""Frames that could not be sent, as files below the home: a folder for each run.

    spool/run_01J.../run.json                 the service, and what makes the run
                     00000000-00000042.frames frames 0 to 41, as they are sent
                     end.json                 how the job ended; absent: it was killed, or goes on
                     lock                     held by the process that sends the run

A file is written beside its place, forced to disk and renamed: it is whole or absent. No key is ever written here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from backprobe.recorder.pieces import Piece

MOST_BYTES: Final = 1 << 30
"""Of all runs of a home together."""

_RUN: Final = re.compile(r"run_[0-7][0-9A-HJKMNP-TV-Z]{25}")
_FRAMES: Final = re.compile(r"([0-9]{8})-([0-9]{8})\.frames")


class SpoolFull(OSError):
    """The spool has as many bytes as it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A run of the spool.

    Attributes:
        url: Its service. body: what makes the run. end: how the job ended; None: it was killed, or goes on.
        pieces: Its frames, in order. in_use: a process sends it now.
    """

    run: str
    folder: Path
    url: str
    body: Mapping[str, Any]
    end: Mapping[str, Any] | None
    pieces: tuple[Piece, ...]
    in_use: bool

    @property
    def size(self) -> int:
        """Bytes of its frames."""
        return sum(piece.size for piece in self.pieces)


class SpoolFolder:
    """The folder of one run, made when something is first put into it, and held until `close`.

    Args:
        home: Of the spool.
        run: Public id of the run.
        most_bytes: Of the whole spool.
    """

    def __init__(self, home: Path, run: str, *, most_bytes: int = MOST_BYTES) -> None:
        if not _RUN.fullmatch(run):
            raise ValueError(f"{run[:40]!r} is no id of a run")
        self.path = home / run
        self._home, self._most = home, most_bytes
        self._lock: int | None = None
        self._spooled_bytes = 0

    @property
    def is_held(self) -> bool:
        """It was made, and is this process's."""
        return self._lock is not None

    def hold(self) -> bool:
        """Make the folder and hold it against other processes; False: another one holds it.

        Raises:
            OSError: it cannot be made.
        """
        if self._lock is not None:
            return True
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return False
        self._lock = lock
        self._spooled_bytes = _bytes_below(self._home)
        return True

    def keep(self, piece: Piece) -> Piece:
        """Write a piece; the same piece, in its file.

        Raises:
            SpoolFull: the spool has no room for it. OSError: the disk has none, or something else is wrong with it.
        """
        held = piece.read()
        if self._spooled_bytes + len(held) > self._most:
            raise SpoolFull(f"the spool at {self._home} is full: it holds at most {self._most:,} bytes")
        path = self.path / f"{piece.first:08}-{piece.first + piece.count:08}.frames"
        self._write(path, held)
        self._spooled_bytes += len(held)
        return replace(piece, held=None, path=path)

    def keep_run(self, url: str, body: Mapping[str, Any]) -> None:
        """Write what makes the run.

        Raises:
            OSError: it cannot be written.
        """
        self._write(self.path / "run.json", json.dumps({"url": url, "body": body}).encode())

    def keep_end(self, body: Mapping[str, Any]) -> None:
        """Write how the job ended.

        Raises:
            OSError: it cannot be written.
        """
        self._write(self.path / "end.json", json.dumps(body).encode())

    def let_go(self, piece: Piece) -> None:
        """Delete the file of a piece that was sent."""
        if piece.path is not None:
            piece.path.unlink(missing_ok=True)
            self._spooled_bytes -= piece.size

    def rename(self, run: str) -> None:
        """Its run has another id now.

        Raises:
            OSError: it cannot be renamed.
        """
        path = self._home / run
        if self._lock is not None:
            self.path.rename(path)
        self.path = path

    def here(self, piece: Piece) -> Piece:
        """Return the piece with the place where its file is now."""
        return piece if piece.path is None else replace(piece, path=self.path / piece.path.name)

    def remove(self) -> None:
        """All of it was sent, or is wanted no more."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.close()

    def close(self) -> None:
        """Let other processes send it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write(self, path: Path, held: bytes) -> None:
        beside = path.with_suffix(".part")
        file = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            left = memoryview(held)
            while left:
                left = left[os.write(file, left) :]
            os.fsync(file)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
        finally:
            os.close(file)
        beside.replace(path)


def list_spooled_runs(home: Path) -> Iterator[Spooled]:
    """Return the runs of the spool, oldest first; skip folders that Backprobe did not make."""
    folders = sorted(home.iterdir()) if home.is_dir() else []
    for folder in folders:
        if _RUN.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
            found = _read(folder)
            if found is not None:
                yield found


def _read(folder: Path) -> Spooled | None:
    try:
        told = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        url, body = str(told["url"]), dict(told["body"])
        ended = folder / "end.json"
        end = dict(json.loads(ended.read_text(encoding="utf-8"))) if ended.exists() else None
        pieces = sorted(_pieces(folder), key=lambda piece: piece.first)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Spooled(
        run=folder.name, folder=folder, url=url, body=body, end=end, pieces=tuple(pieces), in_use=_in_use(folder)
    )


def _pieces(folder: Path) -> Iterator[Piece]:
    for path in folder.iterdir():
        found = _FRAMES.fullmatch(path.name)
        if found is not None:
            first, behind = int(found[1]), int(found[2])
            yield Piece(first=first, count=behind - first, size=path.stat().st_size, path=path)


def _in_use(folder: Path) -> bool:
    try:
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _bytes_below(home: Path) -> int:
    return sum(path.stat().st_size for path in home.glob("run_*/*.frames"))
