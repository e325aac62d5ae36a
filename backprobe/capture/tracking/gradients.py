"""What is asked of a step that is not taken in full: the norm of the gradients, and whether one stopped arriving."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from backprobe.capture.torch_access.device_values import DeviceValues, is_capturing
from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.tensor_memory import is_watched, special
from backprobe.capture.torch_access.torch_internals import below_autocast, below_autograd, norms_of_each

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder


class GradientCheck:
    """Looks at the parameters of the optimizers that are known, or of the modules if there is none."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._now: set[int] = set()
        self._before: set[int] = set()
        self._told: set[int] = set()

    def forget(self) -> None:
        """A step in full comes between: what arrived before it is compared with nothing."""
        self._now, self._before = set(), set()

    def norm(self) -> float | None:
        """The norm of all gradients, after a backward call; None where it was not measured."""
        gradients: list[torch.Tensor] = []
        arrived = self._now.add
        for parameter in self.parameters():
            gradient = parameter.grad
            if gradient is not None:
                arrived(id(parameter))
                gradients.append(gradient)
        return norm_of(gradients, self._recorder.writer.values)

    def stopped(self) -> torch.Tensor | None:
        """A parameter that got a gradient in the step before this one and none in this one; each is told once."""
        before, now = self._before, self._now
        self._before, self._now = now, set()
        if before <= now:
            return None
        missing = before - now - self._told
        if not missing:
            return None
        self._told |= missing
        return next((parameter for parameter in self.parameters() if id(parameter) in missing), None)

    def parameters(self) -> list[torch.Tensor]:
        """The optimizers' tensors; without an optimizer those of the modules."""
        return self._recorder.optimizers.held() or self._recorder.modules.held()


def norm_of(gradients: list[torch.Tensor], values: DeviceValues | None = None) -> float | None:
    """The L2 norm of tensors together; None where nothing of ours may run, or none of them has one.

    Args:
        values: What waits on other devices comes over in the same transfer. None: the norm comes alone.
    """
    plain = [g for g in gradients if type(g) is torch.Tensor and g.layout is torch.strided and g.is_floating_point()]
    if plain and native is not None:
        norm, _, unread = native.norms(plain)  # reads memory: there is nothing that a mode or profiler could see
        if not unread:
            return norm
    plain = [gradient for gradient in plain if special(gradient) is None]
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
    """The norm of each, on its device; in float64, in which no square of a float32 overflows or vanishes."""
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for gradient in gradients:
        groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    return [norm for group in groups.values() for norm in norms_of_each(group, 2, dtype=torch.float64)]
