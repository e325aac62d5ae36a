"""The file system that a warm process sees behind bubblewrap: what is not bound does not exist.

Built once, around the zygote, so it costs a run nothing. It holds the interpreter, the packages, the system's
libraries, a minimal /dev, an own /proc and an empty /tmp; no /etc but a name for `lo`, no home, no socket of the host.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import Final

import workers
from workers.sandbox.process import landlock

_SETTINGS: Final = Path("/proc/sys")
_USER_NAMESPACES: Final = (
    ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ("kernel/unprivileged_userns_clone", "0", "1"),
    ("user/max_user_namespaces", "0", "10000"),
)
"""Settings that keep bubblewrap from a user namespace: the value that refuses, and one that allows."""


def wrap_command(command: list[str]) -> list[str]:
    """Return the command that runs this command inside a private root.

    Raises:
        OSError: bubblewrap is not installed.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise FileNotFoundError("bubblewrap (bwrap) is not installed")
    user = [] if os.geteuid() == 0 else ["--unshare-user"]
    return [
        bwrap,
        *user,
        *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
        "--die-with-parent",
        *_system(),
        *("--proc", "/proc", "--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108 its own
        *_folders(landlock.python_paths()),  # last: an interpreter may lie in /tmp, and would be covered
        *("--remount-ro", "/"),
        "--",
        *command,
    ]


def refusal() -> str | None:
    """Why no private root can be had here, in bubblewrap's words; None: it can."""
    try:
        done = subprocess.run(
            wrap_command(["/usr/bin/true"]),
            capture_output=True,
            timeout=20,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()[-300:]


def remedy() -> str:
    """Return the command that most likely makes a private root possible here."""
    if shutil.which("bwrap") is None:
        return "apt-get install bubblewrap"
    for setting, refusing, allowing in _USER_NAMESPACES if os.geteuid() else ():  # root needs none for this
        with contextlib.suppress(OSError):
            if (_SETTINGS / setting).read_text("ascii").strip() == refusing:
                return f"sysctl -w {setting.replace('/', '.')}={allowing}"
    return "allow user namespaces and mounts: in a container, start it with --cap-add SYS_ADMIN"


def _system() -> Iterable[str]:
    """/usr whole, as Debian and Fedora lay it out, and the cache of its libraries."""
    yield from ("--ro-bind", "/usr", "/usr")
    for link in landlock.LINKS:
        path = Path("/", link)
        if path.is_symlink():
            yield from ("--symlink", f"usr/{link}", str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    yield from ("--perms", "0755", "--dir", "/etc")
    for file in landlock.FILES:
        yield from ("--ro-bind-try", file, file)
    yield from ("--ro-bind", str(Path(str(workers.__file__)).parent / "sandbox" / "hosts"), "/etc/hosts")


def _folders(folders: Iterable[str]) -> Iterable[str]:
    """Each folder where it lies outside, under parents that anybody may pass."""
    made = {"/tmp"}  # noqa: S108 there already, for everybody to write
    bound: list[str] = []
    for folder in landlock.not_below(folders, ("/usr",)):
        for parent in reversed(PurePosixPath(folder).parents[:-1]):
            if str(parent) not in made and not any(str(parent).startswith(f"{mount}/") for mount in bound):
                made.add(str(parent))
                yield from ("--perms", "0755", "--dir", str(parent))
        bound.append(folder)
        yield from ("--ro-bind", folder, folder)
