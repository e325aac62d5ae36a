"""What the row of a training step says of its loss and of its optimizer, read when the program has it in hand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import torch

from backprobe.capture.torch_access.tensor_memory import elements
from backprobe.capture.torch_access.tensor_statistics import of_elements, of_values
from backprobe.capture.torch_access.torch_internals import EXACT, functorch_is_active

if TYPE_CHECKING:
    from backprobe.capture.options import Options
    from backprobe.capture.output.writer import Writer
    from backprobe.capture.torch_access.device_values import Values

_FLOAT: Final = struct.Struct("=f")


def is_plain(root: Any) -> bool:
    """No code of the user's answers for it, and it is no value of a transform."""
    return type(root) in EXACT and not functorch_is_active()


def loss_at(root: torch.Tensor) -> float | None:
    """The loss that a backward call begins at, if it is one number in the memory of the CPU, rounded to float32."""
    raw = elements(root, 1) if root.numel() == 1 and root.is_cpu else None
    if raw is None:
        return None
    if len(raw) == _FLOAT.size and root.dtype is torch.float32:
        return _FLOAT.unpack(raw)[0]
    found = of_elements(raw, root.dtype)
    return None if found is None else found.sum


def bring_loss(writer: Writer, options: Options, root: torch.Tensor, then: Callable[[float | None], None]) -> None:
    """The loss where it lies on another device: `then` is called with it after the next transfer."""

    def came(values: Values) -> None:
        found = of_values(values, writer.caps)
        then(None if found is None else found.sum)

    if options.measures and not root.is_cpu and root.numel() == 1:
        writer.values.read(root, None, came)


def rate_at(optimizer: Any) -> float | None:
    """The learning rate of an optimizer's first group; None: it has none, or it lies on a device."""
    groups: list[dict[str, Any]] = optimizer.param_groups
    rate: Any = groups[0].get("lr") if groups else None
    return float(rate) if type(rate) in (int, float) or _is_number(rate) else None


def _is_number(rate: Any) -> bool:
    return type(rate) is torch.Tensor and rate.numel() == 1 and rate.device.type == "cpu"
