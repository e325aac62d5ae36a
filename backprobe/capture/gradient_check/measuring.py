"""The ghosts of one segment: which are sent, in which order, and what is taken from their answers.

nothing moved, as the program computes     its roots are those of the program, or nothing is claimed; it goes on to the
                                           step, the others end where their last root is known, before it is walked back
nothing moved, in float64                  its roots are the same to float32's rounding, or the rest is float32
each probe moved by h, -h, 3h, -3h         and, where an explicit cut changes with it, by h and -h with cuts held
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Final

from backprobe.capture.gradient_check.comparison import WIDTHS, Precision
from backprobe.capture.gradient_check.directions import Probe
from backprobe.capture.gradient_check.ghosts import Answer, Ghost, ask
from backprobe.capture.gradient_check.perturbed_step import Moved
from backprobe.capture.gradient_check.segment import Measured, Segment, state_of

SECONDS: Final = 60
"""Of all ghosts of a segment together; probes that are not reached are told as not checked."""

MOST_SECONDS: Final = 20
"""Of one ghost."""

_SAME_ROOT: Final = 3e-4
_SAME_ROOT_HALF: Final = 0.05

Send = Callable[[Moved, Probe | None, float], Answer | None]
"""Sends a ghost; its answer, or None in the ghost itself, which goes on in the program."""


def sent(moved: Moved, become: Callable[[Ghost, Moved], None], seconds: float) -> Answer | None:
    """A ghost's answer; None in the ghost, after `become`."""
    try:
        answer = ask(max(1, min(MOST_SECONDS, math.ceil(seconds))))
    except OSError as error:
        return Answer(error=f"no process could be started ({error.strerror})")
    if isinstance(answer, Ghost):
        become(answer, moved)
        return None
    return answer


def measure(segment: Segment, probes: Sequence[Probe], become: Callable[[Ghost, Moved], None]) -> bool:
    """Send all ghosts of a segment; false in a ghost, which must go on at once."""
    until = time.monotonic() + SECONDS
    narrow = sent(Moved({}, wide=False), become, MOST_SECONDS)
    if narrow is None:
        return False
    segment.narrow = narrow
    if narrow.error:
        segment.why = f"the step could not be run again in a copy of the process: {narrow.error}"
        return True
    wide = sent(Moved({}, wide=True, roots=len(narrow.roots)), become, MOST_SECONDS)
    if wide is None:
        return False
    is_wide = not wide.error and same_roots(wide.roots, narrow.roots, half=segment.half)
    for probe in probes:
        one = Measured(probe, kept=state_of(probe.leaves))
        segment.measured.append(one)
        for base, precision, width in _tries(wide, narrow, is_wide=is_wide):
            if time.monotonic() > until:
                one.error = f"the time for it, {SECONDS} seconds a step, was used up"
                break
            one.precision, one.h = precision, width * probe.scale
            one.is_unsure = precision == "float32" and not wide.error
            if not _probe(one, base, become, until):
                return False
            one.base = base
            if not one.error and not _is_noisy(one) and not _is_unmoved(one):
                break
    return True


def same_roots(some: Sequence[float], others: Sequence[float], *, half: bool) -> bool:
    """Two runs of a step had the same roots, up to rounding of the narrower one."""
    most = _SAME_ROOT_HALF if half else _SAME_ROOT
    return len(some) == len(others) and all(
        math.isclose(one, other, rel_tol=most, abs_tol=most * 0.1) for one, other in zip(some, others, strict=True)
    )


def _tries(wide: Answer, narrow: Answer, *, is_wide: bool) -> list[tuple[Answer, Precision, float]]:
    """With what a probe is moved, one after the other until the quotients agree: base, precision, h over the scale."""
    bases: list[tuple[Answer, Precision]] = [(narrow, "float32")]
    if is_wide:
        bases.insert(0, (wide, "float64"))
    return [(base, precision, width) for base, precision in bases for width in WIDTHS[precision]]


def _probe(one: Measured, base: Answer, become: Callable[[Ghost, Moved], None], until: float) -> bool:
    one.error, one.held = "", None
    answers: list[Answer] = []
    for width in (one.h, -one.h, 3 * one.h, -3 * one.h):
        answer = _moved(one, width, base, become, until, held=False)
        if answer is None:
            return False
        if answer.error or len(answer.roots) != len(base.roots):
            one.error = answer.error or "it went another way where the tensor was moved"
            return True
        answers.append(answer)
    one.fine, one.coarse = (answers[0], answers[1]), (answers[2], answers[3])
    one.changed = tuple(sorted({number for answer in answers for number in answer.changed}))
    if not one.changed:
        return True
    above, below = (_moved(one, width, base, become, until, held=True) for width in (one.h, -one.h))
    if above is None or below is None:
        return False
    if not any(answer.error or answer.unheld for answer in (above, below)):
        one.held = (above, below)
    return True


def _moved(
    one: Measured,
    width: float,
    base: Answer,
    become: Callable[[Ghost, Moved], None],
    until: float,
    *,
    held: bool,
) -> Answer | None:
    by = {id(leaf): along * width for leaf, along in zip(one.probe.leaves, one.probe.along, strict=True)}
    moved = Moved(
        by, wide=one.precision == "float64", held=base.cuts if held else (), values=base.cuts, roots=len(base.roots)
    )
    return sent(moved, become, max(1.0, until - time.monotonic()))


def _is_noisy(one: Measured) -> bool:
    """In float64 the two quotients agree to 2e-5, or something in the step computes in float32, or has a kink here."""
    if one.precision != "float64" or one.fine is None or one.coarse is None:
        return False
    fine, coarse = quotient(one.fine, one.h), quotient(one.coarse, 3 * one.h)
    scale = sum(map(abs, one.fine[0].roots)) / one.probe.scale
    return not abs(fine - coarse) <= max(2e-5 * abs(fine), 2e-7 * scale)


def _is_unmoved(one: Measured) -> bool:
    """In float64, where arguments of functions are moved, no root changes: a use inside of `vmap` is not seen."""
    if one.precision != "float64" or one.base is None or one.fine is None or one.coarse is None:
        return False
    return all(answer.roots == one.base.roots for answer in (*one.fine, *one.coarse))


def quotient(pair: tuple[Answer, Answer], h: float, only: Sequence[bool] | None = None) -> float:
    """(L+ - L-) / 2h.

    Args:
        only: Which of the roots count; None: all.
    """
    forwards, backwards = pair
    counted = [True] * len(forwards.roots) if only is None else only
    apart = zip(forwards.roots, backwards.roots, counted, strict=False)
    return math.fsum(plus - minus for plus, minus, counts in apart if counts) / (2 * h)
