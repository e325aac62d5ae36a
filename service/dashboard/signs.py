"""The sign of a tensor: shape first, colour second, word always."""

from __future__ import annotations

import math
from dataclasses import dataclass


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
    """The sign of a tensor in its last state; None anywhere means that it was not captured."""
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
