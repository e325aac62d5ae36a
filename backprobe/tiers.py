"""How much capture looks at, wherever that is asked for, stored or recorded."""

from __future__ import annotations

from typing import Final, Literal

Tier = Literal["state", "grad", "full", "deep"]
"""Flags alone; gradients besides; values besides; and a second run that finds the op of the first NaN."""

EVERY_TIER: Final[tuple[Tier, ...]] = ("state", "grad", "full", "deep")

GradientCheckMode = Literal["off", "brief", "full"]
"""How much the gradients of a run are checked.

brief: all parameters of an optimizer are moved together, and those of a group that differs one by one at the next
checked step; the copies of the process take at most 2 seconds or a tenth of the run, whichever is more. full: up to 14
probes a step.
"""
