"""Histograms by size: how many elements lie between which powers of two. A run takes them where it is asked to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import numpy as np
import torch

from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.tensor_memory import array
from backprobe.record import Histogram

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backprobe.capture.recorder import CaptureSession

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
    """Compute the histogram of a CPU tensor; None if it is complex, empty, or cannot be read in place."""
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


def write_sizes(recorder: CaptureSession, parameters: Iterable[torch.Tensor]) -> None:
    """Write a histogram of each parameter that has a row, and of its gradient, if they lie on a CPU."""
    moment = recorder.moments.now()
    for parameter in parameters:
        known = recorder.tensors.find(parameter)
        if known is None:
            continue
        contents: tuple[tuple[Literal["value", "grad"], torch.Tensor | None], ...]
        contents = (("value", parameter), ("grad", parameter.grad if parameter.is_leaf else None))
        for of, content in contents:
            found = None if content is None else sizes(content)
            if found is not None:
                row = Histogram(
                    tensor=known.number,
                    moment=moment,
                    of=of,
                    low=2.0**LOWEST,
                    high=2.0 ** (LOWEST + 2 * BINS),
                    scale="log2",
                    **found._asdict(),
                )
                recorder.writer.add("histograms", row)
