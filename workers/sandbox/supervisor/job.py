"""What a supervisor is asked to run, and how it travels: as sealed memfds that only the child reads."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final

import msgspec

from store.runs.limits import Limits
from workers.sandbox.process.program import Program, Tier

SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


_LOOKS: Final = re.compile(
    r"(?<![\w.])__file__|\bargv\s*\[\s*0|\babspath\b|\bgetcwd\b|\bcwd\b|\bgetsource|\biterdir\b|\br?glob\b|\bspawn\b"
    r"|\b(?:listdir|scandir|walk)\(\s*(?:\)|['\"]\.)"
)
"""How a program names its own file, or lists the folder that it was started in; `spawn` reads the file once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program and the limits it runs under.

    Attributes:
        tier, every, histograms: As `backprobe.capture.Options` has them.
        check: The gradients are checked in full; else not at all, for a copy of the process needs a second one.
        files: Path to text; entry: one of them, or a module among them.
        stdin: What it reads on its standard input; None is /dev/null.
    """

    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    stdin: bytes | None = None
    tier: Tier = "full"
    every: int | None = None
    histograms: bool = False
    check: bool = False
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def on_disk(self) -> bool:
        """Its files are to lie in its working directory, for it may look for them there.

        One file alone is spared that unless its text tells that it looks: a separate folder costs a run at `process`
        the child that was made ahead. Where nothing may be written nothing lies.
        """
        if not self.limits.disk_bytes or not self.files:
            return False
        text = self.files.get(self.entry)
        return len(self.files) > 1 or text is None or PurePosixPath(self.entry).name in text or _looks(text)

    def program(self) -> bytes:
        """Encode the program for the child."""
        program = Program(
            files=dict(self.files),
            entry=self.entry,
            on_disk=self.on_disk,
            arguments=self.arguments,
            tier=self.tier,
            every=self.every,
            histograms=self.histograms,
            check=self.check,
            seed=self.seed,
            threads=self.limits.threads,
            record_bytes=self.limits.record_bytes * 7 // 8,
            record_rows=self.limits.record_rows * 7 // 8,
        )
        return msgspec.msgpack.encode(program)

    def stdin_descriptor(self) -> int:
        """Open a sealed memfd with the standard input, at its beginning; or /dev/null."""
        if self.stdin is None:
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        descriptor = memory()
        fill(descriptor, self.stdin)
        return descriptor


def _looks(text: str) -> bool:
    """Return whether a program of one file may look for that file, or at the folder that it lies in."""
    return _LOOKS.search(text) is not None


def memory() -> int:
    """Create an empty memfd."""
    return os.memfd_create("backprobe", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def fill(descriptor: int, content: bytes) -> None:
    """Write this into a memfd, which nobody can change any more then; its offset is 0.

    Raises:
        OSError: there is no room for it.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
