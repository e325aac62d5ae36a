"""The sign of a tensor: shape first, colour second, word always."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """What the macro `sign` draws, and the words beside it.

    Attributes:
        leaf: Circle; else a square. requires: solid outline; else dotted. None: not captured.
        retains: A corner on the square.
        grad: "filled", "hollow", "half" (all zero), "bad" (NaN or Inf), "" where there can be none.
        words: `leaf`, `not leaf`, ...; grad_words: `grad None`, `|g| 1.732`, ...
    """

    leaf: bool | None
    requires: bool
    retains: bool
    grad: str
    words: str
    grad_words: str


def sign_of(
    *,
    is_leaf: bool | None,
    requires_grad: bool | None,
    retains_grad: bool | None,
    grad: str | None,
    grad_norm: float | None,
) -> Sign:
    """Choose the sign of a tensor in its last state. None anywhere means that it was not captured."""
    if is_leaf is None or requires_grad is None:
        return Sign(leaf=None, requires=False, retains=False, grad="", words="not captured", grad_words="")
    words = "leaf" if is_leaf else "not leaf"
    if not requires_grad:
        words += ", requires no grad"
    if retains_grad and not is_leaf:
        words += ", retains grad"
    filling, said = _gradient(grad, grad_norm, requires_grad=requires_grad)
    return Sign(
        leaf=is_leaf,
        requires=requires_grad,
        retains=bool(retains_grad) and not is_leaf,
        grad=filling,
        words=words,
        grad_words=said,
    )


def _gradient(grad: str | None, norm: float | None, *, requires_grad: bool) -> tuple[str, str]:
    if grad != "present":
        return "hollow", "grad None" if requires_grad else ""
    if norm is None:
        return "filled", "grad present"
    if not math.isfinite(norm):
        return "bad", "grad NaN or Inf"
    if norm == 0:
        return "half", "grad all zero"
    return "filled", f"|g| {norm:.4g}"


def _signs(*rows: tuple[str, bool, bool, bool, str, float | None]) -> tuple[tuple[str, Sign], ...]:
    return tuple(
        (text, sign_of(is_leaf=leaf, requires_grad=requires, retains_grad=retains, grad=grad, grad_norm=norm))
        for text, leaf, requires, retains, grad, norm in rows
    )


LEGEND: Final = _signs(
    ("leaf, has a gradient", True, True, False, "present", 1.0),
    ("leaf, grad None", True, True, False, "none", None),
    ("leaf, grad all zero", True, True, False, "present", 0.0),
    ("leaf, NaN or Inf in grad", True, True, False, "present", float("nan")),
    ("leaf, requires no grad", True, False, False, "none", None),
    ("not a leaf", False, True, False, "not-read", None),
    ("not a leaf, retains grad", False, True, True, "none", None),
    ("the same, has a gradient", False, True, True, "present", 1.0),
)
"""The signs that a page explains, each with its words."""
