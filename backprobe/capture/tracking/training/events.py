"""What belongs to an optimizer's step and is none: clipping, schedules, gradient scalers, parameter groups.

1. Only numbers are taken: an iterable of parameters is never looked at, since looking may consume it.
2. A number on a device is not read: that would wait for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch

from backprobe.capture.output.text import class_name
from backprobe.capture.torch_access.tensor_memory import array
from backprobe.capture.torch_access.torch_internals import EXACT
from backprobe.record import OptimizerEvent

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_INSIDE: Final = ("torch/optim/lr_scheduler.py", "torch/amp/grad_scaler.py", "torch/optim/optimizer.py")
"""Files whose own calls of these functions are parts of an event that is recorded already: a scheduler's first step."""

_MOST: Final = 100_000

FOLLOWING: Final = "torch.optim.lr_scheduler.ReduceLROnPlateau.step"
"""The step of a schedule that follows a number: written down with the number."""


@dataclass(slots=True)
class _Open:
    """An event in progress; `silent` if it is a part of another one.

    Attributes:
        before: The exception that was being handled when it began. steps: that the optimizer had done by then.
    """

    kind: str
    thread: int
    given: tuple[Any, ...]
    silent: bool
    before: BaseException | None
    site: int | None = None
    scale: float | None = None
    steps: int | None = None
    total_norm: float | None = None


class TrainingEvents:
    """Writes down what happens around the steps of optimizers.

    Attributes:
        open: Events in progress.
        on_metric: Told of a schedule's step with a number: its statement, its name, the number and the optimizer.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self.open: list[_Open] = []
        self.on_metric: Callable[[int | None, str, dict[str, Any]], None] = lambda *_: None

    def begins(self, kind: str, subject: Any, given: tuple[Any, ...], caller: FrameType | None) -> None:
        """Note that a function begins; `subject` is the scheduler, scaler or optimizer, None for clipping."""
        recorder = self._recorder
        silent = self._is_part(caller)
        opened = _Open(kind, recorder.timeline().thread, given, silent, sys.exc_info()[1])
        self.open.append(opened)
        if silent:
            return
        opened.site = recorder.calling_site()
        if kind.startswith("scaler"):
            opened.scale = _scale_of(subject)
        if kind == "scaler_step":
            opened.steps = recorder.optimizers.steps_of(given[0])

    def _is_part(self, frame: FrameType | None) -> bool:
        """Between the function and the program stands another one whose event this is a part of."""
        is_user_file = self._recorder.sites.is_user_file
        while frame is not None and not is_user_file(frame.f_code.co_filename):
            if frame.f_code.co_filename.endswith(_INSIDE):
                return True
            frame = frame.f_back
        return False

    def gave(self, kind: str, given: Any) -> None:
        """Note what a function returns."""
        opened = self._innermost(kind)
        if opened is not None and isinstance(given, torch.Tensor):
            opened.total_norm = _number_in(given)

    def end_event(self, kind: Any, subject: Any) -> None:
        """Note that a function is left; `subject` is as in `begins`, for clipping the tensors if they are in a list."""
        recorder, opened = self._recorder, self._innermost(kind)
        if opened is None:
            return
        self.open.remove(opened)
        error = sys.exc_info()[1]
        if opened.silent or (error is not None and error is not opened.before):
            return  # what it raised is recorded as an exception
        recorder.moments.statement(opened.site)
        facts = _CLIPS[kind](opened) if kind in _CLIPS else self._read_event(kind, subject, opened)
        if kind in _CLIPS and type(subject) in (list, tuple):
            facts.update(self._counts(subject))
        facts.setdefault("optimizer", None)
        recorder.optimizers.tell(
            OptimizerEvent(n=0, kind=kind, moment=recorder.moments.now(), site=opened.site, **facts)
        )

    def _read_event(self, kind: str, subject: Any, opened: _Open) -> dict[str, Any]:
        """Read what is known of a scheduler's, scaler's or optimizer's event."""
        recorder = self._recorder
        if kind in ("add_param_group", "load_state_dict"):
            recorder.optimizers.refresh_all()
            return {"optimizer": recorder.optimizers.number_of(subject), "learning_rates": rates_of(subject)}
        facts: dict[str, Any] = {"cls": class_name(subject)}
        if kind == "scheduler_step":
            optimizer = subject.__dict__.get("optimizer")
            facts["optimizer"] = recorder.optimizers.number_of(optimizer)
            facts["learning_rates"] = rates_of(optimizer)
            if opened.given and (metric := _plain(opened.given[0])) is not None and math.isfinite(metric):
                given = {"metrics": metric, "optimizer": facts["optimizer"]}
                self.on_metric(opened.site, FOLLOWING, given)
            return facts
        facts.update(scale_before=opened.scale, scale_after=_scale_of(subject))
        optimizer = opened.given[0] if opened.given else None
        if optimizer is not None:
            facts["optimizer"] = recorder.optimizers.number_of(optimizer)
            facts["found_inf"] = _found_inf(subject, optimizer)
        if kind == "scaler_step" and opened.steps is not None:
            facts["skipped"] = recorder.optimizers.steps_of(optimizer) == opened.steps
        if kind == "scaler_update" and None not in (facts["scale_before"], facts["scale_after"]):
            facts["found_inf"] = facts["scale_after"] < facts["scale_before"] or None
        return facts

    def _counts(self, tensors: Any) -> dict[str, Any]:
        """How many of the clipped tensors have a gradient, and whose they are if one optimizer holds them all."""
        recorder, having, numbers = self._recorder, 0, set[int]()
        for tensor in tensors:
            known = recorder.tensors.find(tensor) if isinstance(tensor, torch.Tensor) else None
            if known is not None:
                numbers.add(known.number)
                having += tensor.is_leaf and tensor.grad is not None
        owner = recorder.optimizers.holding(numbers)
        return {"with_grad": having, "without_grad": max(0, len(numbers) - having), "optimizer": owner}

    def _innermost(self, kind: str) -> _Open | None:
        """Return the innermost open event of a kind in this thread."""
        thread = self._recorder.timeline().thread
        return next((opened for opened in reversed(self.open) if opened.kind == kind and opened.thread == thread), None)


