"""What a device is asked for the numbers of a tensor, in as few operations as give what a CPU's reduction gives.

    at most COPIED elements   one copy, which comes over whole and is reduced here
    at most ROOM              one copy, and once so many elements wait, one set of reductions over the rows of all
    more                      eight kernels

1. Nothing here waits for the device. What is made beside a tensor is bounded: twenty bytes for each of ROOM elements,
   or four for each of PIECE. Nothing is cast as a whole: torch's reductions to a wider dtype do that on CUDA.
2. Squares are summed in float64, so that none overflows; so is the plain sum of at most ROOM elements.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from backprobe.capture.torch_access.torch_internals import flattened, norms_of_each

COPIED: Final = 4096
"""Elements of a tensor that comes over as it is."""

ROOM: Final = 1 << 17
"""Elements of the tensors that are reduced together: half a MiB of float32."""

ROW: Final = 1024
"""Elements of which one set of numbers is made; what is left of a tensor behind its last row comes over as it is."""

PIECE: Final = 1 << 22
"""Elements of a larger tensor of which is counted at once what is not finite."""

_EXACT: Final = 1 << 24
"""Up to it a float32 counts without a gap."""

_COUNTED: Final = torch.float16
"""Of what is only counted: two bytes for an element."""

Numbers = tuple[float, float, float, float, float, float, float]
"""Norm, sum, least, greatest, elements that are not 0, NaN, not finite."""

Found = dict[int, Any]
"""What came over, by the id of each part: floats of numbers, bytes of elements."""


@dataclass(slots=True, eq=False)
class Whole:
    """The reductions of one large tensor."""

    parts: list[torch.Tensor]

    def numbers(self, found: Found) -> Numbers:
        """Combine the parts into the tensor's numbers."""
        norm, total, low, high, *counts = (found[id(part)] for part in self.parts)
        some, others = counts[: len(counts) // 2], counts[len(counts) // 2 :]
        nans, odd = sum(pair[1] for pair in others), sum(pair[0] for pair in others)
        return norm[0], total[0], low[0], high[0], sum(count[0] for count in some), nans, odd


@dataclass(slots=True, eq=False)
class Batch:
    """Tensors of one dtype that are reduced together, row by row.

    Attributes:
        key: Device, dtype and stream. held: the copies, until they are reduced; elements: how many they have.
        rows: Of each tensor the first row that is its own, and the first that is not; then its tail's place.
        parts: Numbers for all rows: norm, sum, least, greatest, what is not 0; and then those of what is not finite
            before those of NaN.
        tails: What is left behind the rows, one after the other; None: nothing is.
        failed: The device had no room for it: nothing of it comes over.
    """

    key: tuple[torch.device, torch.dtype, int]
    held: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    elements: int = 0
    rows: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    parts: list[torch.Tensor] = field(default_factory=list[torch.Tensor])
    tails: torch.Tensor | None = None
    failed: bool = False
    row_count: int = 0
    tail_count: int = 0

    def take(self, tensor: torch.Tensor) -> int:
        """Copy a tensor; its place among the others."""
        self.held.append(tensor.clone(memory_format=torch.contiguous_format))
        count = tensor.numel()
        rows, tail = divmod(count, ROW)
        self.rows.append((self.row_count, self.row_count + rows, self.tail_count, self.tail_count + tail))
        self.row_count += rows
        self.tail_count += tail
        self.elements += count
        return len(self.rows) - 1

    def reduce(self) -> list[torch.Tensor]:
        """Queue the reductions; what was held is handed back, to be let go when nothing uses it any more."""
        held, self.held = self.held, []
        if not held:
            return held
        self.failed = True
        flat = [copy.view(-1) for copy in held]
        tails = [values[values.numel() - values.numel() % ROW :] for values in flat if values.numel() % ROW]
        full = [values[: values.numel() - values.numel() % ROW] if values.numel() % ROW else values for values in flat]
        norm, wide = torch.linalg.vector_norm, flattened(full).view(-1, ROW).to(torch.float64)
        low, high = torch.aminmax(wide, dim=1)
        self.parts = [
            norm(wide, 2, dim=1),
            wide.sum(1),
            low,
            high,
            norm(wide, 0, dim=1),
            _count_nonfinite(wide, 2, torch.float32),
        ]
        self.tails = flattened(tails) if tails else None
        self.failed = False
        return held

    def numbers(self, place: int, found: Found) -> tuple[Numbers, bytes]:
        """Combine a tensor's rows into its numbers, and return the bytes of its tail."""
        first, last, start, end = self.rows[place]
        norms, totals, lows, highs, counts, others = (found[id(part)] for part in self.parts)
        odd, nans = (sum(others[at + first : at + last]) for at in (0, self.row_count))
        norm = math.nan if nans else math.hypot(*norms[first:last])
        size = self.key[1].itemsize
        tail = b"" if self.tails is None else found[id(self.tails)][start * size : end * size]
        numbers = (
            norm,
            sum(totals[first:last]),
            min(lows[first:last]),
            max(highs[first:last]),
            sum(counts[first:last]),
            nans,
            odd,
        )
        return numbers, tail


def reductions(tensor: torch.Tensor) -> Whole:
    """Queue the reductions of a large tensor."""
    wide = torch.float64 if tensor.dtype is torch.float64 else torch.float32
    norm = torch.linalg.vector_norm
    low, high = torch.aminmax(tensor)
    some: list[torch.Tensor] = []
    others: list[torch.Tensor] = []
    for piece in _pieces(tensor):
        exact = wide if piece.numel() <= _EXACT else torch.float64
        some.append(norm(piece, 0, dtype=exact))
        others.append(_count_nonfinite(piece, 1, exact))
    (total,) = norms_of_each([tensor], 2, dtype=torch.float64)
    return Whole([total, tensor.sum(dtype=wide), low, high, *some, *others])


def _count_nonfinite(tensor: torch.Tensor, dim: int, dtype: torch.dtype) -> torch.Tensor:
    """How many elements are not finite, and how many are NaN: of all, or of each row."""
    both = torch.empty((2, *tensor.shape), dtype=_COUNTED, device=tensor.device)
    odd, nan = both.unbind(0)
    torch.sub(tensor, tensor, out=odd)  # 0 of what is finite, NaN of all else
    torch.ne(tensor, tensor, out=nan)
    return torch.linalg.vector_norm(both, 0, dim=list(range(dim, both.dim())), dtype=dtype)


def _pieces(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Split a tensor into pieces for which there is room; return it whole if its memory has gaps."""
    if tensor.numel() <= PIECE:
        return (tensor,)
    dense = tensor if tensor.is_contiguous() else _dense(tensor)
    return (tensor,) if dense is None else dense.view(-1).split(PIECE)


def _dense(tensor: torch.Tensor) -> torch.Tensor | None:
    """Return the same elements in the order of their memory; None if it has gaps or is shared among elements."""
    order = sorted(range(tensor.dim()), key=tensor.stride, reverse=True)
    turned = tensor.permute(order)
    return turned if turned.is_contiguous() else None
