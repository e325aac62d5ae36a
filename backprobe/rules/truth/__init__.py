"""Is the gradient that a step uses the derivative of its loss? Rules 91x: they judge what a check of gradients saw."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.truth import custom_function_wrong_gradient, gradient_not_derivative

RULES: Final[tuple[RuleModule, ...]] = (
    custom_function_wrong_gradient,
    gradient_not_derivative,
)
