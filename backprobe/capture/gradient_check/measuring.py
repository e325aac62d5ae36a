"""The ghosts of one segment: which are sent, in which order, and what is taken from their answers.

nothing moved, as the program computes     its roots are those of the program, or nothing is claimed; it goes on to the
                                           step, the others end where their last root is known, before it is walked back
nothing moved, in float64                  its roots are the same to float32's rounding, or the rest is float32;
                                           where a tensor has half precision, nothing is claimed then
each probe moved by h, -h, 3h, -3h         and, where an explicit cut changes with it, by h and -h with cuts held
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from backprobe.capture.gradient_check.comparison import WIDTHS, Precision
from backprobe.capture.gradient_check.directions import Probe
from backprobe.capture.gradient_check.ghosts import Answer, Ghost, ask
from backprobe.capture.gradient_check.perturbed_step import Moved
from backprobe.capture.gradient_check.segment import Measured, Segment, state_of

MOST_SECONDS_OF_STEP: Final = 60
"""Of all ghosts of a segment together; probes that are not reached are reported as not checked."""

MOST_SECONDS: Final = 20
"""Of one ghost."""

_SAME_ROOT: Final = 3e-4
_SAME_ROOT_HALF: Final = 0.05

_BRIEF_SECONDS: Final = 2.0
_BRIEF_SHARE: Final = 0.1
"""A brief check takes this share of the run's time up to now, or so many seconds if that is more."""

_LEAST_GHOSTS: Final = 6
"""Of a segment in which something is compared: two in which nothing is moved, four of a probe."""

Send = Callable[[Moved, Probe | None, float], Answer | None]
"""Sends a ghost; its answer, or None in the ghost itself, which goes on in the program."""


