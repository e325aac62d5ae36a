"""Where on this machine a worker can make cgroups: version 2 where memory and pids are to be had there, else version 1.

1. Groups are made below the worker's own only: nothing of the machine beside it is changed.
2. Version 2 gives limits only to groups below one that holds no process, so the worker moves itself one level down;
   other processes it leaves where they are.
3. Where none can be made the error says why, and what would change it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

NEEDED: Final = ("memory", "pids")
"""Without these two a group limits nothing that a run could use up."""

PREFIX: Final = "backprobe-"
_OWN: Final = Path("/proc/self/cgroup")
_MOUNTS: Final = Path("/proc/self/mountinfo")
_HOW_OLD: Final = "run the worker where /sys/fs/cgroup can be written, as root or with a part handed over to it"
_HOW_NEW: Final = (
    "give the worker its own cgroup: Delegate=yes in its systemd unit, or"
    " `systemd-run --user --scope -p Delegate=yes backprobe worker`"
)


class NoCgroup(OSError):
    """None can be made here; the text says why, and what would change it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where groups can be made: of each controller the folder, and the folder's name in `/proc/PID/cgroup`."""

    version: Literal[1, 2]
    folders: Mapping[str, Path]
    names: Mapping[str, str]


def find() -> Place:
    """Where this process can make groups.

    Raises:
        NoCgroup: nowhere.
    """
    mounts = {controller: where for where, controllers in _mounts() for controller in controllers}
    own = _own()
    unified = _find_group_folder(mounts.get("cgroup2"), own.get(""))
    if unified is not None and all(name in _words(unified[0] / "cgroup.controllers") for name in NEEDED):
        return _new(*unified)
    places = {name: _find_group_folder(mounts.get(name), own.get(name)) for name in (*NEEDED, "cpu", "cpuacct")}
    there = {name: place for name, place in places.items() if place is not None}
    if missing := [name for name in NEEDED if name not in there]:
        raise NoCgroup(f"no cgroup with {' and '.join(missing)} is mounted here ({_HOW_NEW})")
    for folder, _ in there.values():
        if not os.access(folder, os.W_OK):
            raise NoCgroup(f"{folder} cannot be written ({_HOW_OLD})")
    return Place(
        version=1,
        folders={name: folder for name, (folder, _) in there.items()},
        names={name: path for name, (_, path) in there.items()},
    )


def _new(folder: Path, name: str) -> Place:
    """Version 2, with its limits switched on for the groups below."""
    wanted = [controller for controller in (*NEEDED, "cpu") if controller in _words(folder / "cgroup.controllers")]
    if not os.access(folder, os.W_OK) or not os.access(folder / "cgroup.subtree_control", os.W_OK):
        raise NoCgroup(f"{folder} cannot be written ({_HOW_NEW})")
    if not set(wanted) <= set(_words(folder / "cgroup.subtree_control")):
        try:
            _switch_on(folder, wanted)
        except OSError as error:
            raise NoCgroup(f"{folder} gives no limits to groups below it: {error.strerror} ({_HOW_NEW})") from None
    return Place(version=2, folders=dict.fromkeys(wanted, folder), names=dict.fromkeys(wanted, name.rstrip("/")))


def _switch_on(folder: Path, wanted: list[str]) -> None:
    """Only a group that holds no process can: this one moves down, and back if another process stays behind."""
    words = " ".join(f"+{controller}" for controller in wanted)
    with contextlib.suppress(OSError):
        (folder / "cgroup.subtree_control").write_text(words, encoding="ascii")
        return  # the root group may hold processes
    leaf = folder / f"{PREFIX}worker-{os.getpid()}"
    leaf.mkdir(exist_ok=True)
    (leaf / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    try:
        (folder / "cgroup.subtree_control").write_text(words, encoding="ascii")
    except OSError:
        (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
        leaf.rmdir()
        raise


def make_group(place: Place, name: str) -> Place:
    """Make a group in each hierarchy with its controllers switched on; remove what dead workers left."""
    try:
        for folder in set(place.folders.values()):
            _sweep(folder)
            (folder / name).mkdir(mode=0o755)
            if place.version == 2:
                words = " ".join(f"+{controller}" for controller in place.folders)
                (folder / name / "cgroup.subtree_control").write_text(words, encoding="ascii")
    except OSError as error:
        raise NoCgroup(f"no cgroup can be made: {error.strerror}: {error.filename} ({_HOW_OLD})") from None
    return Place(
        version=place.version,
        folders={controller: folder / name for controller, folder in place.folders.items()},
        names={controller: f"{above.rstrip('/')}/{name}" for controller, above in place.names.items()},
    )


def _sweep(folder: Path) -> None:
    """Remove the groups of workers that are gone; one that still holds a process stays."""
    for old in folder.glob(f"{PREFIX}[0-9]*-*"):
        pid = old.name.removeprefix(PREFIX).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            _remove_folder(old)


def remove(place: Place) -> None:
    """Take a worker's own group away; one that still holds a process stays."""
    for folder in set(place.folders.values()):
        _remove_folder(folder)


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for run in [path for path in folder.iterdir() if path.is_dir()]:
            run.rmdir()
        folder.rmdir()


def own_folders(hierarchy: str) -> list[Path]:
    """Return the folder of this process's group in a hierarchy, and those above it as far as they are mounted here.

    Args:
        hierarchy: A controller of version 1, or `cgroup2`.
    """
    try:
        mounts = {controller: where for where, controllers in _mounts() for controller in controllers}
        found = _find_group_folder(mounts.get(hierarchy), _own().get("" if hierarchy == "cgroup2" else hierarchy))
    except OSError:
        return []
    if found is None:
        return []
    return [folder for folder in (found[0], *found[0].parents) if folder.is_relative_to(mounts[hierarchy][1])]


def _mounts() -> Iterator[tuple[tuple[str, str], list[str]]]:
    """Of each mounted hierarchy the root that it shows and where it is, and its controllers (`cgroup2` for the new)."""
    for line in _MOUNTS.read_text("utf-8").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        where = before.split()[3], before.split()[4]
        if kind in ("cgroup", "cgroup2"):
            yield where, ["cgroup2"] if kind == "cgroup2" else options.split(",")


def _own() -> dict[str, str]:
    """Return the path of this process's group by controller; that of version 2 has the empty name."""
    found: dict[str, str] = {}
    for line in _OWN.read_text("utf-8").splitlines():
        _, controllers, path = line.split(":", 2)
        found |= dict.fromkeys(controllers.split(","), path)
    return found


def _find_group_folder(mount: tuple[str, str] | None, own: str | None) -> tuple[Path, str] | None:
    """Find the folder of a group in a mounted hierarchy; None if that is not mounted or does not show the group."""
    if mount is None or own is None:
        return None
    root, place = mount
    if root not in ("/", own) and not own.startswith(f"{root}/"):
        return None
    folder = Path(place, own.removeprefix(root if root != "/" else "").lstrip("/"))
    return (folder, own.rstrip("/")) if folder.is_dir() else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text("ascii").split()
    except OSError:
        return []
