"""The functions that rewritten code calls. They live in `builtins`; with no recorder active they do nothing.

1. A tap returns what it was given and never raises an error.
2. The names stay in `builtins` after a run: code that was rewritten may still run then (atexit, threads, finalisers).
"""

from __future__ import annotations

import builtins
import os
from typing import TYPE_CHECKING, Any, Final

from backprobe.capture.torch_access import native

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession


class Active:
    """The recorder of this process; None while nothing is captured, and in every forked child.

    Attributes:
        attending: The recorder while it takes statements and module calls; None between the steps that are sampled.
        reads: Of a step in between, backward calls are followed: its loss and gradients are read.
    """

    recorder: CaptureSession | None = None
    attending: CaptureSession | None = None
    reads: bool = True


def top(site: int, *values: Any) -> None:
    """Follows a statement at a module's top level, outside every loop: from here on the program is looked at again."""
    recorder = Active.recorder
    if recorder is not None:
        recorder.guard.run(recorder.sampler.left_loops)
        vars(builtins)["__bp_after__"](site, *values)


def loop_left(site: int) -> None:
    """Follows a loop in a function."""
    recorder = Active.recorder
    if recorder is not None and Active.attending is None:
        recorder.guard.run(recorder.sampler.left_loop, site)


def end_statement(site: int, *values: Any) -> None:
    """Follows a statement; `values` are what the plain names that it bound hold now."""
    recorder = Active.attending
    if recorder is None:
        return
    if recorder.guard.lightly(recorder.statements.is_idle, site, values):
        return
    recorder.guard.run(recorder.statements.end_statement, site, values)


def value(site: int, given: Any, *containers: Any) -> Any:
    """Record what a statement returns, or stores into an attribute or a subscript of `containers`."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.statements.value, site, given, containers)
    return given


def passing(site: int, given: Any) -> Any:
    """Record the value of a test, an iterable, a context or a yield."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.statements.passing, site)
    return given


def operation(number: int, given: Any) -> Any:
    """Record what a call, an operator, a subscript or an attribute inside a statement gave."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.statements.operation, number, given)
    return given


def enter(site: int, *arguments: Any) -> None:
    """Open a function; `arguments` are its parameters."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.statements.enter, site, arguments)


def loop() -> None:
    """Stands before a loop."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.writer.flush)


def caught() -> None:
    """Open an `except` block."""
    recorder = Active.recorder
    if recorder is not None:
        recorder.guard.run(recorder.caught)


def base(site: int, given: Any) -> Any:
    """Record the object whose `.grad` is about to be read."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.grad_base, site, given)
    elif (recorder := Active.recorder) is not None:
        recorder.guard.lightly(recorder.calls.light.grad_base, site, given)
    return given


def grad(site: int, given: Any) -> Any:
    """Record what the `.grad` gave."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.grad_read, site, given)
    elif given is None and (recorder := Active.recorder) is not None:
        recorder.guard.run(recorder.none_read, site)
    return given


def entry(kind: str, roots: Any, gradients: Any, retain_graph: Any) -> None:
    """Open `autograd.backward` and `autograd.grad`."""
    recorder = Active.recorder
    if recorder is None:
        return
    if Active.attending is not None:
        recorder.guard.run(recorder.calls.note_entry, kind, roots, gradients, retain_graph)
    elif Active.reads or recorder.timeline().entries:
        recorder.guard.lightly(recorder.calls.light.note_entry)


def entry_left() -> None:
    """Close `autograd.backward` and `autograd.grad`."""
    recorder = Active.recorder
    if recorder is None or not (Active.reads or recorder.timeline().entries):
        return
    if not recorder.guard.lightly(recorder.calls.light.leave_entry):
        recorder.guard.run(recorder.calls.leave_entry)


def engine(outputs: Any, args: Any, options: Any) -> None:
    """Open the engine's one Python entry."""
    recorder = Active.recorder
    if recorder is None:
        return
    if Active.attending is not None:
        recorder.guard.run(recorder.calls.begin, outputs, args, options)
    elif Active.reads or recorder.timeline().calls:
        recorder.guard.lightly(recorder.calls.light.begins, outputs, options)


def engine_left(outputs: Any) -> None:
    """Close the engine's one Python entry."""
    recorder = Active.recorder
    if recorder is None or not (Active.reads or recorder.timeline().calls):
        return
    if not recorder.guard.lightly(recorder.calls.light.ends):
        recorder.guard.run(recorder.calls.end, outputs)