_CLIPS: Final = {
    "clip_grad_norm": lambda opened: {
        "limit": _plain(opened.given[0]), "norm_type": _plain(opened.given[1]), "total_norm": opened.total_norm
    },
    "clip_grad_value": lambda opened: {"limit": _plain(opened.given[0])},
}  # fmt: skip


def _plain(value: Any) -> float | None:
    """Return a number that was given; None for what is no number, or is a tensor on a device."""
    if type(value) in (int, float):
        return float(value)
    if type(value) is str and value == "inf":
        return math.inf
    return _number_in(value) if isinstance(value, torch.Tensor) else None


def _number_in(tensor: torch.Tensor) -> float | None:
    """Read the number in a tensor of one element if that costs nothing: in the CPU's memory."""
    if type(tensor) not in EXACT or tensor.device.type != "cpu" or tensor.numel() != 1:
        return None
    view = array(tensor)
    return None if view is None or tensor.dtype is torch.bfloat16 else float(view.reshape(())[()])


def _scale_of(scaler: Any) -> float | None:
    """Return a gradient scaler's factor; before its first use the initial one; None if it is switched off."""
    held = scaler.__dict__
    if not held.get("_enabled"):
        return None
    scale = held.get("_scale")
    return _plain(held.get("_init_scale")) if scale is None else _number_in(scale)


def _found_inf(scaler: Any, optimizer: Any) -> bool | None:
    """Return whether a gradient was not finite when it was unscaled; None if only waiting for a device could tell."""
    states = scaler.__dict__.get("_per_optimizer_states")
    state = None if states is None else dict.get(states, id(optimizer))
    found = [] if state is None else [_number_in(flag) for flag in state["found_inf_per_device"].values()]
    return None if not found or None in found else any(found)


def rates_of(optimizer: Any) -> tuple[float, ...]:
    """List the learning rates of an optimizer's groups; empty if one of them is not a plain number."""
    groups = [] if optimizer is None else optimizer.param_groups
    rates = [_plain(group.get("lr")) for group in groups][:4096]
    return tuple(rate for rate in rates if rate is not None) if None not in rates else ()
