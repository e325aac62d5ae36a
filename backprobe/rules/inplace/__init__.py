"""In-place changes and versions (4xx)."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.inplace import (
    detach_in_place_on_view,
    inplace_on_hooked_output,
    inplace_on_leaf,
    inplace_on_leaf_view,
    inplace_on_multi_view,
    inplace_on_no_grad_view,
    inplace_on_overlap,
    inplace_on_saved,
    out_argument_on_tracked,
    saved_changed_unseen,
    shared_input_modified,
    stale_alias_read,
    step_before_backward,
)

RULES: Final[tuple[RuleModule, ...]] = (
    inplace_on_saved,
    step_before_backward,
    inplace_on_leaf,
    inplace_on_leaf_view,
    inplace_on_multi_view,
    inplace_on_no_grad_view,
    inplace_on_overlap,
    out_argument_on_tracked,
    detach_in_place_on_view,
    inplace_on_hooked_output,
    saved_changed_unseen,
    stale_alias_read,
    shared_input_modified,
)
