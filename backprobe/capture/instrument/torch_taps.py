"""What of torch is watched beside autograd itself: mode switches, hooks, clipping, schedulers, gradient scalers.

1. The functions keep their identity and add no frame: their code is exchanged, as everywhere (`code_patch.py`).
2. A tap returns what it was given and never raises an error of its own.
3. What only torch's own code calls is passed over before any body of ours runs, and all but hooks in a step that is
   not taken in full.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from backprobe.capture.instrument.child_processes import Children, Starting
from backprobe.capture.instrument.observed_functions import watched
from backprobe.capture.instrument.taps import Active
from backprobe.capture.tracking.training.events import TrainingEvents
from backprobe.capture.tracking.training.function_calls import WatchedCalls
from backprobe.capture.tracking.training.hooks import UserHooks
from backprobe.capture.tracking.training.modes import Modes

if TYPE_CHECKING:
    from backprobe.capture.recorder import Recorder
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

    def __init__(self, recorder: Recorder, swaps: Swaps) -> None:
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
            recorder.modules.on_name = self.calls.named
            self.training.on_metric = self.calls.metric

    def mode_entered(self, by: str, subject: Any, after: Any, caller: FrameType) -> None:
        """A mode is switched, if the program did it: itself, or by a decorator."""
        frame: FrameType | None = caller
        for _ in range(_BETWEEN_FRAMES):
            if frame is None:
                return
            filename = frame.f_code.co_filename
            if self.is_user_file(filename):
                self.modes.entered(by, subject, after, caller, frame)
                return
            if not filename.endswith(_BETWEEN) or (filename.endswith(_MODULE) and frame.f_code.co_name != "eval"):
                return
            frame = frame.f_back


def mode_entered(by: str, subject: Any, after: Any) -> None:
    """Opens what switches a mode."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        caller = sys._getframe(2)
        filename = caller.f_code.co_filename
        if observers.guard.lightly(observers.is_user_file, filename) or filename.endswith(_BETWEEN):
            observers.guard.run(observers.mode_entered, by, subject, after, caller)


def mode_left(subject: Any) -> None:
    """Closes what switched a mode."""
    observers = Observers.now
    if observers is not None and observers.modes.open:
        observers.guard.run(observers.modes.left, subject)


def hooked(kind: str, owner: Any, hook: Any, handle: Any = None) -> Any:
    """What registers a hook returns its handle."""
    observers = Observers.now
    if observers is not None:
        observers.guard.run(observers.hooks.registered, kind, owner, hook, handle, sys._getframe(1).f_back)
    return handle


def unhooked(handle: Any) -> None:
    """A hook's handle takes it off."""
    observers = Observers.now
    if observers is not None and observers.hooks.any:
        observers.guard.run(observers.hooks.removed, handle)


def event_begins(kind: str, subject: Any, *given: Any) -> None:
    """Opens what belongs to an optimizer's step."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        observers.guard.run(observers.training.begins, kind, subject, given, sys._getframe(1).f_back)


def event_ended(kind: str, subject: Any) -> None:
    """Closes what belongs to an optimizer's step."""
    observers = Observers.now
    if observers is not None and observers.training.open:
        observers.guard.run(observers.training.ended, kind, subject)


def event_gave(kind: str, given: Any) -> Any:
    """What clipping returns."""
    observers = Observers.now
    if observers is not None and observers.training.open:
        observers.guard.run(observers.training.gave, kind, given)
    return given


def suppressed(error: Any, given: Any) -> Any:
    """What `contextlib.suppress` returns of an exception: true if it swallows it."""
    observers = Observers.now
    if observers is not None and given is True and isinstance(error, BaseException):
        frame = sys._getframe(1).f_back
        if frame is not None and observers.guard.lightly(observers.is_user_file, frame.f_code.co_filename):
            observers.guard.run(observers.failures.suppressed, error)
    return given


def call_begins(number: int, given: tuple[Any, ...]) -> None:
    """Opens a watched function."""
    observers = Observers.now
    if observers is not None and Active.attending is not None:
        observers.guard.run(observers.calls.begins, number, given, sys._getframe(1))


def call_gave(given: Any) -> Any:
    """What a watched function returns."""
    observers = Observers.now
    if observers is not None and observers.calls.open:
        observers.guard.run(observers.calls.gave, sys._getframe(1), given)
    return given


def call_left() -> None:
    """Closes a watched function."""
    observers = Observers.now
    if observers is not None and observers.calls.open:
        observers.guard.run(observers.calls.left, sys._getframe(1))


def child_started(process: Any) -> None:
    """Opens the start of a `multiprocessing.Process`."""
    observers = Observers.now
    Starting.here.place = None
    if observers is not None:
        observers.guard.run(observers.children.started, process)


def child_start_left() -> None:
    """Closes it."""
    Starting.here.place = None


def command_started(command: Any, executable: Any) -> None:
    """Opens what starts a command."""
    observers = Observers.now
    if observers is not None:
        caller = sys._getframe(1).f_back
        observers.guard.run(observers.children.command_started, command, executable, caller)


def _forked_here() -> None:
    observers = Observers.now
    if observers is not None:
        observers.guard.run(observers.children.forked, sys._getframe(1))


NAMES: Final = {
    "__bp_call__": call_begins,
    "__bp_call_gave__": call_gave,
    "__bp_call_left__": call_left,
    "__bp_suppressed__": suppressed,
    "__bp_mode__": mode_entered,
    "__bp_mode_left__": mode_left,
    "__bp_hooked__": hooked,
    "__bp_unhooked__": unhooked,
    "__bp_child__": child_started,
    "__bp_child_left__": child_start_left,
    "__bp_command__": command_started,
    "__bp_event__": event_begins,
    "__bp_event_left__": event_ended,
    "__bp_event_gave__": event_gave,
}


def put(swaps: Swaps, recorder: Recorder) -> None:
    """Watch from now on."""
    for name, function in NAMES.items():
        setattr(builtins, name, function)
    for one in watched():
        swaps.put(one.function, one.enter, one.leave, one.returned)
    Observers.now = Observers(recorder, swaps)


def take_out() -> None:
    """Make every tap do nothing; the swaps are undone by their owner."""
    Observers.now = None


os.register_at_fork(after_in_parent=_forked_here, after_in_child=take_out)
