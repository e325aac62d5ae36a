"""Where a job's record goes, and whether: arguments first, then the environment of a cluster.

BACKPROBE_URL       the service; set, it switches sending on without a change of the job
BACKPROBE_API_KEY   its key
BACKPROBE_PROJECT   the project
BACKPROBE_JOB       a name that the ranks and restarts of one job have in common; the scheduler's id by default
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

import platformdirs

from backprobe.recorder.connection import checked_url
from backprobe.run_id import new_run_id

_RANK: Final = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_WORLD: Final = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
_JOB: Final = ("BACKPROBE_JOB", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID")
_RESTARTS: Final = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which process of a job this is.

    Attributes:
        rank: From 0. world_size: Processes in all. group: what they have in common; None: not known.
        restart: How often the job was begun again; None: not told.
    """

    rank: int = 0
    world_size: int = 1
    group: str | None = None
    restart: int | None = None

    @property
    def labels(self) -> dict[str, str]:
        """As labels of a run; none for a job of one process that has no name."""
        found: dict[str, str] = {}
        if self.group is not None:
            found["group"] = self.group[:_LONGEST]
        if self.world_size > 1:
            found |= {"rank": str(self.rank), "world_size": str(self.world_size)}
        if self.restart:
            found["restart"] = str(self.restart)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A service, and the run that is made there.

    Attributes:
        key: None: none is sent. project: None: as the service says. labels: of the run. capture: tier, and every.
    """

    url: str
    key: str | None = None
    run: str = field(default_factory=new_run_id)
    project: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    capture: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def body(self, torch: str | None, python: str | None, script: str | None = None) -> dict[str, Any]:
        """Return the body of `PUT /v1/runs/{run}`. script: what the job is called on the service."""
        known = (("torch", torch), ("python", python), ("script", script))
        environment = {name: text[:_LONGEST] for name, text in known if text}
        told: dict[str, Any] = {"labels": dict(self.labels), "capture": dict(self.capture), "environment": environment}
        return told if self.project is None else told | {"project": self.project}


def spool_home(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the spool is: below BACKPROBE_HOME, else below the user's folder for such things."""
    named = environ.get("BACKPROBE_HOME")
    return (Path(named) if named else Path(platformdirs.user_data_dir("backprobe"))) / "spool"


def key_of(environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the key to the service; None if there is none."""
    return environ.get("BACKPROBE_API_KEY") or None


def url_of(url: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the address that was given, else the environment's; "" if there is none, and nothing is sent."""
    return environ.get("BACKPROBE_URL", "") if url is None else url


def place_of(
    environ: Mapping[str, str] = os.environ, *, rank: int | None = None, world_size: int | None = None
) -> Place:
    """Which process of a job this is, as torchrun, Slurm or MPI tell it.

    Args:
        environ: The environment.
        rank, world_size: As `torch.distributed` knows them; None: it was not initialised.
    """
    found = _number(environ, _RANK) if rank is None else rank
    size = _number(environ, _WORLD) if world_size is None else world_size
    job = next((environ[name] for name in _JOB if environ.get(name) not in (None, "", "none")), None)
    if job is None and (size or 1) > 1 and environ.get("MASTER_ADDR"):
        job = f"{environ['MASTER_ADDR']}:{environ.get('MASTER_PORT', '')}"
    return Place(rank=found or 0, world_size=max(size or 1, 1), group=job, restart=_number(environ, _RESTARTS))


def script_name(argv: Sequence[str], environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the file name of a job's script or notebook, or the package that `python -m` ran.

    Args:
        argv: As the program saw it.
        environ: The environment, in which Jupyter names the notebook. Visual Studio Code has a variable of it instead.

    Returns:
        `notebook` where nothing names it; None for a terminal and for `python -c`.
    """
    path = PurePath(argv[0] if argv else "")
    if path.name.endswith("kernel_launcher.py"):
        told = getattr(sys.modules.get("__main__"), "__vsc_ipynb_file__", None) or environ.get("JPY_SESSION_NAME")
        return PurePath(str(told)).name if told else "notebook"
    if path.name in {"", "-c", "-"}:
        return None
    return path.parent.name if path.name == "__main__.py" and path.parent.name else path.name


def target_of(
    *,
    url: str | None,
    project: str | None,
    labels: Mapping[str, str],
    capture: Mapping[str, Any],
    environ: Mapping[str, str] = os.environ,
) -> Target | None:
    """Where the record goes; None: it stays here.

    Args:
        url: Of the service; None: as the environment says; "": nowhere.
        project: None: as the environment says.
        labels: Of the run, beside those that say which process of a job it is.
        capture: tier, and every.
        environ: The environment.

    Raises:
        ValueError: the address is none.
    """
    given = url_of(url, environ)
    if not given:
        return None
    return Target(
        url=checked_url(given),
        key=key_of(environ),
        project=project or environ.get("BACKPROBE_PROJECT") or None,
        labels=labels,
        capture=capture,
    )


def _number(environ: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        text = environ.get(name, "")
        if text.isascii() and text.isdigit() and len(text) < 9:
            return int(text)
    return None
