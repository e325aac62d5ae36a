"""Statements that hold in every run which trains as it should. Rules 95x."""

from __future__ import annotations

from typing import Final

from backprobe.rules.framework.rule import RuleModule
from backprobe.rules.invariants import (
    coverage_broken,
    dependence_broken,
    finite_broken,
    integrity_broken,
    leaf_broken,
    ledger_broken,
    mode_broken,
    retention_broken,
)

RULES: Final[tuple[RuleModule, ...]] = (
    retention_broken,
    ledger_broken,
    coverage_broken,
    dependence_broken,
    integrity_broken,
    finite_broken,
    mode_broken,
    leaf_broken,
)
