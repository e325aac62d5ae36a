"""Which steps have a row in the record, and when it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.capture.options import is_kept

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession
    from backprobe.capture.tracking.read_steps import ReadSteps
    from backprobe.capture.tracking.steps import OpenStep
    from backprobe.record import Step


class StepRows:
    """The rows of steps.

    Attributes:
        waits: Rows are held back: steps of a program without an optimizer are written once one of them is left out.
        last: The last step that had a row, or would have had one if rows did not thin out; -1: none.
    """

    def __init__(self, recorder: CaptureSession, read_steps: ReadSteps) -> None:
        self._recorder, self._read_steps = recorder, read_steps
        self.waits = recorder.options.entry != "watch"
        self.last = -1
        self._held: list[Step] = []
        self._thinned: Step | None = None
        self._lights = 0

    def write(self, step: OpenStep, *, held: bool) -> None:
        """Write the row of a step that ends now; of those not taken in full, past a cap, at 1-2-5 per decade.

        Args:
            step: It.
            held: It is of a program without an optimizer, and waits if rows do.
        """
        recorder = self._recorder
        row = step.row(recorder.writer.time_ns(), recorder.moments.last)
        self.last = row.step
        if step.why is None:
            self._read_steps.took(row.duration_ns)
        if held and self.waits:
            self._held.append(row)
            return
        self._thinned = None
        if step.why is None and step.anomaly is None:
            self._lights += 1
            if not is_kept(self._lights, recorder.options.caps.light_steps):
                why = "steps between the sampled ones are listed one by one, later at 1-2-5 per decade"
                recorder.writer.cut("rows of steps", why, recorder.options.caps.light_steps)
                self._thinned = row
                return
        recorder.writer.add("steps", row)

    def tell_held(self) -> None:
        """Write what was held back: from now on nothing is."""
        for row in self._held:
            self._recorder.writer.add("steps", row)
        self.forget_held()

    def forget_held(self) -> None:
        """Forget what was held back: it was no step."""
        self.waits = False
        self._held.clear()

    def finish(self) -> None:
        """Write the last step's row even if it was thinned out: it says how many steps there were."""
        if self._thinned is not None:
            self._recorder.writer.add("steps", self._thinned)
