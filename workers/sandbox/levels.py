"""The levels of isolation, and what a warm process must be told to give one.

| level | what holds | what it needs |
|---|---|---|
| `none` | limits, an own process group, an empty environment | nothing; for code that is trusted |
| `process` | Landlock, seccomp, NO_NEW_PRIVS besides | Linux 6.2, libseccomp, x86-64; no root |
| `namespace` | namespaces, a private root and /tmp besides | user namespaces or root, and bubblewrap |
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Final, Literal

Level = Literal["none", "process", "namespace"]

LEVELS: Final[tuple[Level, ...]] = ("none", "process", "namespace")
"""From the least to the most."""

SANDBOX_UID: Final = 64321
"""Whom children of a root's worker become, unless the settings say otherwise: no account has this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How a warm process and its children are confined.

    Attributes:
        level: Of every child.
        uid: Whom it becomes before it loads anything; None: it stays who the worker is, who is not root then.
        private_root: It sees a file system that holds nothing but the interpreter and the system's libraries.
    """

    level: Level = "none"
    uid: int | None = None
    private_root: bool = False


def up_to(level: Level) -> tuple[Level, ...]:
    """The levels that a child at this one satisfies."""
    return LEVELS[: LEVELS.index(level) + 1]


def as_arguments(confinement: Confinement, calls: int | None) -> list[str]:
    """What a zygote's command line says of it.

    Args:
        calls: The descriptor with the compiled filter of system calls.
    """
    words = ["--level", confinement.level]
    if confinement.uid is not None:
        words += ["--uid", str(confinement.uid)]
    if calls is not None:
        words += ["--calls", str(calls)]
    return words


def from_arguments(words: list[str]) -> argparse.Namespace:
    """A zygote's command line: `control`, `level`, `uid`, `calls`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("control", type=int)
    parser.add_argument("--level", choices=LEVELS, default="none")
    parser.add_argument("--uid", type=int)
    parser.add_argument("--calls", type=int)
    return parser.parse_args(words)
