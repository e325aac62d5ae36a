"""What a step of an optimizer did to its tensors: whose version rose, and whose values are the same as before.

1. Only the first elements are compared: a step changes each element that has a gradient.
2. A tensor counts as unchanged only if some of these elements have a gradient that is not zero after the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from backprobe.capture.torch_access.tensor_memory import first_elements

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from backprobe.capture.tracking.tensors.tensor_registry import TrackedTensor

ELEMENTS: Final = 64
"""Of each tensor, that are compared."""

MOST: Final = 2000
"""Tensors of one step that are compared."""

Found = tuple["TrackedTensor", "torch.Tensor"]


class StepValues:
    """The tensors of an optimizer as they were before a step."""

    def __init__(self, found: Sequence[Found] = ()) -> None:
        self._versions = {known.number: known.version or 0 for known, _ in found}
        self._values = {known.number: first_elements(tensor, ELEMENTS) for known, tensor in found[:MOST]}

    def count_changed(self, found: Sequence[Found]) -> int:
        """How many have a version that rose."""
        return sum(1 for known, tensor in found if tensor._version != self._versions.get(known.number))

    def list_unchanged_tensors(self, found: Sequence[Found]) -> tuple[int, ...] | None:
        """Those with a gradient whose values are as before; None: no values were compared."""
        compared = [(known, tensor) for known, tensor in found if self._values.get(known.number) is not None]
        if not compared:
            return None
        return tuple(
            known.number
            for known, tensor in compared
            if first_elements(tensor, ELEMENTS) == self._values[known.number] and _has_gradient(tensor)
        )


def _has_gradient(tensor: torch.Tensor) -> bool:
    """One of the first elements has a gradient that is finite and not zero."""
    gradient = tensor.grad if tensor.is_leaf else None
    if gradient is None or not gradient.dtype.is_floating_point or gradient.dtype.itemsize not in (2, 4, 8):
        return False
    raw = first_elements(gradient, ELEMENTS)
    if raw is None or gradient.dtype != tensor.dtype:
        return False
    if gradient.dtype.itemsize == 2:  # numpy has no bfloat16: all bits but the sign, and those of infinity and NaN
        return any(0 < bits & 0x7FFF < 0x7C00 for bits in np.frombuffer(raw, "<u2").tolist())
    values = np.frombuffer(raw, f"<f{gradient.dtype.itemsize}")
    return bool(np.any((values != 0) & np.isfinite(values)))
