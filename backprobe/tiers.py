"""How much capture looks at, wherever that is asked for, stored or recorded."""

from __future__ import annotations

from typing import Final, Literal

Tier = Literal["state", "grad", "full", "deep"]
"""Flags alone; gradients besides; values besides; and a second run that finds the op of the first NaN."""

EVERY_TIER: Final[tuple[Tier, ...]] = ("state", "grad", "full", "deep")
