"""The rule set, in order of code."""

from __future__ import annotations

from typing import Final

from backprobe.rules.rule import RuleModule

RULES: Final[tuple[RuleModule, ...]] = ()
