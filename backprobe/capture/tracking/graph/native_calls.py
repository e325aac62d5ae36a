"""Backward calls that pass no Python: from TorchScript, or from C++. A sentinel fires and no call is open.

Such a call is known from its first sentinel on. The engine is asked to say when it is over; if it raised it does not,
and the call ends with the next thing that happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from torch.autograd import Variable

from backprobe.capture.torch_access.torch_internals import current_pass, node_of
from backprobe.capture.tracking.cause import Cause
from backprobe.capture.tracking.graph.passes import Pass
from backprobe.capture.tracking.timeline import open_call
from backprobe.record import BackwardCall

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_ENGINE: Final[Any] = Variable._execution_engine  # type: ignore[attr-defined] torch's stubs lack it


class Unseen:
    """Follows the calls that no entry announced."""

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._open: list[tuple[Pass, BackwardCall, int, int]] = []

    def open(self) -> Pass | None:
        """Open a pass for a sentinel that belongs to no open call."""
        recorder, task = self._recorder, current_pass()
        self.settle()
        timeline = recorder.timeline()
        site = recorder.calling_site()
        call = recorder.calls.number()
        moment = recorder.moments.new("before-backward", site, call)
        row = BackwardCall(
            call=call, entry="unseen", thread=timeline.thread, moment_before=moment, site=site,
            parent=open_call(timeline),
        )  # fmt: skip
        recorder.writer.add("backward_calls", row)
        passed = recorder.passes.open(call, recorder.calls.walk(), detailed=recorder.options.walks)
        self._open.append((passed, row, task, recorder.writer.time_ns()))
        if task >= 0:
            _ENGINE.queue_callback(self._end_pass)
        return passed

    def _end_pass(self) -> None:
        """Settle the pass, which the engine says is over; it still counts as the one that runs."""
        self._recorder.guard.run(self._settle, current_pass(), "finished")

    def settle(self) -> int | None:
        """End the calls that are over but did not say so, for they raised; the last of them."""
        return self._settle(None, "raised") if self._open else None

    def _settle(self, task: int | None, outcome: Any) -> int | None:
        running, ended = current_pass(), None
        for opened in list(self._open):
            passed, row, of, started = opened
            if of == task or (task is None and of != running):
                self._open.remove(opened)
                self._end(passed, row, started, outcome)
                ended = row.call
        return ended

    def _end(self, passed: Pass, row: BackwardCall, started: int, outcome: Any) -> None:
        recorder = self._recorder
        recorder.passes.close(passed)
        moment = recorder.moments.new("after-backward", row.site, row.call)
        keeps = not self._freed(passed)
        freed = recorder.passes.write(passed, moment, keeps=keeps, raised=outcome == "raised")
        recorder.look_at_all(Cause(site=row.site, call=row.call), leaves_only=not recorder.is_small)
        recorder.writer.add(
            "backward_calls",
            msgspec.structs.replace(
                row, moment_after=moment, retain_graph=keeps, nodes_run=len(passed), nodes_freed=freed,
                duration_ns=recorder.writer.time_ns() - started, outcome=outcome,
            ),
        )  # fmt: skip
        recorder.bury()
        recorder.writer.flush()

    def _freed(self, passed: Pass) -> bool:
        """Return whether the pass freed the graph, read from a living node of it, since nothing reported the flag."""
        recorder = self._recorder
        for known in list(recorder.tensors.live.values()):
            tensor = known.ref()
            if tensor is None or known.node is None or not passed.ran_with_saved(known.node):
                continue
            return not recorder.saved.holds(node_of(tensor))
        return False
