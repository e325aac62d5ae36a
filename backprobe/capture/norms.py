"""The L2 norm of many tensors together, as a sampler watches it at every step: one number, at most one transfer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from backprobe.capture.core import native
from backprobe.capture.private import below_autograd, norms_of_each
from backprobe.capture.reading import is_watched, special


class TotalNorm(NamedTuple):
    """The norm of all elements of the tensors that could be read.

    Attributes:
        norm: NaN if an element is; nonfinite: elements that are NaN or infinite.
        unread: Tensors left out: sparse, fake, ..., and those of other devices while somebody watches operations.
    """

    norm: float
    nonfinite: int
    unread: int


def total_norm(tensors: Sequence[torch.Tensor]) -> TotalNorm:
    """One pass over the tensors; integers do not count."""
    norm, nonfinite, rest = (0.0, 0, list(tensors)) if native is None else native.norms(tensors)
    if not rest:
        return TotalNorm(norm, nonfinite, 0)
    readable = [] if is_watched() else [one for one in rest if special(one) is None and one.is_floating_point()]
    others, odd = _by_operations(readable) if readable else (0.0, 0)
    whole = math.nan if norm != norm or others != others else math.hypot(norm, others)
    return TotalNorm(whole, nonfinite + odd, len(rest) - len(readable))


def _by_operations(tensors: list[torch.Tensor]) -> tuple[float, int]:
    """Norm and elements that are not finite, by torch operations on the tensors' own devices."""
    devices: dict[torch.device, list[torch.Tensor]] = {}
    for tensor in tensors:
        devices.setdefault(tensor.device, []).append(tensor)
    norm, odd = 0.0, 0
    with below_autograd():
        for same in devices.values():
            wide = [one if one.dtype in (torch.float32, torch.float64) else one.float() for one in same]
            found = torch.stack([one.double() for one in norms_of_each(wide)]).tolist()
            for tensor, one in zip(wide, found, strict=True):
                if not math.isfinite(one):
                    odd += int(tensor.numel() - torch.isfinite(tensor).sum())
                norm = math.nan if one != one or norm != norm else math.hypot(norm, one)
    return norm, odd
