"""Backward calls over what are no tensors of the program: under a transform of `torch.func`, and a compiler's own.

1. Under a transform tensors are wrappers, so that only the call is recorded.
2. A compiler traces a backward pass over fake tensors: the program made no such call, and none is recorded.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import msgspec

from backprobe.capture.torch_access.torch_internals import functorch_is_active, is_compiling
from backprobe.capture.tracking.timeline import OF_COMPILER, TRANSFORMED
from backprobe.record import BackwardCall

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.tracking.timeline import Timeline


class TransformedCalls:
    """Follows the engine's calls that `torch.func.grad`, `vjp`, `jacrev` and their like make."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._open: list[tuple[BackwardCall, BaseException | None]] = []

    def takes(self, timeline: Timeline) -> bool:
        """Take a call of the engine if it is of these kinds, and return whether it is."""
        if functorch_is_active():
            timeline.calls.append(TRANSFORMED)
            self._begin()
        elif is_compiling():
            timeline.calls.append(OF_COMPILER)
        else:
            return False
        return True

    def _begin(self) -> None:
        recorder = self._recorder
        site, call = recorder.calling_site(), recorder.calls.number()
        row = BackwardCall(
            call=call, entry="func.grad", thread=recorder.timeline().thread, site=site, accumulate_grad=False,
            moment_before=recorder.moments.new("before-backward", site, call), create_graph=True,
        )  # fmt: skip
        recorder.writer.add("backward_calls", row)
        self._open.append((row, sys.exc_info()[1]))

    def end(self, number: int) -> None:
        """Note that the engine is left; `number` stood for the call."""
        if number != TRANSFORMED or not self._open:
            return
        row, before = self._open.pop()
        moment, error = self._recorder.moments.new("after-backward", row.site, row.call), sys.exc_info()[1]
        outcome = "finished" if error is None or error is before else "raised"
        self._recorder.writer.add("backward_calls", msgspec.structs.replace(row, moment_after=moment, outcome=outcome))
