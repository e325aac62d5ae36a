"""Which process of a distributed job this is, as torch knows it."""

from __future__ import annotations

import torch


def rank_and_size() -> tuple[int | None, int | None]:
    """Rank from 0, and how many processes; None, None: no process group was made."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return None, None
    return distributed.get_rank(), distributed.get_world_size()
