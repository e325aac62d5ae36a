"""What labels make a run a rank of a distributed job, as recorders set them: group, rank, world_size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TOGETHER_SECONDS: Final = 900.0
"""In which the ranks of a job begin: a launcher starts them at once, and nodes of a cluster come within minutes."""


def place_of(labels: Mapping[str, str]) -> tuple[str, int, int] | None:
    """Group, rank and world size; None: they are not all told, or make no job."""
    group, rank, world_size = (labels.get(name, "") for name in ("group", "rank", "world_size"))
    if not group or not all(text.isascii() and text.isdigit() and len(text) < 7 for text in (rank, world_size)):
        return None
    return (group, int(rank), int(world_size)) if int(rank) < int(world_size) else None
