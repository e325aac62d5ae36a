"""Is this the tensor whose gradient you will get? Rules 1xx."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.leaf import (
    flag_change_on_non_leaf,
    freeze_matches_nothing,
    freeze_undone,
    freeze_without_effect,
    hook_on_untracked_tensor,
    input_without_requires_grad,
    leaf_lost_by_rebinding,
    non_leaf_deepcopied,
    non_leaf_grad_read,
    parameter_lost_on_move,
    requires_grad_after_forward,
    requires_grad_forced,
    requires_grad_on_integer,
    retain_grad_after_backward,
)

RULES: Final[tuple[RuleModule, ...]] = (
    non_leaf_grad_read,
    leaf_lost_by_rebinding,
    retain_grad_after_backward,
    input_without_requires_grad,
    requires_grad_on_integer,
    requires_grad_forced,
    requires_grad_after_forward,
    flag_change_on_non_leaf,
    freeze_without_effect,
    non_leaf_deepcopied,
    parameter_lost_on_move,
    hook_on_untracked_tensor,
    freeze_undone,
    freeze_matches_nothing,
)
