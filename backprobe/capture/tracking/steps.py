"""What the row of a training step says of its loss and of its optimizer, read when the program has it in hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from backprobe.capture.torch_access.tensor_memory import elements
from backprobe.capture.torch_access.tensor_statistics import of_elements, of_values
from backprobe.capture.torch_access.torch_internals import EXACT, functorch_is_active

if TYPE_CHECKING:
    from backprobe.capture.options import Options
    from backprobe.capture.output.writer import Writer
    from backprobe.capture.torch_access.device_values import Values
    from backprobe.capture.tracking.tensors.tensor_registry import Tensors


def at_roots(tensors: Tensors, roots: Sequence[Any]) -> dict[str, Any]:
    """The loss that a backward call begins at: its value, if it is one number in the memory of the CPU."""
    root: Any = roots[0] if len(roots) else None
    if type(root) not in EXACT or functorch_is_active():
        return {"loss": None, "loss_tensor": None}
    known = tensors.find(root)
    raw = elements(root, 1) if root.numel() == 1 and root.device.type == "cpu" else None
    found = None if raw is None else of_elements(raw, root.dtype)
    return {
        "loss": None if found is None else found.sum,
        "loss_tensor": None if known is None else known.number,
    }


def bring_loss(writer: Writer, options: Options, roots: Sequence[Any], then: Callable[[float | None], None]) -> None:
    """The loss where it lies on another device: `then` is called with it after the next transfer."""

    def came(values: Values) -> None:
        found = of_values(values, writer.caps)
        then(None if found is None else found.sum)

    root: Any = roots[0] if len(roots) else None
    if not options.measures or type(root) not in EXACT or functorch_is_active():
        return
    if root.device.type != "cpu" and root.numel() == 1:
        writer.values.read(root, None, came)


def at_step(optimizer: Any) -> dict[str, Any]:
    """The learning rate of an optimizer that stepped, and how many of its tensors have no gradient."""
    groups: list[dict[str, Any]] = optimizer.param_groups
    rate: Any = groups[0].get("lr") if groups else None
    held: list[torch.Tensor] = [tensor for group in groups for tensor in group["params"]]
    return {
        "learning_rate": float(rate) if type(rate) in (int, float) or _is_number(rate) else None,
        "parameters_without_grad": sum(1 for tensor in held if tensor.is_leaf and tensor.grad is None),
    }


def _is_number(rate: Any) -> bool:
    return type(rate) is torch.Tensor and rate.numel() == 1 and rate.device.type == "cpu"
