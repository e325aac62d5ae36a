"""The loss and its meaning (8xx)."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.training import (
    bce_on_logits,
    bootstrap_target_tracked,
    causal_mask_flipped,
    constant_loss_term,
    double_sigmoid,
    double_softmax,
    focal_weight_of_mean,
    kl_arguments_swapped,
    kl_div_without_log,
    larger_loss_dropped,
    loss_overwritten_in_loop,
    loss_shape_broadcast,
    method_not_called,
    micro_batch_means_unequal,
    micro_batches_not_divided,
    nll_without_log,
    padding_counted_in_mean,
    penalty_norm_over_wrong_axes,
    ratio_of_one_policy,
    result_dropped,
    single_class_softmax,
    softmax_over_batch,
    softmax_over_wrong_axis,
    targets_all_ignored,
    targets_not_shifted,
    tracked_advantage,
)

RULES: Final[tuple[RuleModule, ...]] = (
    double_softmax,
    double_sigmoid,
    nll_without_log,
    kl_div_without_log,
    bce_on_logits,
    single_class_softmax,
    softmax_over_batch,
    loss_shape_broadcast,
    bootstrap_target_tracked,
    constant_loss_term,
    tracked_advantage,
    result_dropped,
    method_not_called,
    micro_batches_not_divided,
    targets_not_shifted,
    ratio_of_one_policy,
    larger_loss_dropped,
    focal_weight_of_mean,
    penalty_norm_over_wrong_axes,
    loss_overwritten_in_loop,
    softmax_over_wrong_axis,
    micro_batch_means_unequal,
    causal_mask_flipped,
    padding_counted_in_mean,
    kl_arguments_swapped,
    targets_all_ignored,
)