def engine_returned(given: Any) -> Any:
    """Record what the engine returns."""
    recorder = Active.recorder
    if recorder is not None and recorder.calls.open:
        recorder.guard.run(recorder.calls.result, given)
    return given


def module_enter(module: Any) -> None:
    """Open a module's call."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.modules.enter, module)


def module_left() -> None:
    """Close a module's call."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.modules.leave)


def module_returned(module: Any, given: Any) -> Any:
    """Record what a module's call returns."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.modules.take_result, module, given)
    return given


def zero_grad_left(optimizer: Any, set_to_none: Any) -> None:
    """Close an optimizer's `zero_grad`."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.optimizers.after_zero_grad, optimizer, set_to_none)


def step_begins(optimizer: Any, *_: Any) -> None:
    """Open `Optimizer.step`, as torch's global hook before it."""
    recorder = Active.attending
    if recorder is not None:
        recorder.guard.run(recorder.optimizers.before_step, optimizer)


def step_ended(optimizer: Any, *_: Any) -> None:
    """Close `Optimizer.step`, as torch's global hook after it."""
    recorder = Active.recorder
    if recorder is None or (not Active.reads and recorder.guard.lightly(recorder.optimizers.only_counts, optimizer)):
        return
    recorder.guard.run(recorder.optimizers.after_step, optimizer)


def warning_shown(warning: Any) -> None:
    """Open `warnings._showwarnmsg`, which gets what passed the program's filters."""
    recorder = Active.recorder
    if recorder is not None:
        recorder.guard.run(recorder.warnings.record_warning, warning)


def nothing() -> None:
    """Close what needs no closing."""


_TWINS: Final[dict[str, Any]] = {
    "__bp_after__": end_statement,
    "__bp_top__": top,
    "__bp_loop_left__": loop_left,
    "__bp_value__": value,
    "__bp_pass__": passing,
    "__bp_op__": operation,
    "__bp_enter__": enter,
    "__bp_loop__": loop,
    "__bp_caught__": caught,
    "__bp_base__": base,
    "__bp_grad__": grad,
    "__bp_entry__": entry,
    "__bp_entry_left__": entry_left,
    "__bp_engine__": engine,
    "__bp_engine_left__": engine_left,
    "__bp_engine_returned__": engine_returned,
    "__bp_module__": module_enter,
    "__bp_module_left__": module_left,
    "__bp_module_returned__": module_returned,
    "__bp_zero_grad_left__": zero_grad_left,
    "__bp_warned__": warning_shown,
    "__bp_nothing__": nothing,
}
_MODULE_TAPS: Final = ("module_enter", "module_left", "module_returned")
_COMPILED: Final = ("end_statement", "value", "passing", "operation", "enter", *_MODULE_TAPS)
"""Taps that the compiled core has; each stands for the function of that name here."""

NAMES: Final[dict[str, Any]] = {
    name: getattr(native.native, function.__name__)
    if native.native is not None and function.__name__ in _COMPILED
    else function
    for name, function in _TWINS.items()
}
"""The taps by the names that they have in `builtins`."""


def install(recorder: CaptureSession) -> None:
    """Make a recorder the active one.

    Raises:
        RuntimeError: another run is being captured in this process.
    """
    if Active.recorder is not None:
        raise RuntimeError("a run is already being captured in this process; only one at a time can be")
    for name, function in NAMES.items():
        setattr(builtins, name, function)
    Active.recorder, Active.reads = recorder, True
    attend(True)


def uninstall() -> None:
    """Make every tap do nothing."""
    Active.recorder = None
    attend(False)


def attend(on: bool) -> None:
    """Between sampled steps the taps of statements and module calls do nothing, as after a run."""
    recorder = Active.recorder if on else None
    Active.attending = recorder
    if native.native is not None:
        native.native.attend(None if recorder is None else recorder.statements)


def _drop_in_child() -> None:
    """Drop the instrument in a forked child at once: what it inherited is its parent's."""
    recorder = Active.recorder
    uninstall()
    if recorder is not None:
        recorder.writer.drop()
        recorder.guard.drop()
        recorder.nodes.close()


os.register_at_fork(after_in_child=_drop_in_child)
