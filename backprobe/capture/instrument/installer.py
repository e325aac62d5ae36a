"""Puts the instrument into torch and takes it out again, whatever happened in between."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch.optim.optimizer import (
    Optimizer,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from backprobe.capture.gradient_check import GradientChecks
from backprobe.capture.instrument import taps, torch_taps
from backprobe.capture.recorder import CaptureSession
from backprobe.capture.torch_access.code_patch import Swaps
from backprobe.capture.torch_access.torch_internals import own_hook_numbers
from backprobe.capture.tracking.tensors.identity import unlist


class Instrument:
    """What one run installs; `fallbacks` says what could not be installed as planned."""

    def __init__(self) -> None:
        self.swaps = Swaps()
        self._hooks: list[Any] = []
        self.checks: GradientChecks | None = None

    @property
    def fallbacks(self) -> tuple[str, ...]:
        """Instruments that had to be left out, and why."""
        return tuple(self.swaps.fallbacks)

    def put(self, recorder: CaptureSession) -> None:
        """Install everything.

        Raises:
            RuntimeError: another run is being captured in this process.
        """
        taps.install(recorder)
        unlist(True)
        swaps = self.swaps
        try:
            swaps.put(
                torch.autograd.graph._engine_run_backward,
                "__bp_engine__(t_outputs, args, kwargs)",
                "__bp_engine_left__(t_outputs)",
                "__bp_engine_returned__()",
            )
            swaps.put(
                torch.autograd.backward,
                "__bp_entry__('backward', tensors, grad_tensors, retain_graph)",
                "__bp_entry_left__()",
            )
            swaps.put(
                torch.autograd.grad, "__bp_entry__('grad', outputs, grad_outputs, retain_graph)", "__bp_entry_left__()"
            )
            swaps.put(
                torch.nn.Module._wrapped_call_impl,
                "__bp_module__(self)",
                "__bp_module_left__()",
                "__bp_module_returned__(self)",
            )
            swaps.put(Optimizer.zero_grad, "__bp_nothing__()", "__bp_zero_grad_left__(self, set_to_none)")
            swaps.put(warnings._showwarnmsg, "__bp_warned__(msg)", "__bp_nothing__()")  # type: ignore[attr-defined] private
            torch_taps.put(swaps, recorder)
            with own_hook_numbers():
                self._hooks.append(register_optimizer_step_pre_hook(taps.step_begins))
            with own_hook_numbers():
                self._hooks.append(register_optimizer_step_post_hook(taps.step_ended))
            if recorder.options.check != "off":
                self.checks = GradientChecks(recorder)
                self.checks.put(swaps)
        except BaseException:
            self.take_out()
            raise

    def take_out(self) -> None:
        """Give torch and warnings back what was theirs. The taps' names stay in `builtins` and do nothing."""
        try:
            if self.checks is not None:
                self.checks.take_out()
            taps.uninstall()
            unlist(False)
            torch_taps.take_out()
        finally:
            for hook in self._hooks:
                hook.remove()
            self._hooks.clear()
            self.swaps.undo()
