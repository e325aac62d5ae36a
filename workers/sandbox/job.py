"""What a supervisor is asked to run, and how it travels: as sealed memfds that only the child reads."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from store.limits import Limits
from workers.sandbox.program import Program, Tier

SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One program and the limits it runs under.

    Attributes:
        tier, every, histograms: As `backprobe.capture.Options` has them.
        stdin: What it reads on its standard input; None is /dev/null.
    """

    files: Mapping[str, str]
    entry: str
    arguments: tuple[str, ...] = ()
    stdin: bytes | None = None
    tier: Tier = "full"
    every: int | None = None
    histograms: bool = False
    seed: int | None = None
    limits: Limits = field(default_factory=Limits)

    def program(self) -> bytes:
        """What the child decodes."""
        program = Program(
            files=dict(self.files),
            entry=self.entry,
            arguments=self.arguments,
            tier=self.tier,
            every=self.every,
            histograms=self.histograms,
            seed=self.seed,
            threads=self.limits.threads,
            record_bytes=self.limits.record_bytes * 7 // 8,
            record_rows=self.limits.record_rows * 7 // 8,
        )
        return msgspec.msgpack.encode(program)

    def stdin_descriptor(self) -> int:
        """A sealed memfd with the standard input, at its beginning; or /dev/null."""
        if self.stdin is None:
            return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        descriptor = memory()
        fill(descriptor, self.stdin)
        return descriptor


def memory() -> int:
    """An empty memfd."""
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
