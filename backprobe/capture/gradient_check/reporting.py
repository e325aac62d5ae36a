"""From what was measured to rows: one for each leaf, or group of leaves, of the optimizer that steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
import torch

from backprobe.capture.gradient_check.comparison import common_factor
from backprobe.capture.gradient_check.directions import MOST_PROBES, Probe, leaves_of
from backprobe.capture.gradient_check.ghosts import Value, place_of
from backprobe.capture.gradient_check.measuring import same_roots
from backprobe.capture.gradient_check.segment import Measured, Segment, state_of
from backprobe.capture.gradient_check.verdicts import JudgedGradient, judge_gradient
from backprobe.capture.output.text import cut, name
from backprobe.capture.torch_access.torch_internals import without_torch_function
from backprobe.record.rows.gradient_checks import CutOff, GradientCheck

if TYPE_CHECKING:
    from backprobe.capture.recorder import CaptureSession

_MOST_IDS: Final = 4096
_MOST_CUTS: Final = 16


class Reports:
    """Writes the rows of checked steps.

    Attributes:
        suspects: Ids of leaves of groups that differed: they are moved one by one next time.
        unseen: Of those that may have been used before the first use that was seen: next time any use is one.
    """

    def __init__(self, recorder: CaptureSession) -> None:
        self._recorder = recorder
        self._next = 0
        self.suspects: set[int] = set()
        self.unseen: set[int] = set()
        self._used: dict[int, torch.Tensor] = {}
        self._kept: dict[int, bool] = {}
        self._unsure: list[torch.Tensor] = []
        self._others = False

    def write(self, segment: Segment, optimizer: Any, why: str | None) -> None:
        """Compare, and write."""
        why = why or _why_not(segment)
        mine = [measured for measured in segment.measured if measured.probe.optimizer == id(optimizer)]
        if why is not None or not mine:
            if mine or segment.why is not None:
                self._refuse(optimizer, why or "no leaf of it can be moved")
            return
        for leaf in (leaf for measured in segment.measured for leaf in measured.probe.leaves):
            if (number := self._number(leaf)) is not None:
                segment.numbers[id(leaf)] = number
        self._others = any(leaf.grad is not None and bool(leaf.grad.any()) for leaf in leaves_of(optimizer))
        found = [(measured, self._judge(segment, measured)) for measured in mine]
        self._common(found)
        for measured, result in found:
            if result.verdict in ("cut", "differs", "factor") and len(measured.probe.leaves) > 1:
                self.suspects |= {id(leaf) for leaf in measured.probe.leaves}
            self._add(self._row(segment, measured, result, optimizer))

    def _judge(self, segment: Segment, measured: Measured) -> JudgedGradient:
        if measured.error:
            return JudgedGradient(why=measured.error)
        if any(id(leaf) in segment.stale for leaf in measured.probe.leaves):
            return JudgedGradient(why="part of the graph that it is in was built before the step began")
        if state_of(measured.probe.leaves) != measured.kept:
            return JudgedGradient(why="it was changed between its first use and the step")
        counts = [only is None or all(id(leaf) in only for leaf in measured.probe.leaves) for only in segment.only]
        mixed = [only is not None and any(id(leaf) in only for leaf in measured.probe.leaves) for only in segment.only]
        if any(some and not all_of for some, all_of in zip(mixed, counts, strict=True)):
            return JudgedGradient(why="a backward call was for some of the tensors of this group only")
        stale = _dot_of(self._used, measured.probe)
        events = [event for event in self._recorder.optimizers.recent if event.n >= segment.event]
        kept = all(self._kept.get(id(leaf), False) for leaf in measured.probe.leaves)
        told = judge_gradient(segment, measured, counts, stale, events, is_kept=kept, others=self._others)
        ids = {id(leaf) for leaf in measured.probe.leaves}
        if told.is_zero and ids & segment.earlier:
            self.unseen |= ids
            return JudgedGradient(why="it may have been used before: under no_grad, or before another optimizer's step")
        if told.verdict == "agrees" and ids & segment.read:
            self.unseen |= ids
            return JudgedGradient(why="its value was taken out of it before, by `.data` or `detach()`")
        if told.verdict == "agrees" and told.explained_by is None:
            told.explained_by = _sum_of_calls(segment, measured)
        return told

    def _common(self, found: Sequence[tuple[Measured, JudgedGradient]]) -> None:
        """Turn `differs` of all leaves into `factor`, where it is one factor."""
        told = [result for _, result in found if result.verdict not in ("rough", "not-checked")]
        away = [verdict for verdict in told if not (verdict.verdict == "agrees" and verdict.is_zero)]
        if not away or any(
            verdict.verdict != "differs" or verdict.explained_by or not verdict.numeric for verdict in away
        ):
            return
        factor = common_factor([(verdict.numeric or 0.0, verdict.used or 0.0) for verdict in away])
        for verdict in away if factor is not None else ():
            verdict.verdict, verdict.factor = "factor", factor

    def _row(self, segment: Segment, measured: Measured, result: JudgedGradient, optimizer: Any) -> GradientCheck:
        recorder = self._recorder
        numbers = [self._number(leaf) for leaf in measured.probe.leaves]
        known = tuple(number for number in numbers if number is not None)[:_MOST_IDS]
        cuts = [
            self._cut(measured.base.cuts[at])
            for at in measured.changed
            if measured.base and at < len(measured.base.cuts)
        ]
        site = result.site if result.place is None else recorder.sites.at_line(*result.place)
        return GradientCheck(
            n=self._next, tensor=numbers[0], tensors=known if len(numbers) > 1 else (),
            step=self._steps_before(optimizer), optimizer=recorder.optimizers.number_of(optimizer),
            moment=recorder.moments.now(), verdict=result.verdict, numeric=_finite(result.numeric),
            numeric_wide=_finite(result.coarse), frozen=_finite(result.frozen), arrived=_finite(result.arrived),
            used=_finite(result.used), tolerance=_finite(result.tolerance), factor=_finite(result.factor),
            precision="" if result.why else measured.precision,
            explained_by=None if result.explained_by is None else cut(result.explained_by),
            cause=result.cause, site=site, function=None if result.function is None else name(result.function),
            cuts=tuple(dict.fromkeys(cuts))[:_MOST_CUTS], why=None if result.why is None else cut(result.why),
        )  # fmt: skip

    def _cut(self, value: Value) -> CutOff:
        site = self._recorder.sites.at_line(value.filename, value.line) if value.filename else None
        return CutOff(function=name(value.function), site=site)

    def _refuse(self, optimizer: Any, why: str) -> None:
        for leaf in leaves_of(optimizer)[:MOST_PROBES] or [None]:
            row = GradientCheck(
                n=self._next, tensor=None if leaf is None else self._number(leaf),
                optimizer=self._recorder.optimizers.number_of(optimizer), moment=self._recorder.moments.now(),
                step=self._steps_before(optimizer), why=cut(why),
            )  # fmt: skip
            self._add(row)

    def _steps_before(self, optimizer: Any) -> int:
        """Count the steps that an optimizer finished before the one that begins, which is counted already."""
        return max(0, self._recorder.optimizers.steps_of(optimizer) - 1)

    def _number(self, leaf: torch.Tensor) -> int | None:
        known = self._recorder.tensors.find(leaf)
        return None if known is None else known.number

    def _add(self, row: GradientCheck) -> None:
        self._recorder.writer.add("gradient_checks", msgspec.structs.replace(row, n=self._next))
        self._next += 1

    def note_use(self, optimizer: Any) -> None:
        """Note the gradients that a step is about to use."""
        self._used.update(
            {id(leaf): leaf.grad.detach().clone() for leaf in leaves_of(optimizer) if leaf.grad is not None}
        )
        self._unsure += leaves_of(optimizer)

    def note_kept(self) -> None:
        """Note at the next backward call whether what the step before used is unchanged."""
        for leaf in self._unsure:
            used, now = self._used.get(id(leaf)), leaf.grad
            self._kept[id(leaf)] = used is not None and now is not None and _is_same(used, now)
        self._unsure.clear()


def note_call(
    recorder: CaptureSession, segment: Segment, outputs: Any, gradients: Any, inputs: Any, frame: Any
) -> None:
    """Note that a backward call of the parent begins in this frame."""
    optimizers = recorder.optimizers
    events = reversed(optimizers.recent)
    scale = next((event.scale_after or event.scale_before for event in events if event.kind.startswith("scaler")), None)
    place = place_of(frame, recorder.sites.is_user_file)
    with torch.no_grad(), without_torch_function():
        segment.enter(outputs, gradients, inputs, scale, optimizers.told, place)


def _sum_of_calls(segment: Segment, measured: Measured) -> str | None:
    """Which lines' backward calls a gradient adds up; None for those of one line."""
    calls = zip(segment.lines[measured.since :], measured.added[measured.since :], strict=False)
    lines = sorted({line for (filename, line), added in calls if added and filename})
    if len(lines) < 2:
        return None
    return f"it is the sum of the backward calls in lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


