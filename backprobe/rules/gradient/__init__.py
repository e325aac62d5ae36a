"""Gradients that are missing, added up, cleared, zero, or changed on their way. Rules 2xx."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.gradient import (
    accumulation_window_dropped,
    closure_without_clear,
    custom_backward_constant,
    custom_function_gradient_count,
    custom_function_gradient_shape,
    custom_function_incomplete,
    custom_function_missing_gradient,
    dead_activation,
    frozen_with_stale_gradient,
    grad_assigned_mismatch,
    grad_read_when_none,
    gradient_cleared_before_step,
    gradient_never_arrives,
    hook_changes_size,
    hook_modifies_gradient,
    hook_registered_every_step,
    loss_saturated,
    missing_zero_grad,
    other_loss_in_gradient,
    parameter_never_used,
    result_wrapped_in_parameter,
    second_derivative_zero,
    units_stay_equal,
    zero_grad_inside_accumulation,
    zero_gradient_op,
    zero_product,
)

RULES: Final[tuple[RuleModule, ...]] = (
    parameter_never_used,
    gradient_never_arrives,
    grad_read_when_none,
    missing_zero_grad,
    zero_grad_inside_accumulation,
    gradient_cleared_before_step,
    other_loss_in_gradient,
    frozen_with_stale_gradient,
    zero_gradient_op,
    dead_activation,
    zero_product,
    second_derivative_zero,
    units_stay_equal,
    grad_assigned_mismatch,
    result_wrapped_in_parameter,
    custom_function_gradient_count,
    custom_function_gradient_shape,
    custom_function_missing_gradient,
    custom_function_incomplete,
    custom_backward_constant,
    hook_modifies_gradient,
    hook_changes_size,
    hook_registered_every_step,
    closure_without_clear,
    accumulation_window_dropped,
    loss_saturated,
)
