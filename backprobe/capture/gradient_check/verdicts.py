"""One leaf's verdict: the derivative against what arrived and what the step uses, and what explains a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backprobe.capture.gradient_check.comparison import Sides
from backprobe.capture.gradient_check.explanations import Use, of_use
from backprobe.capture.gradient_check.ghosts import FunctionCheck
from backprobe.capture.gradient_check.library_functions import BOUNDED
from backprobe.capture.gradient_check.measuring import quotient
from backprobe.capture.gradient_check.segment import Measured, Segment
from backprobe.capture.instrument.torch_taps import Observers
from backprobe.record import Hook, OptimizerEvent
from backprobe.record.rows.gradient_checks import Cause, Verdict

_SLIGHT = 5
"""Tolerances by which float32 must differ where float64 could not be had: wrong gradients of the corpora that only it
tells differ by 9 to 121, right ones of a network with thousands of kinks by up to 3."""

_ON_PURPOSE = ("identity", "flat", "surrogate")
_HOOKS = ("tensor", "post-accumulate", "module-backward", "module-backward-pre", "node", "global-module")


@dataclass(slots=True)
class JudgedGradient:
    """A verdict in the making; the fields are those of `GradientCheck`.

    Attributes:
        is_zero: Both sides are 0. place: file and line of the cause. site: its statement, where that is known.
    """

    verdict: Verdict = "not-checked"
    numeric: float | None = None
    coarse: float | None = None
    frozen: float | None = None
    arrived: float | None = None
    used: float | None = None
    tolerance: float | None = None
    factor: float | None = None
    explained_by: str | None = None
    cause: Cause | None = None
    place: tuple[str, int] | None = None
    function: str | None = None
    site: int | None = None
    why: str | None = None
    is_zero: bool = False


def judge_gradient(
    segment: Segment,
    measured: Measured,
    counts: Sequence[bool],
    stale: float | None,
    events: Sequence[OptimizerEvent],
    *,
    is_kept: bool,
    others: bool,
) -> JudgedGradient:
    """Judge one probe.

    Args:
        counts: Which backward calls were for it. stale: what the step before used. is_kept: that was still there as the
            first backward call after that step began. events: of this step.
        others: other leaves of the optimizer have a gradient as it steps.
    """
    assert measured.fine is not None and measured.coarse is not None and measured.base is not None  # noqa: S101, PT018 - for the type checker: set where there is no error
    is_anew = measured.cleared and not segment.repeats()
    if is_anew:  # another loss was walked back first, and what it brought was cleared: it is not for this step
        counts = [counted and at >= measured.since for at, counted in enumerate(counts)]
    fine, coarse = quotient(measured.fine, measured.h, counts), quotient(measured.coarse, 3 * measured.h, counts)
    base = [root for root, counted in zip(measured.base.roots, counts, strict=True) if counted]
    bend = abs(sum(sum(side.roots) for side in measured.fine) - 2 * sum(measured.base.roots))
    used = measured.probe.dot()
    arrived = measured.last if is_anew else measured.arrived

    def sides(numeric: float, given: float, length: float) -> Sides:
        return Sides(
            fine=numeric, coarse=coarse + numeric - fine, h=measured.h, scale=measured.probe.scale, given=given,
            length=length, loss=max(sum(map(abs, base)), 1e-30), precision=measured.precision, bend=bend,
            half=segment.half,
        )  # fmt: skip

    given = arrived or 0.0
    whole = sides(fine, given, measured.largest)
    told = JudgedGradient(numeric=fine, coarse=coarse, arrived=arrived, used=used, tolerance=whole.tolerance)
    if whole.is_rough:
        told.verdict = "rough"
        return told
    told.is_zero = abs(fine) <= whole.floor and abs(given) <= whole.floor
    held = None if measured.held is None else quotient(measured.held, measured.h, counts)
    told.frozen = held
    if whole.equals(given):
        thrown = measured.last if measured.cleared and segment.repeats() else None
        calls = list(zip(measured.added, segment.scaled, segment.events, strict=False))
        use = Use(
            used=used, arrived=given, before=measured.before, stale=stale, kept=is_kept, calls=calls, events=events,
            scale=segment.scale, others=others,
        )  # fmt: skip
        _use(told, sides(given, used or 0.0, measured.largest), use, thrown)
        if whole.is_loose and told.verdict == "agrees":
            told.verdict = "rough"
        return told
    told.verdict = "cut" if abs(given) <= whole.floor else "differs"
    is_older = stale is not None and used is not None and abs(used - stale) <= whole.floor
    if told.verdict == "cut" and abs(used or 0.0) > whole.floor and not is_older:
        told.explained_by = "the program wrote `.grad` itself"
        return told
    if held is not None and abs(held - given) <= whole.tolerance:
        told.explained_by = _cuts(measured)
        if told.verdict == "cut":
            told.cause = "cut"
            value = measured.base.cuts[measured.changed[-1]]
            told.place = (value.filename, value.line) if value.filename else None
        return told
    _arrival(told, segment, measured)
    slight = measured.is_unsure and abs(fine - given) < _SLIGHT * whole.tolerance
    if slight and told.verdict == "differs" and not (told.explained_by or told.cause):
        told.verdict = "rough"
    if is_anew and told.verdict == "differs" and not (told.explained_by or told.cause):
        return JudgedGradient(
            why="gradients of an earlier backward call were cleared; the loss may depend on their size"
        )
    return told


def _use(told: JudgedGradient, used: Sides, use: Use, last: float | None) -> None:
    """Judge whether the step uses what arrived, which is the derivative.

    Args:
        last: What calls brought after the last clear, where one line makes them all and clears between them.
    """
    if told.used is None and told.is_zero:
        told.verdict = "agrees"
        return
    if told.used is not None and used.equals(told.used):
        told.verdict = "agrees"
        return

    def same(first: float, other: float) -> bool:
        return abs(first - other) <= max(1e-3 * max(abs(first), abs(other)), used.floor * 1e-3)

    told.verdict = "differs" if told.used else "cut"
    if last is not None and told.used is not None and same(told.used, last):
        told.cause = "cleared"
        return
    why = of_use(use, same)
    told.explained_by, told.cause = why.text, why.cause


def _arrival(told: JudgedGradient, segment: Segment, measured: Measured) -> None:
    """Find what stands between the derivative and what arrived, which differ."""
    functions = () if segment.narrow is None else segment.narrow.functions
    wrong = _first(functions, "differs")
    if segment.own_gradient:
        told.cause = "own-gradient"
    elif wrong is not None:
        told.cause, told.function, told.place = "backward", wrong.name, (wrong.filename, wrong.line)
    elif (own := next((function for function in functions if function.verdict in _ON_PURPOSE), None)) is not None:
        told.explained_by = f"the backward of {own.name} is another one than its forward's derivative, on purpose"
    elif hooks := _hooks(segment, measured):
        again = next(
            (hook for at, hook in enumerate(hooks) if any(_is_again(hook, other) for other in hooks[:at])), None
        )
        told.explained_by = f"a hook that is called for gradients: {(again or hooks[0]).callable}"
        told.site = (again or hooks[0]).callable_site
        if again is not None:
            told.cause, told.site = "hook-repeated", again.site


def _first(functions: Sequence[FunctionCheck], verdict: str) -> FunctionCheck | None:
    return next((function for function in functions if function.verdict == verdict), None)


def _hooks(segment: Segment, measured: Measured) -> list[Hook]:
    """Hooks that may have changed the gradient: not those on another of the leaves."""
    observers = Observers.now
    if observers is None:
        return []
    mine = {id(leaf) for leaf in measured.probe.leaves}
    others = {number for leaf, number in segment.numbers.items() if leaf not in mine}
    rows = observers.hooks.changing()
    return [row for row in rows if row.kind in _HOOKS and row.tensor not in others]


def _is_again(hook: Hook, other: Hook) -> bool:
    """One line put the same callable on the same tensor or module twice, and it is called twice."""
    first, two = (
        (row.kind, row.callable, row.callable_site, row.site, row.tensor, row.module) for row in (hook, other)
    )
    return first == two and hook.site is not None and (hook.tensor, hook.module) != (None, None)


def _cuts(measured: Measured) -> str:
    """Say which cuts a leaf changes."""
    cuts = (
        []
        if measured.base is None
        else [measured.base.cuts[at] for at in measured.changed if at < len(measured.base.cuts)]
    )
    if cuts and all(value.function == BOUNDED for value in cuts):
        return (
            "torch bounds the gradient of `binary_cross_entropy` where an output is 0 or 1 but for rounding; "
            "`binary_cross_entropy_with_logits` has it whole"
        )
    named = dict.fromkeys(
        f"`{value.function}` in line {value.line}" if value.line else f"`{value.function}`" for value in cuts
    )
    return f"the program cuts the graph: {', '.join(list(named)[:4])}"
