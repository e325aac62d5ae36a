"""Histograms by size: how many elements lie between which powers of two. On request; no run takes them by itself."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import torch

from backprobe.capture.core import native
from backprobe.capture.reading import array

LOWEST: Final = -40
"""Exponent at which the first bin begins."""
BINS: Final = 32
"""Bins of two octaves each: the last one ends at 2^24."""


class Sizes(NamedTuple):
    """Elements by their absolute value.

    Attributes:
        counts: `counts[k]` of them in [2^(LOWEST + 2k), 2^(LOWEST + 2k + 2)).
        below, above: Those smaller, but not zero, or larger than any bin. nonfinite: NaN and infinities.
    """

    counts: tuple[int, ...]
    zeros: int
    below: int
    above: int
    nonfinite: int


def sizes(tensor: torch.Tensor) -> Sizes | None:
    """The histogram of a CPU tensor; None for a complex or empty one, and where it cannot be read in place."""
    if native is not None:
        found = native.histogram(tensor)
        return None if found is None else Sizes(*found)
    view = array(tensor)
    if view is None or view.size == 0 or view.dtype.kind == "c":
        return None
    if tensor.dtype is torch.bfloat16:
        view = (view.astype(np.uint32) << 16).view(np.float32)
    wide = np.abs(view.astype(np.float64)).reshape(-1)
    finite = wide[np.isfinite(wide)]
    some = finite[finite > 0]
    bins = (np.frexp(some)[1] - 1 - LOWEST) >> 1  # frexp's fraction is below 1: 1.0 is 0.5 x 2^1
    counts = np.bincount(bins[(bins >= 0) & (bins < BINS)], minlength=BINS)
    return Sizes(
        counts=tuple(int(count) for count in counts),
        zeros=int(finite.size - some.size),
        below=int((bins < 0).sum()),
        above=int((bins >= BINS).sum()),
        nonfinite=int(wide.size - finite.size),
    )
