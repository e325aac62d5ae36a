"""Which steps of a training loop are taken in full, and what is still asked of the others.

1. A step ends with each step of the optimizer that stepped first; in a program that has none, with each backward call
   that accumulates. It is taken or not before it begins.
2. A short program is taken whole: steps thin out when the record is no longer short. Between the steps that are taken
   the taps are off and no sentinel, hook or strong reference of Backprobe stays. The gradients after each backward call
   tell whether the next two steps have to be looked at. So do an exception, a warning of torch's, a loss that is not
   finite, and a `.grad` that was read and was None: the step has a row that says so, and that it was not looked at.
   Of a watched job with short steps most are not even read (`read_steps`): they are counted, and have no row.
3. What follows a loop is looked at again: the code behind training is not a step of it.
4. Once the record is full the taps go off, at the end of a backward call or of a step, and stay off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from backprobe.capture.instrument.pause import Switch
from backprobe.capture.options import is_kept
from backprobe.capture.tracking.cause import Cause
from backprobe.capture.tracking.gradients import GradientCheck, without_gradient
from backprobe.capture.tracking.histograms import write_sizes
from backprobe.capture.tracking.read_steps import ReadSteps
from backprobe.capture.tracking.step_rows import StepRows
from backprobe.capture.tracking.steps import OpenStep, Why, bring_loss, is_plain, loss_at, rate_at
from backprobe.capture.tracking.tensors.identity import OwnRef
from backprobe.record.rows.series import Anomaly

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_AFTER_AN_ANOMALY: Final = 2
"""Steps that are taken in full after one that went wrong."""

_ANOMALIES_IN_FULL: Final = 5
"""Anomalies that are looked into before they thin out: gradients that stay NaN are the same finding every step."""

_LOOPS_IN_FULL: Final = 2
"""How often the code behind a loop in a function is looked at before that thins out: an epoch ends often."""


class Sampler:
    """Counts steps and switches the taps.

    Attributes:
        detail: Statements and module calls are taken now.
        steps: Steps that ended. nodes: Graph nodes that backward calls were walked over.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._options = recorder.options
        self.detail = True
        self.steps = self.nodes = 0
        self._open = OpenStep(0, self._why(0), -1)
        self._check = GradientCheck(recorder)
        self._leader: OwnRef[Any] | None = None
        self._more = self._anomalies = 0
        self._loops: dict[int, tuple[int, int]] = {}
        self._switch = Switch(recorder)
        self._read_steps = ReadSteps(thins=recorder.options.entry == "watch")
        self._read_again = 0
        self._rows = StepRows(recorder, self._read_steps)

    # ---- what the parts of the recorder tell

    def optimizer_stepped(self, optimizer: Any) -> None:
        """Note that an optimizer's `step` ended."""
        self._begin_anew()
        leader = None if self._leader is None else self._leader()
        if leader is None:
            leader, self._leader = optimizer, OwnRef(optimizer)
        if leader is optimizer and not self._switch.reads:
            self._end()
        elif leader is optimizer:
            step = self._open
            step.learning_rate = rate_at(optimizer)
            step.without_grad = without_gradient([group["params"] for group in optimizer.param_groups])
            if self.detail and self._options.measures:
                step.norm = self._check.norm()
                if self._options.histograms:
                    write_sizes(self._recorder, self._check.parameters())
            self._end()

    def passes(self, optimizer: Any) -> bool:
        """Return whether a step that is not read ended at an optimizer's `step`, as will the next; only count it."""
        leader = None if self._leader is None else self._leader()
        if leader is None or (leader is optimizer and self.steps + 1 >= self._read_again):
            return False
        if leader is optimizer:
            self.steps += 1
        return True

    def note_roots(self, roots: Sequence[Any]) -> None:
        """Note that a backward call that accumulates begins at these roots."""
        recorder, step = self._recorder, self._open
        if recorder.writer.is_closed:
            return
        root: Any = roots[0] if len(roots) else None
        if not is_plain(root):
            step.loss = step.loss_tensor = None
            return
        known = recorder.tensors.find(root)
        step.loss_tensor = None if known is None else known.number
        self._loss_came(step, loss_at(root))
        if not root.is_cpu:
            bring_loss(recorder.writer, self._options, root, partial(self._loss_came, step))

    def _loss_came(self, step: OpenStep, loss: float | None) -> None:
        """Take the loss of a step: at once, or when it came over from its device."""
        step.loss = loss
        if loss is not None and not math.isfinite(loss) and step is self._open:
            self.went_wrong("non-finite")

    def went_wrong(self, anomaly: Anomaly, tensor: int | None = None) -> None:
        """Something is odd about the step in progress; of one that is not taken in full its row tells the first."""
        if self.detail or self._recorder.writer.is_closed:
            return
        if not self._switch.reads:  # its row begins here
            self._begin(None)
            self._switch.reads = True
        step = self._open
        if step.anomaly is None:
            step.anomaly, step.tensor = anomaly, tensor

    def backward_ended(self, error: BaseException | None, accumulates: bool) -> None:
        """Note that a backward call ended, of a step that is taken in full or of another."""
        self._begin_anew()
        step = self._open
        step.backward_calls += 1
        is_full = self._recorder.writer.is_closed
        if not self.detail:
            if error is not None:
                self.went_wrong("exception")
                self._recorder.failures.left_call(error, None)
            elif accumulates and not is_full and (step.norm is None or math.isfinite(step.norm)):
                step.norm, is_odd = self._check.look(step.number)
                if is_odd:
                    self.went_wrong("non-finite")
        if accumulates and self._ends_with_backward and not self._recorder.timeline().calls:
            self._end()
        elif is_full and self.detail:
            self._rest()

    def keeps_walk(self, times: int) -> bool:
        """Whether a backward call, the `times`-th of its site, is walked."""
        if not self.has_steps:
            return is_kept(times, self._options.caps.call_times)
        self._open.walks += 1
        return self._open.walks <= self._options.caps.step_walks

    def keeps_call(self, times: int) -> bool:
        """Whether a module call, the `times`-th of its module, is kept."""
        if not self.has_steps:
            return is_kept(times, self._options.caps.call_times)
        self._open.calls += 1
        return self._open.calls <= self._options.caps.step_calls

    @property
    def has_steps(self) -> bool:
        """The program has an optimizer, or a step ended."""
        return self.steps > 0 or self._recorder.optimizers.any

    @property
    def _ends_with_backward(self) -> bool:
        return self._leader is None and not self._recorder.optimizers.any

    def left_loops(self) -> None:
        """Note that a statement outside every loop ended."""
        if not self.detail:
            self._attend("loop-left")

    def left_loop(self, site: int) -> None:
        """Note that a loop in a function ended. If it made steps, look at what follows, less often with time."""
        times, seen = self._loops.get(site, (0, 0))
        if self.detail or self.steps == seen:
            return
        self._loops[site] = times + 1, self.steps
        if is_kept(times + 1, _LOOPS_IN_FULL):
            self._attend("loop-left")

    def finish(self) -> None:
        """Look at the last state when the program has ended."""
        self._begin_anew()
        self._tell_last()
        if not self.detail and (self._open.backward_calls or self._open.anomaly is not None):
            self._close_early()
            self._begin(None)
        self._rows.finish()
        if not self.detail:
            self._attend("loop-left")
        if self._open.backward_calls:  # a step that did not end
            self._write()

    # ---- steps

    def _why(self, step: int) -> Why | None:
        """Why a step, counted from 0, is taken in full."""
        every = self._options.every
        if every is not None:
            return "every" if step % every == 0 else None
        in_full = self._options.steps_in_full
        if step < in_full:
            return "first"
        if self._options.entry != "watch" and self.nodes + self._recorder.moments.last < self._options.first_facts - 1:
            return "first"
        return "1-2-5" if is_kept(step, in_full) else None

    def _end(self) -> None:
        """End a step, and decide whether the next one is taken."""
        if self._switch.reads:
            self._recorder.writer.values.settle()
            self._judge()
            self._write()
        self.steps += 1
        why = self._why(self.steps)
        if self._more > 0:
            self._more, why = self._more - 1, why or "after-anomaly"
        if why is None:
            self._rest()
        else:
            self._attend(why)

    def _judge(self) -> None:
        """Take the next steps in full if something went wrong in a step that was not."""
        step = self._open
        if self.detail or self._recorder.writer.is_closed:
            return
        stopped = self._check.find_stopped_parameter()
        if stopped is not None and step.anomaly is None:
            known = self._recorder.tensors.find(stopped)
            step.anomaly, step.tensor = "gradient-stopped", None if known is None else known.number
        if step.anomaly is None:
            return
        self._anomalies += 1
        if is_kept(self._anomalies, _ANOMALIES_IN_FULL):
            self._more = _AFTER_AN_ANOMALY
        else:
            self._recorder.writer.cut(
                "anomalies", "steps that follow one that went wrong are taken at 1-2-5 per decade"
            )

    def _write(self) -> None:
        """Write the row of the step in progress."""
        self._rows.write(self._open, held=self._ends_with_backward)

    def _begin_anew(self) -> None:
        """Restart the count when an optimizer comes into a program that had none: its steps begin now."""
        if self._rows.waits and not self._ends_with_backward:
            self._rows.forget_held()
            self.steps = self._open.number = 0

    def _close_early(self) -> None:
        """End a step early that was not taken in full, since it went wrong or the program ended."""
        self._judge()
        self._write()
        self.steps += 1

    def _begin(self, why: Why | None) -> None:
        recorder = self._recorder
        self._open = OpenStep(self.steps, why, recorder.moments.last, started_ns=recorder.writer.time_ns())

    def _rest(self) -> None:
        """Stop taking steps in full with the next one."""
        self._rows.tell_held()
        self._begin(None)
        if self.detail:
            self.detail = False
            self._check.forget()
            self._switch.off()
        self._switch.reads = self._leader is None or self._read_steps.is_read(self.steps)
        self._read_again = self._read_steps.next_after(self.steps, self._why)

    def _tell_last(self) -> None:
        """Of steps that were not read the last one tells how many were made."""
        if self._rows.last < self.steps - 1:
            moment = self._recorder.moments.last
            last = OpenStep(self.steps - 1, None, moment, started_ns=self._recorder.writer.time_ns())
            self._rows.write(last, held=self._ends_with_backward)

    def _attend(self, why: Why) -> None:
        """Take what follows in full, while the record has room."""
        if why == "loop-left":
            self._tell_last()
        if self._recorder.writer.is_closed:
            self._rest()
            return
        if why == "loop-left" and self._open.anomaly is not None:
            self._close_early()
        self._switch.reads = True
        was_off, self.detail = not self.detail, True
        if was_off:
            self._switch.resume_capture()
        self._begin(why)
        if was_off:
            self._recorder.moments.statement(None)
            self._recorder.look_at_all(Cause(unseen=True))
