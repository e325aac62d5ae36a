"""What the trusted side reads about a locked child before letting it go; the child is never asked.

1. Everything is read through a descriptor of its folder in /proc: it never means another process with the same pid.
2. A field that differs from what the level prescribes, or that cannot be read, means that the child must not go.
3. Landlock shows in none of these files: what it holds is proved by the probe, and stored as probed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from workers.sandbox.levels.cgroups import Cgroup, bounds_to_json
from workers.sandbox.levels.names import Confinement
from workers.sandbox.process.lockdown import OUT_OF_MEMORY_SCORE, open_files
from workers.sandbox.process.messages import Fork
from workers.sandbox.process.namespaces import NO_CORE
from workers.sandbox.process.scratch import PREFIX

NAMESPACES: Final = ("pid", "net", "mnt", "ipc", "uts", "cgroup", "user")

_PRESCRIBED: Final[Mapping[str, str]] = {
    "CapEff": "0000000000000000",
    "CapPrm": "0000000000000000",
    "NoNewPrivs": "1",
    "Seccomp": "2",
    "Threads": "1",
    "Umask": "0077",
    "SigBlk": "0000000000000000",
    "SigIgn": "0000000001001000",
    "SigCgt": "0000000000000002",
}
"""Of /proc/PID/status. Signals as `python script.py` starts with them: SIGPIPE and SIGXFSZ ignored, SIGINT handled."""
_LIBRARY_SIGNALS: Final = 1 << 31 | 1 << 32
"""Signals 32 and 33, which libc keeps to itself: what started us may have had them ignored, and nobody can undo it."""
_FILE: Final = 1 << 16


class Differs(Exception):
    """The child is not locked down as its level prescribes; the text names the field and both values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFacts:
    """What was read of one child, as it is stored with the run."""

    uid: int
    capabilities: str
    no_new_privs: bool
    seccomp: int
    namespaces: tuple[str, ...]
    descriptors: int
    private_tmp: bool
    cgroup: dict[str, float | None] | None = None


def attest(child: int, order: Fork, confinement: Confinement, cgroup: Cgroup | None = None) -> ChildFacts:
    """Read the child, and compare.

    Args:
        child: A descriptor of the folder in /proc of the process that was forked.
        order: What it was to be limited to.
        cgroup: What it was put into.

    Raises:
        Differs: it must be ended.
    """
    try:
        return _inspect_child(child, order, confinement, cgroup)
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise Differs(f"it cannot be looked at: {type(error).__name__}: {error}") from error


def never_root(child: int, confinement: Confinement) -> None:
    """At level `none`, where nothing else is attested: the child is not root's, and whose it was to become.

    Raises:
        Differs: it must be ended.
    """
    try:
        status = status_of(child)
        if "0" in status["Uid"].split() or confinement.uid is not None:
            _uid_of(status, confinement.uid)
    except (OSError, KeyError) as error:
        raise Differs(f"it cannot be looked at: {type(error).__name__}: {error}") from error


def _uid_of(status: Mapping[str, str], wanted: int | None) -> int:
    uids = set(status["Uid"].split() + status["Gid"].split())
    if "0" in uids or len(uids) != 1 or (wanted is not None and uids != {str(wanted)}):
        raise Differs(f"its uid and gid are {status['Uid'].split()} and {status['Gid'].split()}")
    return int(uids.pop())


def _inspect_child(child: int, order: Fork, confinement: Confinement, cgroup: Cgroup | None) -> ChildFacts:
    apart = confinement.level == "namespace"
    folder = _program_of(child) if apart else os.dup(child)
    try:
        status = status_of(folder)
        status["SigIgn"] = f"{int(status['SigIgn'], 16) & ~_LIBRARY_SIGNALS:016x}"
        _same({name: status[name] for name in _PRESCRIBED}, _PRESCRIBED)
        uid = _uid_of(status, order.uid or confinement.uid)
        listed = sorted(_list_folder(folder, "fd"), key=int)
        if listed != ["0", "1", "2", "3", "4", "5"]:
            raise Differs(f"it holds the descriptors {listed}")
        _limits(folder, order, apart=apart)
        _same({"oom_score_adj": text_of(folder, "oom_score_adj")}, {"oom_score_adj": str(OUT_OF_MEMORY_SCORE)})
        _alone(folder, status, order, apart=apart)
        return ChildFacts(
            uid=uid,
            capabilities=status["CapEff"],
            no_new_privs=True,
            seccomp=2,
            namespaces=_own_namespaces(folder, status, apart=apart),
            descriptors=len(listed),
            private_tmp=apart and _private_tmp(folder, order),
            cgroup=_check_cgroup_bounds(folder, cgroup) if confinement.cgroups else None,
        )
    finally:
        os.close(folder)


