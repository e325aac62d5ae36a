"""Lines over steps as paths of SVG, 1000 by 100 units that are stretched to any size, and what they say in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from service.dashboard.words import number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH: Final = 1000
HEIGHT: Final = 100
_MARGIN: Final = 4
"""Units above the greatest value and below the least, so that a line at either end is drawn whole."""

COLOURS: Final = 6
"""Tensors of one run in a chart; a line of the other run is dashed, one of the same tensor has the same colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One quantity over steps.

    Attributes:
        label: Its name, made visible. colour: its number, from 0. is_other: of the run that is drawn over it.
        steps, values: Of equal length; None: not measured.
        unit: step or moment: what `steps` count.
        kind: exact: a value for each step. peaks: each is the greatest from its step to the next one of `steps`.
            samples: some of the steps.
    """

    label: str
    colour: int
    is_other: bool
    steps: Sequence[int]
    values: Sequence[float | None]
    kind: Literal["exact", "peaks", "samples"] = "exact"
    unit: Literal["step", "moment"] = "step"

    @property
    def finite(self) -> list[tuple[int, float]]:
        """Steps with a finite value."""
        return [
            (step, value)
            for step, value in zip(self.steps, self.values, strict=True)
            if value is not None and math.isfinite(value)
        ]

    @property
    def nonfinite(self) -> list[int]:
        """Steps at which the value is NaN or infinite."""
        return [
            step
            for step, value in zip(self.steps, self.values, strict=True)
            if value is not None and not math.isfinite(value)
        ]

    @property
    def words(self) -> str:
        """What the line says: its ends, its range, and where it is NaN or infinite."""
        found, broken = self.finite, self.nonfinite
        values = [value for _, value in found]
        said: list[str] = []
        if found and self.kind == "peaks":
            said.append(f"at most {number(max(values))}")
        elif found:
            (first, start), (last, end) = found[0], found[-1]
            said.append(f"{number(start)} at {self.unit} {first:,}")
            if last != first:
                said[-1] += f", {number(end)} at {self.unit} {last:,}"
            if last != first and self.kind == "exact":
                said.append(f"from {number(min(values))} to {number(max(values))}")
        if broken:
            said.append(f"NaN or Inf first {self._place_words(broken[0])}")
        return "; ".join(said) or "not measured"

    def _place_words(self, step: int) -> str:
        """Say where a value of the line lies: at a step, or within those that it is the greatest of."""
        at = self.steps.index(step)
        if self.kind != "peaks":
            return f"at {self.unit} {step:,}"
        if at + 1 == len(self.steps):
            return f"from {self.unit} {step:,} on"
        return f"in {self.unit}s {step:,} to {self.steps[at + 1] - 1:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnLine:
    """A line as drawn: `path` of its finite values; `broken`: x of each value that is NaN or infinite."""

    line: Line
    path: str
    broken: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Lines on one pair of axes. least, most: the values at the lower and upper edge; first, last: steps."""

    title: str
    lines: tuple[DrawnLine, ...]
    least: float
    most: float
    first: int
    last: int


def draw_chart(title: str, lines: Sequence[Line]) -> Chart | None:
    """Draw lines on common axes; None: none of them has a value."""
    lines = [line for line in lines if line.finite or line.nonfinite]
    if not lines:
        return None
    steps = [step for line in lines for step, value in zip(line.steps, line.values, strict=True) if value is not None]
    values = [value for line in lines for _, value in line.finite]
    first, last = min(steps), max(steps)
    least, most = (min(values), max(values)) if values else (0.0, 0.0)

    def x(step: int) -> str:
        return f"{WIDTH * (step - first) / (last - first) if last > first else WIDTH / 2:.6g}"

    # The difference of two floats may be infinite. The difference of their halves is not, but may be 0.
    part = 1.0 if math.isfinite(most - least) else 0.5

    def y(value: float) -> str:
        height = (value * part - least * part) / (most * part - least * part) if most > least else 0.5
        return f"{HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * height:.4g}"

    drawn = [
        DrawnLine(line=line, path=_path(line, x, y), broken=tuple(x(step) for step in line.nonfinite)) for line in lines
    ]
    return Chart(title=title, lines=tuple(drawn), least=least, most=most, first=first, last=last)


def _path(line: Line, x: Callable[[int], str], y: Callable[[float], str]) -> str:
    """Return the path of the finite values; a value that is not finite or not measured breaks the line.

    Each piece ends with a line of no length, so that a single value is drawn as a dot.
    """
    pieces: list[str] = []
    is_open = False
    for step, value in zip(line.steps, line.values, strict=True):
        if value is None or not math.isfinite(value):
            is_open = False
            continue
        pieces.append(f"{'L' if is_open else 'M'}{x(step)} {y(value)}{'' if is_open else 'h0'}")
        is_open = True
    return "".join(pieces)
