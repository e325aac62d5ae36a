"""What isolation this machine can give, and why not more: looked up before anything is started.

A level that is not lacking anything here is still only a candidate: the probe decides.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from backprobe.isolation import ISOLATION_LEVELS, IsolationLevel
from workers.sandbox.gvisor import runsc
from workers.sandbox.levels import cgroups
from workers.sandbox.levels.names import SANDBOX_UID, SLOT_UIDS, Confinement, choose_program_uid
from workers.sandbox.process import landlock, namespaces, private_root, seccomp

Asked = IsolationLevel | Literal["auto"]
"""`auto`: the highest level up to `namespace` that lacks nothing."""

_TRIED: Final[dict[IsolationLevel, tuple[IsolationLevel, ...]]] = {
    "process": ("namespace", "process"),
    "none": ("namespace", "process", "none"),
}
"""By the least that will do: what `auto` looks at, the best first."""

_HOW_LANDLOCK: Final = "Linux 6.2 or later has it, if the kernel's list of security modules names it: lsm=landlock,..."


class CannotConfine(OSError):
    """The level that the settings ask for cannot be given here; the text says what is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What was chosen. `missed`: the higher levels that `auto` had to leave out, each with what is missing."""

    confinement: Confinement
    missed: tuple[str, ...] = ()


def confinement(asked: Asked, uid: int = SANDBOX_UID, *, trust_code: bool = False) -> Confinement:
    """How the warm process of a worker is to be confined.

    Args:
        asked: A level; `auto`: the highest that lacks nothing.
        uid: Whom children of a root's worker become.
        trust_code: `auto` may end at `none`. It never ends at `gvisor`, where a run takes ten times as long to start.

    Raises:
        CannotConfine: it cannot be given.
    """
    return choice(asked, uid, trust_code=trust_code).confinement


def choice(asked: Asked, uid: int = SANDBOX_UID, *, trust_code: bool = False) -> Choice:
    """As `confinement`, with what kept it from more.

    Raises:
        CannotConfine: it cannot be given.
    """
    least: IsolationLevel = asked if asked != "auto" else "none" if trust_code else "process"
    missed: list[str] = []
    for level in _TRIED[least] if asked == "auto" else (asked,):
        lacks = lacking(level, uid)
        if not lacks:
            return Choice(confinement=_build_confinement(level, uid), missed=tuple(missed))
        missed.append(f"isolation {level} cannot be given here: {'; '.join(lacks)}")
    raise CannotConfine(missed[-1])


def lacking(level: IsolationLevel, uid: int = SANDBOX_UID) -> tuple[str, ...]:
    """List what this machine lacks for a level, each with what would change it; empty if it lacks nothing."""
    if level == "gvisor":
        return tuple(_lacks_second_kernel())
    if level == "none":
        return tuple(_lacks_python(uid))
    found = [*_lacks_calls_and_files(), *_lacks_python(uid)]
    refusal = private_root.refusal() if level == "namespace" and sys.platform == "linux" else None
    if refusal is not None:
        found.append(f"no private root: {refusal} ({private_root.remedy()})")
    return tuple(found)


def _lacks_python(uid: int) -> Iterator[str]:
    """Root's programs become another user at every level. That user must be able to read Python.

    A folder closed on the way to Python is replaced by mounts, which a closed folder of Python itself cannot be.
    """
    if unreadable := landlock.unreadable(uid):
        yield f"uid {uid} cannot read {unreadable[0]} (chmod -R o+rX {shlex.join(landlock.not_below(unreadable))})"
    elif (hidden := landlock.hidden(uid)) and not namespaces.may_mount():
        yield f"uid {uid} cannot read {hidden[0]}, and root may not mount here (chmod o+x {hidden[0]})"


def table(uid: int = SANDBOX_UID) -> Iterator[tuple[IsolationLevel, tuple[str, ...]]]:
    """Each level and what it lacks here."""
    for level in ISOLATION_LEVELS:
        yield level, lacking(level, uid)


def _build_confinement(level: IsolationLevel, uid: int) -> Confinement:
    root = os.geteuid() == 0
    apart = level in ("namespace", "gvisor")
    without = cgroups.lacking() if level == "namespace" else f"level {level} has none"
    return Confinement(
        level=level,
        uid=choose_program_uid(uid),
        private_root=apart or (level == "process" and bool(landlock.hidden(uid)) and private_root.refusal() is None),
        uids=SLOT_UIDS if level == "gvisor" or (apart and root) else 0,
        cgroups=without is None,
        no_cgroups=without or "",
    )


def _describe_covered_folders() -> Iterator[str]:
    covered = [folder for folder in landlock.python_paths() if folder.startswith("/tmp/")]  # noqa: S108 theirs
    if covered:
        yield f"{covered[0]} lies in /tmp, which gvisor replaces for each run (move it elsewhere)"


def _lacks_second_kernel() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"{sys.platform} has no runsc (run the worker in a virtual machine with Linux)"
        return
    yield from _lacks_filter()
    yield from _describe_covered_folders()
    if (refusal := runsc.refusal()) is not None:
        yield refusal


def _lacks_calls_and_files() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"{sys.platform} has neither Landlock nor seccomp (run the worker in a virtual machine with Linux)"
        return
    abi = landlock.landlock_abi()
    if abi < landlock.LEAST_ABI:
        yield f"Landlock is version {abi} here, {landlock.LEAST_ABI} is the least ({_HOW_LANDLOCK})"
    yield from _lacks_filter()


def _lacks_filter() -> Iterator[str]:
    try:
        seccomp.compile_filter()
    except OSError as error:
        yield f"{error.strerror} (apt-get install libseccomp2)"
