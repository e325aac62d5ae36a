"""When two derivatives are the same: the tolerance, from the arithmetic, and the verdict.

With L the sum of the roots, h the change along a direction v of length 1, u the unit of rounding (float32 6.0e-8,
float64 1.1e-16), and s the scale of the leaf, from which h is taken (h = 1e-5 s in float64, 3e-3 s in float32):

    noise         L+ + L- - 2 L0 is c h^2 for a smooth loss, 1e-10 of L in float64: what is left of it beyond that is
                  rounding that the program itself does, or a kink; twice its share of the quotient is allowed
    rounding      a root is known to about 16 u |L| (Higham, Accuracy and Stability of Numerical Algorithms, 4.2: sums
                  in pairs), so the quotient (L+ - L-) / 2h to 16 u |L| / h
    curvature     central differences are off by c h^2; with h and 3h the two differ by 8 c h^2, so their difference is
                  8 times the error of the finer one; where it is noise, 4 times it bounds the error in 19 cases of 20
    the other     the program's own gradient is rounded as the program computes: 3e-4 of it and of the direction's
    side          share in it, 1e-5 of its length (float32); 3e-2 and 2e-2 with half precision or autocast (bfloat16
                  has 2e-3 for a unit, and ten such steps lie behind a first layer's gradient); and it is
                  lost below 2e-6 |L| / s, which is where sums that cancel leave rounding (1.6e-6 was seen in a
                  right gradient of 0)

A difference is reported only if it is larger than all of these; equality only if they come to less than a tenth of
either side. Kinks of max and relu make the quotients of h and 3h differ: then h is made a hundred times smaller, which
float64 bears. `numeric` is not told where h and 3h differ by more than a fifth: a kink, a jump, or noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

UNIT: Final = {"float64": 1.1e-16, "float32": 6.0e-8}
Precision = Literal["float64", "float32"]
"""In which ghosts compute."""

WIDTHS: Final[dict[Precision, tuple[float, ...]]] = {"float64": (1e-5, 1e-7), "float32": (3e-3,)}
"""h over the scale of the leaf, the narrower one where a kink lies within the wider; the second change is three times
as wide."""

_KINKS: Final = 5e-3
"""Of the quotient in float32, whose changes are wide enough to cross a few kinks of max and relu that cancel out."""

_LOOSE: Final = 0.1
_ROUNDED_ROOT: Final = 16
_ROUGH: Final = 0.2
_SAME_FACTOR: Final = 0.01
_LEAST_PAIRS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """Both sides of a comparison, along one direction.

    Attributes:
        fine, coarse: The quotients with h and with 3h. h: the change. scale: of the leaf. loss: |L|.
        bend: |L+ + L- - 2 L0|, with h.
        given: The program's own; 0.0 where there is none. length: of its whole gradient.
        precision: In which the ghosts computed. half: the program computes in half precision somewhere.
    """

    fine: float
    coarse: float
    h: float
    scale: float
    loss: float
    given: float
    length: float
    precision: Precision
    bend: float = 0.0
    half: bool = False

    @property
    def floor(self) -> float:
        """Below it a derivative cannot be told from rounding, in units of loss for each unit of the leaf."""
        rounding = _ROUNDED_ROOT * UNIT[self.precision] * self.loss / self.h
        own = (1e-3 if self.half else 2e-6) * self.loss / self.scale
        return max(rounding, own)

    @property
    def tolerance(self) -> float:
        """Difference up to which both sides are equal; see the top of this file."""
        relative, share = (3e-2, 2e-2) if self.half else (3e-4, 1e-5)
        relative = max(relative, _KINKS) if self.precision == "float32" else relative
        return max(self.floor, relative * self.largest, share * self.length, self.apart)

    @property
    def apart(self) -> float:
        """By how much the numeric side may be off, from the quotients themselves."""
        return (4 * abs(self.fine - self.coarse) + self.bend / self.h) * (2 if self.precision == "float32" else 1)

    @property
    def largest(self) -> float:
        """The larger of both sides, without its sign."""
        return max(abs(self.fine), abs(self.given))

    @property
    def is_loose(self) -> bool:
        """Both sides are there, and the quotients are good to no more than a tenth."""
        return self.apart > _LOOSE * self.largest and self.largest > 2 * self.floor

    @property
    def is_rough(self) -> bool:
        """The two quotients say different things, or one says nothing."""
        if not (math.isfinite(self.fine) and math.isfinite(self.coarse)):
            return True
        apart = abs(self.fine - self.coarse)
        return apart > _ROUGH * max(abs(self.fine), abs(self.coarse)) and apart > 2 * self.floor

    def equals(self, value: float) -> bool:
        """Return whether the numeric derivative is `value`."""
        return math.isfinite(value) and abs(self.fine - value) <= self.tolerance


def common_factor(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Find the factor by which all of what was used differs from the derivatives; None if there is none, or it is 1.

    Args:
        pairs: Of each leaf the derivative and what was used, both away from 0.
    """
    factors = [used / numeric for numeric, used in pairs if numeric]
    if len(factors) < _LEAST_PAIRS or len(factors) != len(pairs):
        return None
    middle = sorted(factors)[len(factors) // 2]
    if abs(middle - 1) <= _SAME_FACTOR or any(abs(factor - middle) > _SAME_FACTOR * abs(middle) for factor in factors):
        return None
    return middle
