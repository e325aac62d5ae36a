"""Retention; backward calls, their roots, inputs and flags (3xx)."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.graph import (
    complex_root,
    frozen_before_root,
    grad_of_untracked_input,
    grad_of_unused_input,
    grad_output_mismatch,
    gradient_doubled,
    graph_built_once,
    graph_carried_across_steps,
    graph_grows_each_step,
    graph_retained_accumulator,
    graph_retained_in_container,
    missing_create_graph,
    mixed_second_derivatives,
    needless_create_graph,
    needless_retain_graph,
    nonscalar_root,
    out_of_memory,
    parameter_gradient_cycle,
    root_without_history,
    second_backward_freed_graph,
    stale_forward,
    unfit_root_gradient,
)

RULES: Final[tuple[RuleModule, ...]] = (
    second_backward_freed_graph,
    graph_carried_across_steps,
    graph_built_once,
    graph_retained_accumulator,
    graph_retained_in_container,
    graph_grows_each_step,
    needless_retain_graph,
    needless_create_graph,
    parameter_gradient_cycle,
    stale_forward,
    nonscalar_root,
    complex_root,
    root_without_history,
    grad_of_unused_input,
    grad_of_untracked_input,
    missing_create_graph,
    grad_output_mismatch,
    gradient_doubled,
    unfit_root_gradient,
    frozen_before_root,
    mixed_second_derivatives,
    out_of_memory,
)