class Budget:
    """The wall time that ghosts may take.

    Attributes:
        is_brief: The check of a run that did not ask for it.
    """

    def __init__(self, run_ns: Callable[[], int], *, is_brief: bool) -> None:
        """Start one.

        Args:
            run_ns: Returns the nanoseconds since the run began.
        """
        self.is_brief = is_brief
        self._run_ns = run_ns
        self._spent = 0.0

    def seconds_left(self) -> float:
        """Return the wall time of the next segment."""
        if not self.is_brief:
            return MOST_SECONDS_OF_STEP
        return max(_BRIEF_SECONDS, _BRIEF_SHARE * self._run_ns() / 1e9) - self._spent

    def why_spent(self) -> str | None:
        """Return why nothing more can be checked; None: there is time."""
        return None if self.seconds_left() > 0 else f"the check has used its time, {self._spent:.2g} s of this run"

    @contextmanager
    def spend(self) -> Iterator[None]:
        """Count the time of a block."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._spent += time.monotonic() - began


def ask_ghost(moved: Moved, become: Callable[[Ghost, Moved], None], seconds: float) -> Answer | None:
    """Ask a ghost, and return its answer; return None in the ghost, after `become`."""
    try:
        answer = ask(max(1, min(MOST_SECONDS, math.ceil(seconds))))
    except OSError as error:
        return Answer(error=f"no process could be started ({error.strerror})")
    if isinstance(answer, Ghost):
        become(answer, moved)
        return None
    return answer


def measure(segment: Segment, probes: Sequence[Probe], become: Callable[[Ghost, Moved], None], budget: Budget) -> bool:
    """Send all ghosts of a segment; false in a ghost, which must go on at once."""
    with budget.spend():
        return _measure(segment, probes, become, budget.seconds_left())


def _measure(segment: Segment, probes: Sequence[Probe], become: Callable[[Ghost, Moved], None], seconds: float) -> bool:
    began = time.monotonic()
    until = began + seconds
    narrow = ask_ghost(Moved({}, wide=False), become, seconds)
    if narrow is None:
        return False
    segment.narrow = narrow
    if narrow.error:
        segment.why = f"the step could not be run again in a copy of the process: {narrow.error}"
        return True
    took = time.monotonic() - began
    if took * _LEAST_GHOSTS > seconds:
        segment.why = f"a copy of the step takes {took:.2g} s, and the check may take {max(seconds, 0):.2g} s"
        return True
    wide = ask_ghost(Moved({}, wide=True, roots=len(narrow.roots)), become, until - time.monotonic())
    if wide is None:
        return False
    is_wide = not wide.error and same_roots(wide.roots, narrow.roots, half=narrow.half)
    if narrow.half and not is_wide:
        segment.why = "the step computes in half precision, and could not be run with the same loss in float64"
        return True
    for probe in probes:
        measured = Measured(probe, kept=state_of(probe.leaves))
        segment.measured.append(measured)
        for base, precision, width in _tries(wide, narrow, is_wide=is_wide):
            if time.monotonic() > until:
                measured.error = f"the time for the check, {seconds:.2g} seconds for this step, was used up"
                break
            measured.precision, measured.h = precision, width * probe.scale
            measured.is_unsure = precision == "float32" and not wide.error
            if not _probe(measured, base, become, until):
                return False
            measured.base = base
            if not measured.error and not _is_noisy(measured) and not _is_unmoved(measured):
                break
    return True


def same_roots(some: Sequence[float], others: Sequence[float], *, half: bool) -> bool:
    """Two runs of a step had the same roots, up to rounding of the narrower one."""
    most = _SAME_ROOT_HALF if half else _SAME_ROOT
    return len(some) == len(others) and all(
        math.isclose(first, other, rel_tol=most, abs_tol=most * 0.1) for first, other in zip(some, others, strict=True)
    )


def _tries(wide: Answer, narrow: Answer, *, is_wide: bool) -> list[tuple[Answer, Precision, float]]:
    """With what a probe is moved, one after the other until the quotients agree: base, precision, h over the scale."""
    bases: list[tuple[Answer, Precision]] = [(wide, "float64")] if is_wide else []
    if not narrow.half:  # it rounds away a change that float32 bears
        bases.append((narrow, "float32"))
    return [(base, precision, width) for base, precision in bases for width in WIDTHS[precision]]


def _probe(measured: Measured, base: Answer, become: Callable[[Ghost, Moved], None], until: float) -> bool:
    measured.error, measured.held = "", None
    answers: list[Answer] = []
    for width in (measured.h, -measured.h, 3 * measured.h, -3 * measured.h):
        answer = _measure_moved_leaves(measured, width, base, become, until, held=False)
        if answer is None:
            return False
        if answer.error or len(answer.roots) != len(base.roots):
            measured.error = answer.error or "it went another way where the tensor was moved"
            return True
        answers.append(answer)
    measured.fine, measured.coarse = (answers[0], answers[1]), (answers[2], answers[3])
    measured.changed = tuple(sorted({number for answer in answers for number in answer.changed}))
    if not measured.changed:
        return True
    above, below = (
        _measure_moved_leaves(measured, width, base, become, until, held=True) for width in (measured.h, -measured.h)
    )
    if above is None or below is None:
        return False
    if not any(answer.error or answer.unheld for answer in (above, below)):
        measured.held = (above, below)
    return True


def _measure_moved_leaves(
    measured: Measured,
    width: float,
    base: Answer,
    become: Callable[[Ghost, Moved], None],
    until: float,
    *,
    held: bool,
) -> Answer | None:
    by = {id(leaf): along * width for leaf, along in zip(measured.probe.leaves, measured.probe.along, strict=True)}
    moved = Moved(
        by,
        wide=measured.precision == "float64",
        held=base.cuts if held else (),
        values=base.cuts,
        roots=len(base.roots),
    )
    return ask_ghost(moved, become, max(1.0, until - time.monotonic()))


def _is_noisy(measured: Measured) -> bool:
    """In float64 the two quotients agree to 2e-5, or something in the step computes in float32, or has a kink here."""
    if measured.precision != "float64" or measured.fine is None or measured.coarse is None:
        return False
    fine, coarse = quotient(measured.fine, measured.h), quotient(measured.coarse, 3 * measured.h)
    scale = sum(map(abs, measured.fine[0].roots)) / measured.probe.scale
    return not abs(fine - coarse) <= max(2e-5 * abs(fine), 2e-7 * scale)


def _is_unmoved(measured: Measured) -> bool:
    """In float64, where arguments of functions are moved, no root changes: a use inside of `vmap` is not seen."""
    if measured.precision != "float64" or measured.base is None or measured.fine is None or measured.coarse is None:
        return False
    return all(answer.roots == measured.base.roots for answer in (*measured.fine, *measured.coarse))


def quotient(pair: tuple[Answer, Answer], h: float, only: Sequence[bool] | None = None) -> float:
    """(L+ - L-) / 2h.

    Args:
        only: Which of the roots count; None: all.
    """
    forwards, backwards = pair
    counted = [True] * len(forwards.roots) if only is None else only
    apart = zip(forwards.roots, backwards.roots, counted, strict=False)
    return math.fsum(plus - minus for plus, minus, counts in apart if counts) / (2 * h)
