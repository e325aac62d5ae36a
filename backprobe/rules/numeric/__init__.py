"""NaN, infinity, divergence, vanishing and exploding gradients, saturation, half precision. Rules 5xx."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.numeric import (
    divergence,
    exploding_gradient,
    half_gradient_underflow,
    nonfinite_forward,
    nonfinite_gradient,
    nonfinite_input,
    nonfinite_masked_branch,
    saturated_activation,
    softmax_row_masked,
    update_below_precision,
    vanishing_gradient,
)

RULES: Final[tuple[RuleModule, ...]] = (
    nonfinite_forward,
    nonfinite_gradient,
    nonfinite_masked_branch,
    softmax_row_masked,
    nonfinite_input,
    divergence,
    vanishing_gradient,
    exploding_gradient,
    saturated_activation,
    half_gradient_underflow,
    update_below_precision,
)
