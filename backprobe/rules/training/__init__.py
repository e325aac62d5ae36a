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
    kl_arguments_swapped,
    kl_div_without_log,
    loss_shape_broadcast,
    micro_batch_means_unequal,
    nll_without_log,
    padding_counted_in_mean,
    single_class_softmax,
    softmax_over_batch,
    softmax_over_wrong_axis,
    targets_all_ignored,
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
    softmax_over_wrong_axis,
    micro_batch_means_unequal,
    causal_mask_flipped,
    padding_counted_in_mean,
    kl_arguments_swapped,
    targets_all_ignored,
)
