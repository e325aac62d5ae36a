"""Which leaves are moved, together or alone, and along which direction.

A leaf p of n elements has the scale s = max(|p|, 0.1): |p| its length. Leaves that are moved together, p_1 to p_k, go
along u_i = v_i s_i / S with S = sqrt(s_1^2 + ... + s_k^2) and v_i of length 1, so that u has length 1 and each is moved
by the same share of itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

MOST_PROBES: Final = 14
"""Leaves or groups that a full check moves at one step: four ghosts each, so that a step is computed 58 times."""

_LEAST_SCALE: Final = 0.1
_MOST_ELEMENTS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class Probe:
    """Leaves that are moved together.

    Attributes:
        optimizer: Id of the one that holds them. leaves: they. along: for each a direction, in float64; together they
            have length 1. scale: S, see above.
    """

    optimizer: int
    leaves: tuple[torch.Tensor, ...]
    along: tuple[torch.Tensor, ...]
    scale: float

    def dot(self) -> float | None:
        """Their `.grad` along the direction; None if none has one."""
        total: float | None = None
        for leaf, direction in zip(self.leaves, self.along, strict=True):
            if leaf.grad is not None:
                gradient = leaf.grad.detach()
                gradient = gradient.to_dense() if gradient.layout is not torch.strided else gradient
                total = (total or 0.0) + float((gradient.double() * direction).sum())
        return total

    def length(self) -> float:
        """Compute the length of their `.grad`, scaled by what each is moved by."""
        squares = 0.0
        for leaf, direction in zip(self.leaves, self.along, strict=True):
            if leaf.grad is not None:
                gradient = leaf.grad.detach()
                gradient = gradient.to_dense() if gradient.layout is not torch.strided else gradient
                squares += float(gradient.double().square().sum()) * float(direction.square().sum())
        return math.sqrt(squares)


def leaves_of(optimizer: Any) -> list[torch.Tensor]:
    """List what an optimizer holds that can be moved: real leaves in the CPU's memory that require a gradient."""
    found: dict[int, torch.Tensor] = {}
    for group in optimizer.param_groups:
        for tensor in group["params"]:
            if is_movable(tensor):
                found[id(tensor)] = tensor
    return list(found.values())


def move(optimizers: Sequence[Any], by: Mapping[int, torch.Tensor]) -> None:
    """Move leaves themselves, each in its precision.

    Args:
        by: Id of a leaf -> how far.
    """
    leaves = {id(leaf): leaf for stepped in optimizers for group in stepped.param_groups for leaf in group["params"]}
    for number, far in by.items():
        leaves[number].data.add_(far.to(leaves[number].dtype))


def is_movable(tensor: Any) -> bool:
    """Return whether the tensor is an ordinary leaf of real numbers on the CPU."""
    return (
        isinstance(tensor, torch.Tensor)
        and tensor.is_leaf
        and tensor.requires_grad
        and tensor.is_floating_point()
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and 0 < tensor.numel() <= _MOST_ELEMENTS
    )


def probes_of(optimizer: Any, most: int, alone: set[int], generator: torch.Generator) -> list[Probe]:
    """At most `most` probes over all leaves of an optimizer.

    Args:
        alone: Ids of leaves that are moved one by one first, as far as that goes.
    """
    leaves = leaves_of(optimizer)
    single = [leaf for leaf in leaves if id(leaf) in alone][: max(most - 1, 0)]
    chosen = {id(leaf) for leaf in single}
    rest = [leaf for leaf in leaves if id(leaf) not in chosen]
    left = max(most - len(single), 1)
    size = max(1, math.ceil(len(rest) / left))
    groups = [[leaf] for leaf in single] + [rest[at : at + size] for at in range(0, len(rest), size)]
    return [_probe(id(optimizer), group, generator) for group in groups]


def _probe(optimizer: int, leaves: Sequence[torch.Tensor], generator: torch.Generator) -> Probe:
    scales = [max(float(leaf.detach().double().norm()), _LEAST_SCALE) for leaf in leaves]
    scales = [leaf_scale if math.isfinite(leaf_scale) else _LEAST_SCALE for leaf_scale in scales]
    whole = math.sqrt(sum(leaf_scale * leaf_scale for leaf_scale in scales))
    along: list[torch.Tensor] = []
    for leaf, scale in zip(leaves, scales, strict=True):
        noise = torch.randn(leaf.shape, generator=generator, dtype=torch.float64, device="cpu")
        along.append(noise * (scale / whole / max(float(noise.norm()), 1e-300)))
    return Probe(optimizer, tuple(leaves), tuple(along), whole)
