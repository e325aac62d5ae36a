"""What is asked of a step that is not taken in full: the norm of the gradients, and whether one stopped arriving.

The compiled twin of `gradients_in` and `without_gradient` is `_core_src/tracking/gradients.c`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import torch

from backprobe.capture.torch_access.device_values import DeviceValues
from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.tensor_memory import is_ordinary, is_watched
from backprobe.capture.torch_access.torch_internals import below_autocast, below_autograd, is_capturing, norms_of_each

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession


WHOLE_EVERY: Final = 10
"""Of this many steps one has the norm of long gradients."""

STRIPES: Final = 50
"""In the other steps one of so many stripes of them is read, each time another: reading all of them in each step made
that of an MLP of 0.7 million weights 1.6 % longer, and a tenth of them still 1.0 %."""


class Look(NamedTuple):
    """What the gradients are after a backward call.

    Attributes:
        norm: Of all of them; None: not measured, or none arrived. is_odd: something read is not finite.
    """

    norm: float | None
    is_odd: bool


class GradientCheck:
    """Looks at the parameters of the optimizers that are known, or of the modules if there is none."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._now: bytes | None = None
        self._before: bytes | None = None
        self._told: set[int] = set()

    def forget(self) -> None:
        """Forget what arrived before a step in full: it is compared with nothing."""
        self._now = self._before = None

    def look(self, step: int) -> Look:
        """After a backward call of a step, whose number says which stripes of long gradients are read."""
        lists, values = self._lists(), self._recorder.writer.values
        of = STRIPES if step % WHOLE_EVERY else 1
        norm, present, is_odd, is_whole = gradients_in(lists, step % STRIPES, of, values)
        if is_odd and not is_whole:
            norm, is_whole = gradients_in(lists, 0, 1, values)[0], True
        now = self._now
        self._now = present if now is None or len(now) != len(present) else _either(now, present)
        return Look(norm if is_whole else None, is_odd)

    def norm(self) -> float | None:
        """Return the norm of all gradients; None if it was not measured."""
        return gradients_in(self._lists(), 0, 1, self._recorder.writer.values)[0]

    def find_stopped_parameter(self) -> torch.Tensor | None:
        """Return a parameter that got a gradient in the step before this one and none in this one; each only once."""
        before, now = self._before, self._now
        self._before, self._now = now, None
        if before == now or before is None:
            return None
        now = now or bytes(len(before))
        held = self.parameters()
        if not len(before) == len(now) == len(held):  # others than then
            return None
        missing = [tensor for tensor, had, has in zip(held, before, now, strict=True) if had and not has]
        missing = [tensor for tensor in missing if id(tensor) not in self._told]
        self._told.update(map(id, missing))
        return missing[0] if missing else None

    def parameters(self) -> list[torch.Tensor]:
        """List the optimizers' tensors; without an optimizer those of the modules."""
        return self._recorder.optimizers.list_parameters() or self._recorder.modules.list_parameters()

    def _lists(self) -> list[list[torch.Tensor]]:
        """Return the same tensors in lists, in which a tensor may come twice."""
        return self._recorder.optimizers.lists() or [self._recorder.modules.list_parameters()]


def gradients_in(
    lists: Sequence[Sequence[torch.Tensor]], first: int = 0, of: int = 1, values: DeviceValues | None = None
) -> tuple[float | None, bytes, bool, bool]:
    """Read the gradients of the tensors in some lists.

    Args:
        lists: A tensor that is in several of them counts once.
        first, of: Of long gradients every `of`-th stripe is read, from the one numbered `first`, where the core can.
        values: As in `norm_of`.

    Returns:
        The norm of what was read; None: not measured, or there is none. A byte for each distinct tensor, 1 if it has a
        gradient. Whether anything that was read is not finite. Whether all was read.
    """
    if native is not None:
        norm, present, is_odd, is_whole = native.gradients(lists, first, of)
        if norm is not NotImplemented:
            return norm, bytes(present), is_odd, is_whole
    held = list({id(tensor): tensor for list_ in lists for tensor in list_}.values())
    found = [tensor.grad if tensor.is_leaf or tensor.retains_grad else None for tensor in held]
    norm = norm_of([gradient for gradient in found if gradient is not None], values)
    is_odd = norm is not None and not math.isfinite(norm)
    return norm, bytes(gradient is not None for gradient in found), is_odd, True


def without_gradient(lists: Sequence[Sequence[torch.Tensor]]) -> int:
    """How many leaves in some lists have no gradient."""
    if native is not None:
        return native.without_gradient(lists)
    return sum(tensor.is_leaf and tensor.grad is None for list_ in lists for tensor in list_)


def _either(first: bytes, other: bytes) -> bytes:
    return first if first == other else bytes(a | b for a, b in zip(first, other, strict=True))


def norm_of(gradients: list[torch.Tensor], values: DeviceValues | None = None) -> float | None:
    """Compute the L2 norm of tensors together; None if Backprobe may not run operations, or none has a norm.

    Args:
        values: What waits on other devices comes over in the same transfer. None: the norm comes alone.
    """
    plain = [g for g in gradients if type(g) is torch.Tensor and g.layout is torch.strided and g.is_floating_point()]
    if plain and native is not None:
        norm, _, unread = native.norms(plain)  # reads memory: there is nothing that a mode or profiler could see
        if not unread:
            return norm
    plain = [gradient for gradient in plain if is_ordinary(gradient)]
    if not plain or is_watched() or any(is_capturing(device) for device in {gradient.device for gradient in plain}):
        return None
    try:
        with below_autograd(), below_autocast():
            norms = _norms(plain)
        found = [float(norm) for norm in norms] if values is None else values.bring(norms)
    except RuntimeError:
        return None
    return None if found is None else math.hypot(*found)  # not the root of a sum of squares, which overflows


def _norms(gradients: list[torch.Tensor]) -> list[torch.Tensor]:
    """Compute the norm of each, on its device; in float64, in which no square of a float32 overflows or vanishes."""
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for gradient in gradients:
        groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    return [norm for group in groups.values() for norm in norms_of_each(group, 2, dtype=torch.float64)]
