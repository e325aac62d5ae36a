"""Where tracking ends; no_grad, inference, train and eval, checkpoint. Rules 6xx."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.mode import (
    batch_norm_of_one,
    checkpoint_input_without_grad,
    checkpoint_other_random_numbers,
    dropout_always_on,
    evaluating_in_train_mode,
    frozen_batch_norm_moves,
    grad_mode_left_off,
    graph_break_detach,
    graph_break_item,
    graph_break_no_grad,
    graph_break_non_differentiable,
    graph_break_numpy,
    graph_break_rebuild,
    graph_break_sample,
    inference_tensor_in_graph,
    numpy_on_tracked,
    state_detached_each_step,
    training_in_eval_mode,
)

RULES: Final[tuple[RuleModule, ...]] = (
    graph_break_detach,
    graph_break_no_grad,
    graph_break_item,
    graph_break_numpy,
    graph_break_rebuild,
    graph_break_non_differentiable,
    graph_break_sample,
    grad_mode_left_off,
    inference_tensor_in_graph,
    numpy_on_tracked,
    training_in_eval_mode,
    evaluating_in_train_mode,
    dropout_always_on,
    frozen_batch_norm_moves,
    checkpoint_input_without_grad,
    checkpoint_other_random_numbers,
    batch_norm_of_one,
    state_detached_each_step,
)
