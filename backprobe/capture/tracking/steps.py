"""What the row of a training step says of its loss and of its optimizer, read when the program has it in hand."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import torch

from backprobe.capture.torch_access.tensor_memory import elements
from backprobe.capture.torch_access.tensor_statistics import of_elements, of_values
from backprobe.capture.torch_access.torch_internals import EXACT, functorch_is_active
from backprobe.record import Step

if TYPE_CHECKING:
    from backprobe.capture.options import Options
    from backprobe.capture.output.writer import Writer
    from backprobe.capture.torch_access.device_transfer import Values
    from backprobe.record.rows.series import Anomaly

_FLOAT: Final = struct.Struct("=f")


Why = Literal["first", "1-2-5", "every", "after-anomaly", "loop-left"]


@dataclass(slots=True)
class OpenStep:
    """The step in progress.

    Attributes:
        first_moment: The last moment before it.
        why: Why it is taken in full; None: it is not.
        walks, calls: Backward calls walked in it, and module calls kept.
        loss, loss_tensor, learning_rate, without_grad: As its row has them.
    """

    number: int
    why: Why | None
    first_moment: int
    backward_calls: int = 0
    walks: int = 0
    calls: int = 0
    anomaly: Anomaly | None = None
    norm: float | None = None
    tensor: int | None = None
    started_ns: int = 0
    loss: float | None = None
    loss_tensor: int | None = None
    learning_rate: float | None = None
    without_grad: int | None = None

    def row(self, now: int, last_moment: int) -> Step:
        """Its row, at a time and a moment that end it."""
        first = None if self.first_moment >= last_moment else self.first_moment + 1
        return Step(
            step=self.number, sampled=self.why is not None, why=self.why or "not-sampled", first_moment=first,
            last_moment=None if first is None else last_moment, grad_norm=self.norm, anomaly=self.anomaly,
            backward_calls=self.backward_calls, started_ns=self.started_ns, duration_ns=now - self.started_ns,
            tensor=self.tensor, loss=self.loss, loss_tensor=self.loss_tensor, learning_rate=self.learning_rate,
            parameters_without_grad=self.without_grad,
        )  # fmt: skip


def is_plain(root: Any) -> bool:
    """No code of the user's answers for it, and it is no value of a transform."""
    return type(root) in EXACT and not functorch_is_active()


def loss_at(root: torch.Tensor) -> float | None:
    """Return the loss that a backward call begins at, if it is one number in the CPU's memory, rounded to float32."""
    raw = elements(root, 1) if root.numel() == 1 and root.is_cpu else None
    if raw is None:
        return None
    if len(raw) == _FLOAT.size and root.dtype is torch.float32:
        return _FLOAT.unpack(raw)[0]
    found = of_elements(raw, root.dtype)
    return None if found is None else found.sum


def bring_loss(writer: Writer, options: Options, root: torch.Tensor, then: Callable[[float | None], None]) -> None:
    """Bring the loss from another device: `then` is called with it after the next transfer."""

    def came(values: Values) -> None:
        found = of_values(values, writer.caps)
        then(None if found is None else found.sum)

    if options.measures and not root.is_cpu and root.numel() == 1:
        writer.values.read(root, None, came)


def rate_at(optimizer: Any) -> float | None:
    """Return the learning rate of an optimizer's first group; None if it has none, or it lies on a device."""
    groups: list[dict[str, Any]] = optimizer.param_groups
    rate: Any = groups[0].get("lr") if groups else None
    return float(rate) if type(rate) in (int, float) or _is_number(rate) else None


def _is_number(rate: Any) -> bool:
    return type(rate) is torch.Tensor and rate.numel() == 1 and rate.device.type == "cpu"
