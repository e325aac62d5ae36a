"""The loss and its meaning (8xx)."""

from __future__ import annotations

from typing import Final

from backprobe.rules.rule import RuleModule
from backprobe.rules.training import (
    bce_on_logits,
    bootstrap_target_tracked,
    constant_loss_term,
    double_sigmoid,
    double_softmax,
    kl_div_without_log,
    loss_shape_broadcast,
    nll_without_log,
    single_class_softmax,
    softmax_over_batch,
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
)
