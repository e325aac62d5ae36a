"""Optimizer and scheduler, clipping, AMP, DDP (7xx)."""

from __future__ import annotations

from typing import Final

from backprobe.rules.rule import RuleModule
from backprobe.rules.wiring import (
    clip_after_step,
    clip_before_unscale,
    clip_without_gradient,
    copy_is_alias,
    ddp_forward_bypassed,
    ddp_step_unsynchronised,
    ddp_unused_parameters,
    learning_rate_zero,
    missing_optimizer_step,
    module_built_each_forward,
    module_not_registered,
    one_module_repeated,
    optimizer_empty,
    optimizer_given_non_leaf,
    optimizer_rebuilt_each_step,
    parameters_not_in_optimizer,
    parameters_replaced_after_optimizer,
    scaled_gradient_stepped,
    scaler_update_missing,
    scheduler_before_optimizer,
    scheduler_never_stepped,
    state_kept_by_reference,
    step_without_gradient,
    tensor_not_registered,
    unscale_twice,
    unscaled_loss_with_scaler,
)

RULES: Final[tuple[RuleModule, ...]] = (
    parameters_not_in_optimizer,
    parameters_replaced_after_optimizer,
    module_not_registered,
    optimizer_given_non_leaf,
    optimizer_empty,
    missing_optimizer_step,
    step_without_gradient,
    optimizer_rebuilt_each_step,
    module_built_each_forward,
    scheduler_before_optimizer,
    scheduler_never_stepped,
    learning_rate_zero,
    tensor_not_registered,
    clip_after_step,
    clip_before_unscale,
    clip_without_gradient,
    scaled_gradient_stepped,
    unscaled_loss_with_scaler,
    unscale_twice,
    scaler_update_missing,
    ddp_forward_bypassed,
    ddp_unused_parameters,
    ddp_step_unsynchronised,
    copy_is_alias,
    state_kept_by_reference,
    one_module_repeated,
)
