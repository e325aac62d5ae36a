"""The environment of a warm process: built from nothing, but for where packages and a device's libraries lie."""

from __future__ import annotations

import os
from pathlib import Path

import workers


def warm_environment(visible_devices: str | None) -> dict[str, str]:
    """Return the environment that a zygote or a keeper starts with.

    Args:
        visible_devices: CUDA_VISIBLE_DEVICES; None: unset.
    """
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LOGNAME": "nobody",  # whom programs become may have no entry in passwd: a torch that asks for a name has one
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "2",  # glibc reserves 64 MB of address space per arena
    }
    if visible_devices is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible_devices
    if places := _import_path():
        environment["PYTHONPATH"] = os.pathsep.join(places)
    return environment


def drivers() -> dict[str, str]:
    """Where the worker was told to look for a device's libraries."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}


def _import_path() -> list[str]:
    """Where a warm process finds our packages and what they need, if its interpreter does not know by itself."""
    home = Path(str(workers.__file__)).resolve().parents[1]
    checkout = [] if home.name in ("site-packages", "dist-packages") else [str(home)]
    ours = [str(Path(part).absolute()) for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    return list(dict.fromkeys((*checkout, *ours)))
