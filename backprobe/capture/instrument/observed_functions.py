"""The functions of torch that are watched, each with what is called as it opens, closes and returns.

1. An expression here reads the function's own parameters and nothing else; an iterable among them is never consumed.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from types import FunctionType
from typing import Any, Final

import torch
from torch.autograd import anomaly_mode, grad_mode
from torch.autograd import graph as autograd_graph
from torch.nn.modules import module as modules
from torch.nn.utils import clip_grad
from torch.optim import lr_scheduler
from torch.optim.optimizer import Optimizer
from torch.utils.hooks import RemovableHandle

_NOTHING: Final = "__bp_nothing__()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """One function and the code that it gets."""

    function: Callable[..., Any]
    enter: str = _NOTHING
    leave: str = _NOTHING
    returned: str | None = None


def list_watched_functions() -> Iterator[Watched]:
    """Yield every watched function with the code that it gets."""
    yield from _modes()
    yield from _hooks()
    yield from _events()
    yield Watched(function=BaseProcess.start, enter="__bp_child__(self)", leave="__bp_child_left__()")
    started = subprocess.Popen.__init__
    if isinstance(started, FunctionType):  # the program may have put something else in its place
        yield Watched(function=started, enter="__bp_command__(args, executable)")
    swallowed = contextlib.suppress.__exit__
    yield Watched(function=swallowed, returned="__bp_suppressed__(excinst)")


def _modes() -> Iterator[Watched]:
    switched: dict[Any, str] = {
        grad_mode.no_grad: "False",
        grad_mode.enable_grad: "True",
        grad_mode.set_grad_enabled: "self.mode",
        grad_mode.inference_mode: "self.mode",
        torch.amp.autocast_mode.autocast: "self.fast_dtype if self._enabled else False",
        anomaly_mode.detect_anomaly: "True",
        anomaly_mode.set_detect_anomaly: "None",
    }
    for cls, after in switched.items():
        yield Watched(function=cls.__enter__, enter=f"__bp_mode__({cls.__name__!r}, self, {after})")
        yield Watched(function=cls.__exit__, leave="__bp_mode_left__(self)")
    for cls in (grad_mode.set_grad_enabled, anomaly_mode.set_detect_anomaly):
        yield Watched(function=cls.__init__, enter=f"__bp_mode__('{cls.__name__}()', self, mode)")
    yield Watched(function=modules.Module.train, enter="__bp_mode__('train', self, mode)")
    deterministic = "__bp_mode__('use_deterministic_algorithms', None, mode)"
    yield Watched(function=torch.use_deterministic_algorithms, enter=deterministic)


_MODULE_HOOKS: Final = {
    "register_forward_pre_hook": "module-forward-pre",
    "register_forward_hook": "module-forward",
    "register_full_backward_pre_hook": "module-backward-pre",
    "register_full_backward_hook": "module-backward",
    "register_backward_hook": "module-backward",
    "register_state_dict_post_hook": "module-state",
    "register_state_dict_pre_hook": "module-state",
    "register_load_state_dict_pre_hook": "module-state",
    "register_load_state_dict_post_hook": "module-state",
}
_GLOBAL_HOOKS: Final = (
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_full_backward_hook",
)
_OPTIMIZER_HOOKS: Final = (
    "register_step_pre_hook",
    "register_step_post_hook",
    "register_state_dict_pre_hook",
    "register_state_dict_post_hook",
    "register_load_state_dict_pre_hook",
    "register_load_state_dict_post_hook",
)


def _hooks() -> Iterator[Watched]:
    tensor = torch.Tensor
    yield Watched(function=tensor.register_hook, returned="__bp_hooked__('tensor', self, hook)")
    accumulate = "__bp_hooked__('post-accumulate', self, hook)"
    yield Watched(function=tensor.register_post_accumulate_grad_hook, returned=accumulate)
    for name, kind in _MODULE_HOOKS.items():
        yield Watched(function=getattr(modules.Module, name), returned=f"__bp_hooked__({kind!r}, self, hook)")
    for name in _GLOBAL_HOOKS:
        yield Watched(function=getattr(modules, name), returned="__bp_hooked__('global-module', None, hook)")
    for name in _OPTIMIZER_HOOKS:
        yield Watched(function=getattr(Optimizer, name), returned="__bp_hooked__('optimizer', self, hook)")
    multi = "__bp_hooked__('graph', None, fn)"
    yield Watched(function=autograd_graph.register_multi_grad_hook, returned=multi)
    saved = autograd_graph.saved_tensors_hooks
    yield Watched(function=saved.__enter__, enter="__bp_hooked__('saved-tensors', self, self.pack_hook)")
    yield Watched(function=saved.__exit__, leave="__bp_unhooked__(self)")
    yield Watched(function=RemovableHandle.remove, leave="__bp_unhooked__(self)")


_SCHEDULERS: Final = (
    "LRScheduler", "SequentialLR", "ChainedScheduler", "ReduceLROnPlateau", "CosineAnnealingWarmRestarts",
)  # fmt: skip
"""The classes that define a `step` of their own."""


def _events() -> Iterator[Watched]:
    for name in _SCHEDULERS:
        given = ("metrics",) if name == "ReduceLROnPlateau" else ()
        yield _event(getattr(lr_scheduler, name).step, "scheduler_step", "self", *given)
    yield _event(clip_grad.clip_grad_norm_, "clip_grad_norm", "parameters", "max_norm", "norm_type", gives=True)
    yield _event(clip_grad.clip_grad_value_, "clip_grad_value", "parameters", "clip_value")
    scaler = torch.amp.grad_scaler.GradScaler
    yield _event(scaler.scale, "scaler_scale", "self")
    yield _event(scaler.unscale_, "scaler_unscale", "self", "optimizer")
    yield _event(scaler.step, "scaler_step", "self", "optimizer")
    yield _event(scaler.update, "scaler_update", "self")
    yield _event(Optimizer.add_param_group, "add_param_group", "self")
    yield _event(Optimizer.load_state_dict, "load_state_dict", "self")


def _event(function: Any, kind: str, subject: str, *given: str, gives: bool = False) -> Watched:
    return Watched(
        function=function,
        enter=f"__bp_event__({', '.join((repr(kind), subject, *given))})",
        leave=f"__bp_event_left__({kind!r}, {subject})",
        returned=f"__bp_event_gave__({kind!r})" if gives else None,
    )
