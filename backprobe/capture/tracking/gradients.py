"""What is asked of a step that is not taken in full: the norm of the gradients, and whether one stopped arriving."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import torch

from backprobe.capture.torch_access.native import native
from backprobe.capture.torch_access.torch_internals import dispatch_modes, norms_of_each, profiler_is_on, tracing_state

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder

_VANISHING: Final = 1e-15
"""Below it, float32 may have lost squares: they get smaller than its least number at 1e-22."""


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
        return norm_of(gradients)

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


def norm_of(gradients: list[torch.Tensor]) -> float | None:
    """The L2 norm of tensors together; None where nothing of ours may run, or none of them has one."""
    plain = [g for g in gradients if type(g) is torch.Tensor and g.layout is torch.strided and g.is_floating_point()]
    if plain and native is not None:
        norm, _, unread = native.norms(plain)  # reads memory: there is nothing that a mode or profiler could see
        if not unread:
            return norm
    if not plain or dispatch_modes() or profiler_is_on() or tracing_state() is not None or _is_capturing():
        return None
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(False)
    try:
        norm = _norm(plain)
        # a single norm overflows float32 at 1e19 already, and vanishes at 1e-22: only a second look tells
        told = math.isfinite(norm) and norm > _VANISHING
        return norm if told else _norm([gradient.double() for gradient in plain])
    except RuntimeError:
        return None
    finally:
        torch._C._set_grad_enabled(before)


def _norm(gradients: list[torch.Tensor]) -> float:
    groups: dict[tuple[torch.device, torch.dtype], list[torch.Tensor]] = {}
    for gradient in gradients:
        groups.setdefault((gradient.device, gradient.dtype), []).append(gradient)
    norms: list[float] = []
    for (_, dtype), group in groups.items():
        wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else None
        norms += torch.stack(norms_of_each(group, 2, dtype=wide)).tolist()
    return math.hypot(*norms)  # not the root of a sum of squares, which overflows where no norm does


def _is_capturing() -> bool:
    """A CUDA graph is being recorded: reading a number back would break it."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()
