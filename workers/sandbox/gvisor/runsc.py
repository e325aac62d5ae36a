"""Starts a warm process under gVisor's `runsc`, in a file system with what Python needs. Trusted side.

1. Only the control socket (stdin), the filter of system calls (stdout) and stderr go in: there is no network, no path
   of the host that can be written, and nothing of the worker's environment.
2. What runsc notes about a sandbox lies in a private folder, which is removed with it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

import workers
from workers.sandbox.gvisor import sentry
from workers.sandbox.process import landlock
from workers.sandbox.process.lockdown import OUT_OF_MEMORY_SCORE
from workers.sandbox.process.scratch import Scratch, sweep_dead_roots

_CAPABILITIES: Final = (
    "CAP_SETUID",
    "CAP_SETGID",
    "CAP_SETPCAP",
    "CAP_SYS_ADMIN",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_CHOWN",
)
"""Of the warm process, in the sandbox's own kernel: it gives each run a root and a uid there, and ends it."""

CONTROL: Final = 0
CALLS: Final = 1
"""Where the warm process finds them: runsc hands in three descriptors and no more."""

_REFUSAL_SECONDS: Final = 30
_OPEN_FILES: Final = 1024
_NO_LIMIT: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """One sandbox: `runsc run`, the sentry and the gofer that it started, and what it keeps on disk.

    Attributes:
        scratch: The folder with its bundle, locked as long as we live.
    """

    scratch: Scratch
    process: subprocess.Popen[bytes]

    def sentry(self) -> int:
        """Open the folder in /proc of the sentry, the kernel that all runs of this sandbox have; return its descriptor.

        Raises:
            OSError: it is not there, or is no child of this runsc.
        """
        return sentry.folder_of(self.scratch.path / "sentry.pid", self.process.pid)

    def sweep(self) -> None:
        """Remove what it kept on disk, once its process has ended."""
        self.scratch.close()


def start(control: socket.socket, command: list[str], environment: Mapping[str, str], calls: int, stack: int) -> Guest:
    """Run a command in a new sandbox; its stdin is the control socket, its stdout the descriptor `calls`.

    Args:
        stack: Bytes of the main thread's stack.

    Raises:
        OSError: runsc is not installed, or its bundle cannot be written.
    """
    sweep_dead_roots()
    scratch = Scratch()
    try:
        _write_bundle(scratch.path, command, environment, stack)
        process = subprocess.Popen(
            _words(program(), scratch.path),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            stdin=control.fileno(),
            stdout=calls,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal is the worker's to hear
        )
    except BaseException:
        scratch.close()
        raise
    return Guest(scratch=scratch, process=process)


def refusal() -> str | None:
    """Why no sandbox can be had here, in runsc's words; None: it can."""
    scratch = Scratch()
    try:
        _write_bundle(scratch.path, ["/usr/bin/true"], {}, 8 << 20)
        done = subprocess.run(
            _words(program(), scratch.path),
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_REFUSAL_SECONDS,
            check=False,
            cwd="/",
        )
    except FileNotFoundError as error:
        return str(error)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"runsc: {error}"
    finally:
        scratch.close()
    return None if done.returncode == 0 else done.stderr.decode("utf-8", "replace").strip()[-300:] or "runsc failed"


def program() -> str:
    """Path of runsc.

    Raises:
        FileNotFoundError: it is not installed; the text says where to get it.
    """
    found = shutil.which("runsc")
    if found is None:
        raise FileNotFoundError("runsc is not installed (gvisor.dev/docs/user_guide/install has packages)")
    return found


def _words(runsc: str, folder: Path) -> list[str]:
    return [
        runsc,
        f"--root={folder}/state",
        "--network=none",
        "--ignore-cgroups",
        *(() if os.geteuid() == 0 else ("--rootless",)),
        "run",
        f"--bundle={folder}",
        f"--pid-file={folder}/sentry.pid",
        folder.name,  # of one sandbox alone: its control socket has this name
    ]


def _write_bundle(folder: Path, command: list[str], environment: Mapping[str, str], stack: int) -> None:
    """Write an OCI bundle: `config.json`, and a root that has the mount points."""
    root = folder / "rootfs"
    outside = list(landlock.not_below(landlock.python_paths(), ("/usr",)))
    folders = [path[1:] for path in outside if Path(path).is_dir()]
    for name in ("proc", "tmp", "dev", "sys", "etc", "usr", *folders):
        (root / name).mkdir(mode=0o755, parents=True, exist_ok=True)
    for path in outside:
        (root / path[1:]).touch()
    for file in landlock.FILES:
        if Path(file).exists():
            shutil.copyfile(file, root / file[1:])
    shutil.copyfile(Path(str(workers.__file__)).parent / "sandbox" / "hosts", root / "etc/hosts")
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["mode=0755"]},  # noqa: S108 its own
        *(_bind_mount(path) for path in ("/usr", *_libraries(root), *outside)),
    ]
    (folder / "config.json").write_bytes(msgspec.json.encode(_specification(command, environment, stack, mounts)))


def _libraries(root: Path) -> Iterator[str]:
    """/lib and its like: links into /usr are made, folders of their own come back to be bound."""
    for name in landlock.LINKS:
        path = Path("/", name)
        if path.is_symlink():
            (root / name).symlink_to(path.readlink())
        elif path.is_dir():
            (root / name).mkdir()
            yield str(path)


def _bind_mount(folder: str) -> dict[str, Any]:
    return {"destination": folder, "type": "bind", "source": folder, "options": ["rbind", "ro"]}


def _specification(
    command: list[str], environment: Mapping[str, str], stack: int, mounts: list[dict[str, Any]]
) -> dict[str, Any]:
    limits = {"RLIMIT_NOFILE": (_OPEN_FILES, _OPEN_FILES), "RLIMIT_STACK": (stack, _NO_LIMIT)}
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": command,
            "env": [f"{name}={value}" for name, value in environment.items()],
            "cwd": "/",
            "capabilities": dict.fromkeys(("bounding", "effective", "permitted"), _CAPABILITIES),
            "noNewPrivileges": True,
            "oomScoreAdj": OUT_OF_MEMORY_SCORE,  # of the sentry
            "rlimits": [{"type": name, "soft": soft, "hard": hard} for name, (soft, hard) in limits.items()],
        },
        "root": {"path": "rootfs", "readonly": True},
        "hostname": "localhost",
        "mounts": mounts,
        "linux": {"namespaces": [{"type": name} for name in ("pid", "network", "ipc", "uts", "mount")]},
    }
