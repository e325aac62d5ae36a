"""The rule set, in order of code."""

from __future__ import annotations

from typing import Final

from backprobe.rules.graph import missing_create_graph, second_backward_freed_graph
from backprobe.rules.inplace import inplace_on_saved
from backprobe.rules.leaf import non_leaf_grad_read
from backprobe.rules.rule import RuleModule
from backprobe.rules.wiring import parameters_not_in_optimizer

RULES: Final[tuple[RuleModule, ...]] = (
    non_leaf_grad_read,
    second_backward_freed_graph,
    missing_create_graph,
    inplace_on_saved,
    parameters_not_in_optimizer,
)
