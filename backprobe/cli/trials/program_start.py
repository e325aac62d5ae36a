"""How a program was started, for trials that start it again; imports nothing, since every `run` remembers it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backprobe.tiers import GradientCheckMode, Tier


def announce_run() -> None:
    """Set a variable that a script can read: it is run to be looked at, and may do with fewer steps."""
    os.environ["BACKPROBE_RUN"] = "1"


def environment_now() -> dict[str, str]:
    """Copy this process's environment: a program may change it."""
    return dict(os.environ)


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """How a program was started.

    Attributes:
        program: Path of the script, or name of the module.
        files: The folder that paths in its record are relative to.
        folder, environment: It was started in; a program may change its own.
        seconds: That its run took.
        seed: None: it had none; trials have 0.
    """

    program: str
    is_module: bool = False
    arguments: tuple[str, ...] = ()
    files: Path
    folder: Path
    environment: Mapping[str, str]
    tier: Tier = "full"
    every: int | None = None
    histograms: bool = False
    check: GradientCheckMode = "off"
    seed: int | None = None
    seconds: float = 0.0
