"""The rule set, in order of code: the families in order, and in each its rules."""

from __future__ import annotations

from typing import Final

from backprobe.rules import gradient, graph, inplace, invariants, leaf, mode, numeric, training, truth, wiring
from backprobe.rules.framework.rule import RuleModule

RULES: Final[tuple[RuleModule, ...]] = (
    *leaf.RULES,
    *gradient.RULES,
    *graph.RULES,
    *inplace.RULES,
    *numeric.RULES,
    *mode.RULES,
    *wiring.RULES,
    *training.RULES,
    *truth.RULES,
    *invariants.RULES,
)