def _why_not(segment: Segment) -> str | None:
    if not segment.roots:
        return "no backward call came between the first use of its tensors and the step"
    narrow = segment.narrow
    if narrow is None:
        return "the step could not be run again"
    if segment.stepped and len(narrow.roots) < len(segment.roots):
        return "another optimizer stepped between the first use of its tensors and its step"
    if len(narrow.roots) != len(segment.roots):
        return "the step went another way when it was run again in a copy of the process"
    if not same_roots(narrow.roots, segment.roots, half=segment.half):
        return "the step gave another loss when it was run again in a copy of the process"
    return None


def _dot_of(kept: dict[int, torch.Tensor], probe: Probe) -> float | None:
    total: float | None = None
    for leaf, direction in zip(probe.leaves, probe.along, strict=True):
        gradient = kept.get(id(leaf))
        if gradient is not None and gradient.shape == direction.shape:
            total = (total or 0.0) + float((gradient.to_dense().double() * direction).sum())
    return total


def _is_same(first: torch.Tensor, other: torch.Tensor) -> bool:
    if first.shape != other.shape or first.layout is not other.layout or first.layout is not torch.strided:
        return False
    return bool(first.any()) and torch.equal(first, other.detach())


def _finite(value: float | None) -> float | None:
    return value if value is None or math.isfinite(value) else None
