"""What the trusted side reads about a sentry, the kernel in user space under which all runs of one warm process run.

1. It is attested before each run goes, from the host's /proc, through a descriptor that never means another process.
2. The run itself is a task of the sentry and no process of the host: nothing of it can be read from here. What holds it
   inside is proved by the probe, and every field says whose it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from workers.sandbox.levels.attestation import Differs, differing_namespaces, status_of, text_of

SENTRY_BYTES: Final = 128 << 20
"""What a run may make its sentry take for itself. A file costs it 1.7 kB, whatever its size: the 4,096 files that level
`namespace` allows a run with 64 MiB of disk would be 7 MB of this."""

_OWN_NAMESPACES: Final = frozenset({"user", "net", "mnt", "ipc", "uts"})
_CAPABILITIES: Final = 1 << 18 | 1 << 19 | 1 << 21
"""CAP_SYS_CHROOT, CAP_SYS_PTRACE and CAP_SYS_ADMIN: the most that it may have, and only in its own user namespace,
where its own filter of system calls leaves them little to act on."""

_FILE_SYSTEMS: Final = ("tmpfs", "proc")
_GENERATIONS: Final = 2
"""Where the worker is not root, runsc starts itself once more, in a user namespace, before it starts the sentry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentry:
    """What was read of one, as it is stored with a run.

    Attributes:
        pid: On the worker's machine; uid: there too.
        capabilities: In its own user namespace.
    """

    pid: int
    executable: str
    uid: int
    capabilities: str
    no_new_privs: bool
    seccomp: int
    namespaces: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentryFacts:
    """What is known of a run at level `gvisor`.

    Attributes:
        attested_is: What the facts in `sentry` were read of.
        within: What holds the run inside: steps of its lockdown, each of which it had to take, and the probe attacked.
    """

    sentry: Sentry
    attested_is: str = "the sentry of the warm process, not the run"
    within: tuple[str, ...] = ("uid", "pid namespace", "root", "tmp", "rlimits", "no_new_privs", "seccomp")
    not_within: tuple[str, ...] = ("landlock", "cgroup")


def folder_of(pid_file: Path, runsc: int) -> int:
    """Open the folder in /proc of the sentry whose pid the file contains.

    Raises:
        OSError: it is gone, or does not descend from this runsc.
    """
    try:
        pid = int(pid_file.read_text("ascii"))
    except ValueError as error:
        raise OSError(f"runsc did not say which process the sentry is: {error}") from None
    folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        above = int(status_of(folder)["PPid"])
        for _ in range(_GENERATIONS):
            if above == runsc:
                return folder
            above = int(Path(f"/proc/{above}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[1])
    except BaseException:
        os.close(folder)
        raise
    os.close(folder)
    raise ProcessLookupError(f"process {pid} was not started by runsc")


def own_bytes(folder: int) -> int:
    """Memory of the sentry itself, without that of the programs under it; for files, threads and locks they make.

    Raises:
        OSError: it has gone.
    """
    try:
        return int(status_of(folder)["RssAnon"].split()[0]) << 10
    except KeyError:
        raise ProcessLookupError("the sentry has ended") from None


class SentryView:
    """One run's view of the sentry that it is under alone.

    Args:
        folder: A descriptor of its folder in /proc, open as long as this is asked.

    Raises:
        OSError: it has gone.
    """

    def __init__(self, folder: int) -> None:
        self._folder, self._before = folder, own_bytes(folder)

    def grown(self) -> int:
        """Bytes that the sentry has taken for itself since; 0 if it has gone."""
        try:
            return own_bytes(self._folder) - self._before
        except OSError:
            return 0


def attest(folder: int, executable: str) -> SentryFacts:
    """Read the sentry, and compare.

    Args:
        folder: A descriptor of its folder in /proc.
        executable: The path of the runsc that was started.

    Raises:
        Differs: no run may go in it.
    """
    try:
        return SentryFacts(sentry=_read_sentry(folder, executable))
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise Differs(f"the sentry cannot be looked at: {type(error).__name__}: {error}") from error


def _read_sentry(folder: int, executable: str) -> Sentry:
    status = status_of(folder)
    for name, wanted in (("NoNewPrivs", "1"), ("Seccomp", "2")):
        if status[name].strip() != wanted:
            raise Differs(f"the sentry's {name} is {status[name].strip()}, not {wanted}")
    uids = set(status["Uid"].split())
    if len(uids) != 1 or "0" in uids:
        raise Differs(f"the sentry's uid is {status['Uid'].split()}")
    if int(status["CapEff"], 16) & ~_CAPABILITIES or int(status["CapPrm"], 16) & ~_CAPABILITIES:
        raise Differs(f"the sentry's capabilities are {status['CapEff']}")
    found, wanted_file = os.stat("exe", dir_fd=folder), Path(executable).stat()
    if (found.st_dev, found.st_ino) != (wanted_file.st_dev, wanted_file.st_ino):
        raise Differs(f"the sentry runs {os.readlink('exe', dir_fd=folder)}, not {executable}")
    own = differing_namespaces(folder)
    if not _OWN_NAMESPACES.issubset(own):
        raise Differs(f"the sentry's own namespaces are {', '.join(own) or 'none'}")
    kinds = {line.partition(" - ")[2].split()[0] for line in text_of(folder, "mountinfo").splitlines()}
    if not kinds <= set(_FILE_SYSTEMS):
        raise Differs(f"the sentry sees file systems of the kinds {', '.join(sorted(kinds))}")
    return Sentry(
        pid=int(status["Pid"]),
        executable=executable,
        uid=int(uids.pop()),
        capabilities=status["CapEff"],
        no_new_privs=True,
        seccomp=2,
        namespaces=own,
    )
