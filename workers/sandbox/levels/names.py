"""The levels of isolation, and what a warm process must be told to give one.

| level | what holds | what it needs |
|---|---|---|
| `none` | limits, an own process group, an empty environment, never root | nothing; for code that is trusted |
| `process` | Landlock, seccomp, NO_NEW_PRIVS besides | Linux 6.2, libseccomp, x86-64; no root |
| `namespace` | namespaces, a private root and /tmp besides | user namespaces or root, and bubblewrap |
| `gvisor` | a second kernel, with its own root and seccomp; no Landlock | `runsc`, libseccomp, x86-64 |
"""

from __future__ import annotations

import argparse
import os
from dataclasses import dataclass
from typing import Final

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel

SANDBOX_UID: Final = 64321
"""Whom children of a root's worker become, unless the settings say otherwise: no account has this number."""

SLOT_UIDS: Final = 1000
"""At `namespace`, runs of a root's worker share out as many uids as this, from the one after that on; at `gvisor`, runs
of any worker, for there these numbers mean something to the sandbox's own kernel only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """How a warm process and its children are confined.

    Attributes:
        level: Of every child.
        uid: Whom it becomes before it loads anything; None: it stays who the worker is, who is not root then.
        private_root: It sees a file system that holds nothing but the interpreter and the system's libraries.
        uids: How many uids, from the one after `uid` on, are given to runs in flight, one each; 0: all share one.
        cgroups: Each child has its own cgroup; else `no_cgroups` says why not.
        memory_bytes: Where an executor holds it, what all its runs may have together; 0: it is on this machine.
    """

    level: IsolationLevel = "none"
    uid: int | None = None
    private_root: bool = False
    uids: int = 0
    cgroups: bool = False
    no_cgroups: str = ""
    memory_bytes: int = 0


def choose_program_uid(uid: int = SANDBOX_UID) -> int | None:
    """Whom the programs of this process become: `uid` under root, at every level; None: they stay who we are."""
    return uid if os.geteuid() == 0 else None


def up_to(level: IsolationLevel) -> tuple[IsolationLevel, ...]:
    """List the levels that a child at this level satisfies."""
    return ISOLATION_LEVELS[: ISOLATION_LEVELS.index(level) + 1]


def as_arguments(
    confinement: Confinement, calls: int | None, more_calls: int | None = None, *, further: bool = True
) -> list[str]:
    """Return the part of a zygote's command line that states the confinement.

    Args:
        calls: The descriptor with the compiled filter of system calls; more_calls: of runs with several processes.
        further: It goes on warming up in its pauses.
    """
    words = ["--level", confinement.level]
    if confinement.uid is not None:
        words += ["--uid", str(confinement.uid)]
    if calls is not None:
        words += ["--calls", str(calls)]
    if more_calls is not None:
        words += ["--more-calls", str(more_calls)]
    if not further:
        words += ["--no-further"]
    return words


def from_arguments(words: list[str]) -> argparse.Namespace:
    """Parse a zygote's command line: `control`, `level`, `uid`, `calls`, `more_calls`, `further`."""
    parser = argparse.ArgumentParser()
    parser.add_argument("control", type=int)
    parser.add_argument("--level", choices=ISOLATION_LEVELS, default="none")
    parser.add_argument("--uid", type=int)
    parser.add_argument("--calls", type=int)
    parser.add_argument("--more-calls", type=int)
    parser.add_argument("--no-further", dest="further", action="store_false")
    return parser.parse_args(words)
