"""The first use of a leaf in a step: a module's call, or, of leaves that no module has, a function of torch.

A mode that sees every function is on only while such a leaf may be used next: under one torch takes no fast path for
encoders that are evaluated, whose last digits are others.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from backprobe.capture.torch_access.torch_internals import function_modes, without_torch_function

if TYPE_CHECKING:
    from backprobe.capture.gradient_check.check import GradientChecks


_PARAMETER: Any = torch.nn.Parameter


class LeafUses:
    """Watches for the first use."""

    def __init__(self, checks: GradientChecks, is_user_file: Callable[[str], bool], unseen: set[int]) -> None:
        self._checks, self._is_user_file, self._unseen = checks, is_user_file, unseen
        self._held: set[int] = set()
        self._modules: dict[int, bool] = {}
        self._mode: _Uses | None = None
        self._unrecorded: set[int] = set()
        self._seen: set[int] = set()
        self._first: set[int] = set()
        self._read: dict[int, tuple[torch.Tensor, float]] = {}
        self._reads = False

    def watch(self, optimizers: list[Any]) -> None:
        """Watch for what these optimizers hold."""
        self._held = {id(leaf) for stepped in optimizers for group in stepped.param_groups for leaf in group["params"]}
        self._modules.clear()
        bare = self._held - _in_modules()
        if not self._reads:
            self._look()
        if bare and self._mode is None and function_modes() == 0:
            self._mode = _Uses(self._checks, frozenset(bare))
            self._mode.__enter__()

    def _look(self) -> None:
        """See `.data` and `detach()` of parameters, which no mode may see (above)."""
        plain_detach, plain_data, parameter = torch.Tensor.detach, vars(torch._C.TensorBase)["data"], _PARAMETER

        def detach(leaf: Any) -> Any:
            self.note_read(leaf, sys._getframe(1))
            return plain_detach(leaf)

        def bare_value(leaf: Any) -> Any:
            self.note_read(leaf, sys._getframe(1))
            return plain_data.__get__(leaf)

        parameter.detach = detach
        parameter.data = property(bare_value, plain_data.__set__, plain_data.__delete__)
        self._reads = True

    def look_away(self) -> None:
        """See them no more."""
        if self._reads:
            del _PARAMETER.detach, _PARAMETER.data
            self._reads = False

    def note_read(self, leaf: Any, frame: FrameType) -> None:
        """Note that the program takes a value out of a leaf, or is about to write into it."""
        if not self._checks.armed or id(leaf) not in self._held or not self._is_user_file(frame.f_code.co_filename):
            return
        if self.is_wanted((leaf,)):
            self._checks.begin()
        else:
            self._read[id(leaf)] = leaf, _sum(leaf)

    def read(self) -> frozenset[int]:
        """Leaves out of which a value was taken, and that are still what they were: else it was to write into them."""
        return frozenset(key for key, (leaf, value) in self._read.items() if _sum(leaf) == value)

    def is_wanted(self, leaves: Iterable[torch.Tensor]) -> bool:
        """One of them was found to have been used before: now any use of it counts as the first."""
        return bool(self._unseen) and any(id(tensor) in self._unseen for tensor in leaves)

    def leave(self) -> None:
        """Watch no more; a mode under another one stays, and does nothing."""
        self.look_away()
        if self._mode is not None:
            self._mode.checks = None
            if function_modes() == 1:
                self._mode.__exit__(None, None, None)
            self._mode = None

    def note_application(self, args: Sequence[Any]) -> None:
        """Note that a custom Function is applied to these arguments."""
        if self._checks.armed and torch.is_grad_enabled() and any(id(argument) in self._held for argument in args):
            self._checks.begin()

    def note_unrecorded(self, module: Any) -> None:
        """Note that a module with such leaves is called where nothing is recorded: under no_grad."""
        if id(module) not in self._seen:
            self._seen.add(id(module))
            self._unrecorded |= {id(leaf) for leaf in module.parameters()}

    def step_ended(self, optimizer: Any) -> None:
        """Note that a step ended: what other optimizers hold may have been used for their next step."""
        mine = {id(leaf) for group in optimizer.param_groups for leaf in group["params"]}
        self._first = (self._first | self._held) - mine
        self._unrecorded -= mine
        self._read = {key: reads for key, reads in self._read.items() if key not in mine}
        self._seen.clear()

    def earlier(self) -> frozenset[int]:
        """Leaves that may have been used since the last step of their optimizer, before now."""
        return frozenset(self._first | self._unrecorded)

    def is_other(self, module: Any) -> bool:
        """No optimizer holds a parameter of this module."""
        known = self._modules.get(id(module))
        if known is None:
            known = not any(id(leaf) in self._held for leaf in module.parameters())
            self._modules[id(module)] = known
        return known


def _sum(leaf: torch.Tensor) -> float:
    with torch.no_grad(), without_torch_function():
        return float(torch.Tensor.detach(leaf).double().sum())


def _in_modules() -> set[int]:
    """Ids of the parameters that modules hold."""
    modules = (candidate for candidate in gc.get_objects() if issubclass(type(candidate), torch.nn.Module))
    return {id(leaf) for module in modules for leaf in module.__dict__.get("_parameters", {}).values()}


class _Uses(TorchFunctionMode):
    def __init__(self, checks: GradientChecks, bare: frozenset[int]) -> None:
        super().__init__()
        self.checks: GradientChecks | None = checks
        self._bare = bare

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        checks = self.checks
        if checks is not None and checks.armed and torch.is_grad_enabled() and self._uses(func, args):
            self.checks = None
            checks.begin()
        return func(*args, **(kwargs or {}))

    def _uses(self, func: Any, args: Any) -> bool:
        if getattr(func, "__name__", "") in (
            "__get__",
            "__set__",
            "register_hook",
            "__hash__",
            "__repr__",
            "__format__",
        ):
            return False
        for argument in args:
            if type(argument) in (list, tuple) and any(id(part) in self._bare for part in argument):
                return True
            if id(argument) in self._bare:
                return True
        return False
