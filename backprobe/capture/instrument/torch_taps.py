"""What of torch is watched beside autograd itself: mode switches, hooks, clipping, schedulers, gradient scalers.

1. The functions keep their identity and add no frame: their code is exchanged, as everywhere (`code_patch.py`).
2. A tap returns what it was given and never raises an error.
3. What only torch's own code calls is passed over before any code of Backprobe runs, and all but hooks in a step not
   taken in full.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from backprobe.capture.instrument.child_processes import Children, Starting
from backprobe.capture.instrument.observed_functions import list_watched_functions
from backprobe.capture.instrument.taps import Active
from backprobe.capture.tracking.training.events import TrainingEvents
from backprobe.capture.tracking.training.function_calls import WatchedCalls
from backprobe.capture.tracking.training.hooks import UserHooks
from backprobe.capture.tracking.training.modes import Modes

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.torch_access.code_patch import Swaps

_MODULE: Final = "torch/nn/modules/module.py"
_BETWEEN: Final = ("contextlib.py", _MODULE, "torch/amp/autocast_mode.py", "torch/cuda/amp/autocast_mode.py")
"""Files whose frames may stand between a switch and the program: decorators, ExitStack, `eval`, subclasses."""

_BETWEEN_FRAMES: Final = 4


class Observers:
    """Those who keep what the taps here see.

    Attributes:
        now: Those of this process; None while nothing is captured, and in every forked child.
    """

    now: Observers | None = None

    def __init__(self, recorder: CaptureSession, swaps: Swaps) -> None:
        self.guard = recorder.guard
        self.is_user_file = recorder.sites.is_user_file
        self.failures = recorder.failures
        self.modes = Modes(recorder)
        self.hooks = UserHooks(recorder)
        self.training = TrainingEvents(recorder)
        self.calls = WatchedCalls(recorder, swaps)
        self.children = Children(recorder)
        if recorder.options.walks:
            recorder.sites.on_text = self.calls.read
            recorder.modules.on_name = self.calls.name_module
            self.training.on_metric = self.calls.metric

    def mode_entered(self, by: str, subject: Any, after: Any, caller: FrameType) -> None:
        """Note that a mode is switched, if the program did it: itself, or by a decorator."""
        frame: FrameType | None = caller
        for _ in range(_BETWEEN_FRAMES):
            if frame is None:
                return
            filename = frame.f_code.co_filename
            if self.is_user_file(filename):
                self.modes.note_switch(by, subject, after, caller, frame)
                return
            if not filename.endswith(_BETWEEN) or (filename.endswith(_MODULE) and frame.f_code.co_name != "eval"):
                return
            frame = frame.f_back


def mode_entered(by: str, subject: Any, after: Any) -> None:
    """Open what switches a mode."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        caller = sys._getframe(2)
        filename = caller.f_code.co_filename
        if observers.guard.lightly(observers.is_user_file, filename) or filename.endswith(_BETWEEN):
            observers.guard.run(observers.mode_entered, by, subject, after, caller)


def mode_left(subject: Any) -> None:
    """Close what switched a mode."""
    observers = Observers.now
    if observers is not None and observers.modes.open:
        observers.guard.run(observers.modes.leave_region, subject)


def record_hook(kind: str, owner: Any, hook: Any, handle: Any = None) -> Any:
    """Record the handle that is returned by what registers a hook."""
    observers = Observers.now
    if observers is not None:
        observers.guard.run(observers.hooks.record_registration, kind, owner, hook, handle, sys._getframe(1).f_back)
    return handle


def record_hook_removal(handle: Any) -> None:
    """Record that a hook's handle removes the hook."""
    observers = Observers.now
    if observers is not None and observers.hooks.any:
        observers.guard.run(observers.hooks.record_removal, handle)


def event_begins(kind: str, subject: Any, *given: Any) -> None:
    """Open what belongs to an optimizer's step."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        observers.guard.run(observers.training.begins, kind, subject, given, sys._getframe(1).f_back)


def event_ended(kind: str, subject: Any) -> None:
    """Close what belongs to an optimizer's step."""
    observers = Observers.now
    if observers is not None and observers.training.open:
        observers.guard.run(observers.training.end_event, kind, subject)


def event_gave(kind: str, given: Any) -> Any:
    """Record what clipping returns."""
    observers = Observers.now
    if observers is not None and observers.training.open:
        observers.guard.run(observers.training.gave, kind, given)
    return given


def record_suppression(error: Any, given: Any) -> Any:
    """Record what `contextlib.suppress` returns for an exception: true if it swallows it."""
    observers = Observers.now
    if observers is not None and given is True and isinstance(error, BaseException):
        frame = sys._getframe(1).f_back
        if frame is not None and observers.guard.lightly(observers.is_user_file, frame.f_code.co_filename):
            observers.guard.run(observers.failures.note_suppression, error)
    return given


def call_begins(number: int, given: tuple[Any, ...]) -> None:
    """Open a watched function."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        observers.guard.run(observers.calls.begins, number, given, sys._getframe(1))


def call_gave(given: Any) -> Any:
    """Record what a watched function returns."""
    observers = Observers.now
    if observers is not None and observers.calls.open:
        observers.guard.run(observers.calls.gave, sys._getframe(1), given)
    return given


def call_left() -> None:
    """Close a watched function."""
    observers = Observers.now
    if observers is not None and observers.calls.open:
        observers.guard.run(observers.calls.leave_call, sys._getframe(1))


def child_started(process: Any) -> None:
    """Open the start of a `multiprocessing.Process`."""
    observers = Observers.now
    Starting.here.place = None
    if observers is not None:
        observers.guard.run(observers.children.note_start, process)


def child_start_left() -> None:
    """Close the start of a `multiprocessing.Process`."""
    Starting.here.place = None


def command_started(command: Any, executable: Any) -> None:
    """Open what starts a command."""
    observers = Observers.now
    if observers is not None:
        caller = sys._getframe(1).f_back
        observers.guard.run(observers.children.command_started, command, executable, caller)


def _forked_here() -> None:
    observers = Observers.now
    if observers is not None:
        observers.guard.run(observers.children.note_fork, sys._getframe(1))


NAMES: Final = {
    "__bp_call__": call_begins,
    "__bp_call_gave__": call_gave,
    "__bp_call_left__": call_left,
    "__bp_suppressed__": record_suppression,
    "__bp_mode__": mode_entered,
    "__bp_mode_left__": mode_left,
    "__bp_hooked__": record_hook,
    "__bp_unhooked__": record_hook_removal,
    "__bp_child__": child_started,
    "__bp_child_left__": child_start_left,
    "__bp_command__": command_started,
    "__bp_event__": event_begins,
    "__bp_event_left__": event_ended,
    "__bp_event_gave__": event_gave,
}


def put(swaps: Swaps, recorder: CaptureSession) -> None:
    """Watch from now on."""
    for name, function in NAMES.items():
        setattr(builtins, name, function)
    for watch in list_watched_functions():
        swaps.put(watch.function, watch.enter, watch.leave, watch.returned)
    Observers.now = Observers(recorder, swaps)


def take_out() -> None:
    """Make every tap do nothing; the swaps are undone by their owner."""
    Observers.now = None


os.register_at_fork(after_in_parent=_forked_here, after_in_child=take_out)