def _program_of(relay: int) -> int:
    """Open the folder of pid 1 of the run's namespace, given that of its relay."""
    (task,) = _list_folder(relay, "task")
    (inner,) = text_of(relay, f"task/{task}/children").split()
    return os.open(f"../{int(inner)}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=relay)


def _alone(folder: int, status: Mapping[str, str], order: Fork, *, apart: bool) -> None:
    """Raise unless the child leads its own session and its working folder is the prescribed one."""
    group, session = text_of(folder, "stat").rpartition(")")[2].split()[2:4]
    if {group, session} != {status["Pid"].strip()}:
        raise Differs(f"its process group is {group}, its session {session}")
    stands = os.readlink("cwd", dir_fd=folder)
    if order.laid_out and not apart:
        as_prescribed = re.fullmatch(rf"/.*/{PREFIX}[^/]+/{order.serial}", stands) is not None
    else:
        as_prescribed = stands == ("/tmp" if apart else "/")  # noqa: S108 a name that was read
    if not as_prescribed:
        raise Differs(f"its working directory is {stands}")


def _own_namespaces(folder: int, status: Mapping[str, str], *, apart: bool) -> tuple[str, ...]:
    own = differing_namespaces(folder)
    innermost = status["NSpid"].split()[-1]
    if apart and (set(own) != set(NAMESPACES) or innermost != "1"):
        raise Differs(f"its own namespaces are {', '.join(own) or 'none'}, its pid there is {innermost}")
    return own


def _private_tmp(folder: int, order: Fork) -> bool:
    mounts = [line.partition(" - ") for line in text_of(folder, "mountinfo").splitlines()]
    places = {place[0].split()[4]: (place[2].split()[0], place[2]) for place in mounts}
    size = f"size={max(order.file_bytes, 4096) + 4095 >> 12 << 2}k"
    for place in ("/tmp", "/dev/shm"):  # noqa: S108 looked at, not written
        kind, words = places.get(place, ("nothing", ""))
        if kind != "tmpfs" or (order.file_bytes and size not in words.replace(",", " ").split()):
            raise Differs(f"{place} is {kind} ({words[:80]}), not a tmpfs of {size}")
    return True


def _check_cgroup_bounds(folder: int, cgroup: Cgroup | None) -> dict[str, float | None]:
    if cgroup is None:
        raise Differs("it has no cgroup")
    listed = text_of(folder, "cgroup")
    if not cgroup.holds(listed):
        raise Differs(f"it is not in its cgroup but in {' '.join(listed.split())}")
    bounds = cgroup.bounds()
    if bounds != cgroup.asked:
        raise Differs(f"its cgroup holds it to {bounds}, not to {cgroup.asked}")
    return bounds_to_json(bounds)


def _limits(folder: int, order: Fork, *, apart: bool) -> None:
    soft = {line[:26].strip(): line[26:].split()[0] for line in text_of(folder, "limits").splitlines()[1:]}
    _same(
        {name: soft[name] for name in ("Max cpu time", "Max open files", "Max core file size", "Max file size")},
        {
            "Max cpu time": str(order.cpu_seconds),
            "Max open files": str(open_files(order)),
            "Max core file size": str(NO_CORE),
            "Max file size": str(order.file_bytes if apart else 0),
        },
    )
    if order.memory_bytes and soft["Max address space"] == "unlimited":
        raise Differs("its address space is unlimited")


def status_of(folder: int) -> dict[str, str]:
    """Of a process, by the descriptor of its folder in /proc: what the kernel says of it, by name."""
    return dict(line.split(":\t", 1) for line in text_of(folder, "status").splitlines() if ":\t" in line)


def differing_namespaces(folder: int) -> tuple[str, ...]:
    """Those that a process has for itself, or at least not with us."""
    ours = Path("/proc/self/ns")
    return tuple(
        name for name in NAMESPACES if os.readlink(f"ns/{name}", dir_fd=folder) != str((ours / name).readlink())
    )


def _same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if found[name].strip() != value:
            raise Differs(f"its {name} is {found[name].strip()}, not {value}")


def _list_folder(folder: int, name: str) -> list[str]:
    opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(opened)  # noqa: PTH208 of a descriptor
    finally:
        os.close(opened)


def text_of(folder: int, name: str) -> str:
    """Read a whole file of that folder."""
    opened = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        pieces: list[bytes] = []
        while piece := os.read(opened, _FILE):
            pieces.append(piece)
        return b"".join(pieces).decode("utf-8", "replace")
    finally:
        os.close(opened)
