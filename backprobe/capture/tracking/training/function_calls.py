"""The calls of watched functions: what was handed in, what came back, and at which line of the program.

1. A call is recorded if the program made it, or a module of torch that it called: not what torch's own code calls.
2. Arguments are read where that runs no code of the program: numbers, truth values, None, text, dtypes, sizes.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections import Counter
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final

import torch

from backprobe.capture.options import is_kept
from backprobe.capture.output.text import class_name, name
from backprobe.capture.rewriting.sites import place_of
from backprobe.capture.tracking.training.watched_functions import TABLE, WatchedFunction, named_in
from backprobe.record import NAMED, TensorArgument, WatchedCall

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.torch_access.code_patch import Swaps

_CALLERS: Final = (
    "torch/nn/modules/loss.py", "torch/nn/modules/dropout.py", "torch/nn/modules/activation.py",
    "torch/nn/modules/module.py", "torch/_dynamo/eval_frame.py", "/contextlib.py", "torch/optim/lr_scheduler.py",
)  # fmt: skip
"""Files of the callers that stand for the program: the modules of losses, what is part of a decorator's
place, and the constructors of schedules."""

_MOST: Final = 50_000
_MOST_TENSORS: Final = 16
_MOST_NAMES: Final = 10_000
_SIZES: Final = (int, float, bool, str, type(None))


@dataclass(slots=True)
class _Open:
    """A call in progress; `frame` is the identity of its frame, which lives as long."""

    frame: int
    thread: int
    number: int
    site: int | None
    col: int | None
    module_call: int | None
    arguments: dict[str, Any]
    inputs: tuple[TensorArgument, ...]
    before: BaseException | None
    outputs: tuple[int, ...] = ()


class WatchedCalls:
    """Writes down the calls of watched functions.

    Attributes:
        open: Calls in progress.
    """

    def __init__(self, recorder: CaptureSession, swaps: Swaps) -> None:
        self.open: list[_Open] = []
        self._recorder = recorder
        self._swaps = swaps
        self._put: set[int] = set()
        self._next = 0
        self._times: Counter[tuple[int | None, int]] = Counter()
        self._columns: dict[tuple[CodeType, int], int | None] = {}
        self._names: set[tuple[int, str, int]] = set()

    def name_module(self, module: int, binding: str, site: int) -> None:
        """Record that a statement gave a module a name; once for each statement."""
        key = (module, binding, site)
        if key in self._names or len(self._names) >= _MOST_NAMES:
            return
        self._names.add(key)
        recorder = self._recorder
        given = {"module": module, "name": name(binding)}
        row = WatchedCall(n=self._next, function=NAMED, moment=recorder.moments.now(), site=site, arguments=given)
        recorder.writer.add("watched_calls", row)
        self._next += 1

    def metric(self, site: int | None, function: str, arguments: dict[str, Any]) -> None:
        """Record that a schedule that follows a number was stepped with it."""
        recorder = self._recorder
        row = WatchedCall(
            n=self._next, function=function, moment=recorder.moments.now(), site=site, arguments=arguments
        )
        if self._next < _MOST:
            recorder.writer.add("watched_calls", row)
            self._next += 1

    def read(self, text: str) -> None:
        """Watch the functions that a file of the program names."""
        try:
            for number in named_in(text):
                if number not in self._put:
                    self._put.add(number)
                    self._watch(number, TABLE[number])
        except Exception as error:
            self._recorder.guard.note(error)

    def _watch(self, number: int, watched_function: WatchedFunction) -> None:
        self._swaps.put(
            watched_function.function,
            f"__bp_call__({number}, ({', '.join(watched_function.parameters)},))",
            "__bp_call_left__()",
            "__bp_call_gave__()" if watched_function.gives else None,
        )

    def wants(self, caller: FrameType | None) -> bool:
        """Return whether a call with this caller is recorded."""
        if caller is None:
            return False
        filename = caller.f_code.co_filename
        return self._recorder.sites.is_user_file(filename) or filename.endswith(_CALLERS)

    def begins(self, number: int, given: tuple[Any, ...], frame: FrameType) -> None:
        """Note that a watched function begins; `given` are the values of its parameters."""
        if not self.wants(frame.f_back):
            return
        recorder = self._recorder
        site, col = self._place(frame)
        self._times[site, number] += 1
        if not is_kept(self._times[site, number], recorder.options.caps.site_times):
            return
        if self._next >= _MOST:
            recorder.writer.cut("watched calls", "more calls of watched functions than are kept", _MOST)
            return
        timeline = recorder.timeline()
        arguments, inputs = self._arguments(TABLE[number], given, site)
        self.open.append(
            _Open(
                id(frame), timeline.thread, number, site, col, timeline.modules[-1] if timeline.modules else None,
                arguments, inputs, sys.exc_info()[1],
            )
        )  # fmt: skip

    def gave(self, frame: FrameType, given: Any) -> None:
        """Note what a watched function returns."""
        opened = self._find(frame)
        if opened is None:
            return
        values = given if type(given) in (tuple, list) else (given,)
        how = self._how(opened)
        seen = [self._recorder.see(value, opened.site, how) for value in values[:_MOST_TENSORS] if _is_tensor(value)]
        opened.outputs = tuple(known.number for known in seen if known is not None)

    def _how(self, opened: _Open) -> str:
        """Return the call that the statement's value comes from, as written, if it is this one."""
        written = "" if opened.site is None else self._recorder.sites.facts[opened.site].how
        return written if written.rpartition(".")[2] == TABLE[opened.number].name.rpartition(".")[2] else ""

    def leave_call(self, frame: FrameType) -> None:
        """Note that a watched function is left."""
        opened = self._find(frame)
        if opened is None:
            return
        self.open.remove(opened)
        recorder, error = self._recorder, sys.exc_info()[1]
        recorder.moments.statement(opened.site)
        recorder.writer.add(
            "watched_calls",
            WatchedCall(
                n=self._next, function=TABLE[opened.number].name, moment=recorder.moments.now(), site=opened.site,
                thread=opened.thread, module_call=opened.module_call, arguments=opened.arguments, inputs=opened.inputs,
                outputs=opened.outputs, raised=error is not None and error is not opened.before, col=opened.col,
            ),
        )  # fmt: skip
        self._next += 1

    def _find(self, frame: FrameType) -> _Open | None:
        return next((call for call in reversed(self.open) if call.frame == id(frame)), None)

    def _arguments(
        self, watched_function: WatchedFunction, given: tuple[Any, ...], site: int | None
    ) -> tuple[dict[str, Any], tuple[TensorArgument, ...]]:
        """Split the arguments into plain ones that differ from their defaults, and tensors."""
        plain: dict[str, Any] = {}
        tensors: list[TensorArgument] = []
        for parameter, value in zip(watched_function.parameters, given, strict=True):
            if parameter == "self" and watched_function.loads:
                plain["module"] = self._recorder.modules.number_of(value)
            elif parameter == "self" and watched_function.builds:
                plain |= _held_by(value)
            elif parameter == "self" or parameter.startswith("_"):
                continue
            elif isinstance(value, torch.optim.Optimizer):
                plain[parameter] = self._recorder.optimizers.number_of(value)
            elif watched_function.loads and isinstance(value, dict):
                named = ((key, held) for key, held in dict.items(value) if type(key) is str and _is_tensor(held))
                first = itertools.islice(named, _MOST_TENSORS)
                tensors += [self._build_argument(name(key), held, site) for key, held in first]
            elif watched_function.variadic and parameter == watched_function.parameters[-1]:
                tensors += [self._build_argument(str(place), v, site) for place, v in enumerate(value) if _is_tensor(v)]
            elif _is_tensor(value):
                tensors.append(self._build_argument(parameter, value, site))
            else:
                said = _argument_value(value)
                if said is not _UNSAID and (
                    parameter not in watched_function.defaults
                    or _argument_value(watched_function.defaults[parameter]) != said
                ):
                    plain[parameter] = said
        return plain, tuple(tensors[:_MOST_TENSORS])

    def _build_argument(self, parameter: str, tensor: torch.Tensor, site: int | None) -> TensorArgument:
        known = self._recorder.see(tensor, site)
        return TensorArgument(name=parameter, tensor=None if known is None else known.number)

    def _place(self, frame: FrameType | None) -> tuple[int | None, int | None]:
        """Return the statement of the program's innermost frame, and the column of the call in it."""
        sites = self._recorder.sites
        while frame is not None:
            code = frame.f_code
            if sites.is_user_file(code.co_filename):
                key = (code, frame.f_lasti)
                if key not in self._columns:
                    line, col = place_of(code, frame.f_lasti)
                    known = None not in (line, col)
                    self._columns[key] = sites.column(code.co_filename, line or 1, col or 0) if known else None
                return sites.of_frame(frame), self._columns[key]
            frame = frame.f_back
        return None, None


_UNSAID: Final = object()


def _held_by(schedule: Any) -> dict[str, Any]:
    """Class and plain attributes of a schedule, as its own constructor has set them; milestones in order."""
    held: dict[str, Any] = {"class": class_name(schedule)}
    for key, value in vars(schedule).items():
        said = _argument_value(sorted(value.elements()) if type(value) is Counter else value)
        if said is not _UNSAID and not key.startswith("_"):
            held[key] = said
    return held


def _is_tensor(value: Any) -> bool:
    return issubclass(type(value), torch.Tensor)


def _argument_value(value: Any) -> Any:
    """Convert an argument to what the record has; `_UNSAID` if only code of the program could put it into words."""
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is int:
        return value if abs(value) < 2**63 else str(value)
    if kind is float:
        return value if math.isfinite(value) else repr(value)
    if kind in (str, torch.dtype) or (
        kind in (tuple, list, torch.Size) and all(type(size) in _SIZES for size in value)
    ):
        return name(repr(value))
    return _UNSAID
