"""The rule set, in order of code."""

from __future__ import annotations

from typing import Final

from backprobe.rules.gradient import (
    frozen_with_stale_gradient,
    gradient_cleared_before_step,
    missing_zero_grad,
    other_loss_in_gradient,
    zero_grad_inside_accumulation,
)
from backprobe.rules.graph import missing_create_graph, second_backward_freed_graph
from backprobe.rules.inplace import inplace_on_saved
from backprobe.rules.leaf import (
    freeze_without_effect,
    input_without_requires_grad,
    leaf_lost_by_rebinding,
    non_leaf_grad_read,
    requires_grad_after_forward,
    requires_grad_forced,
    retain_grad_after_backward,
)
from backprobe.rules.rule import RuleModule
from backprobe.rules.wiring import missing_optimizer_step, parameters_not_in_optimizer, step_without_gradient

RULES: Final[tuple[RuleModule, ...]] = (
    non_leaf_grad_read,
    leaf_lost_by_rebinding,
    retain_grad_after_backward,
    input_without_requires_grad,
    requires_grad_forced,
    requires_grad_after_forward,
    freeze_without_effect,
    missing_zero_grad,
    zero_grad_inside_accumulation,
    gradient_cleared_before_step,
    other_loss_in_gradient,
    frozen_with_stale_gradient,
    second_backward_freed_graph,
    missing_create_graph,
    inplace_on_saved,
    parameters_not_in_optimizer,
    missing_optimizer_step,
    step_without_gradient,
)
