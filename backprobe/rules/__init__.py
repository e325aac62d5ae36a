"""Record -> findings. One file per rule; the file is its manual. Torch is not needed."""

from typing import TYPE_CHECKING, Any

from backprobe.rules.analysis.gradients.why_none import WhyNone, why_none
from backprobe.rules.analysis.invariants.checks import Check
from backprobe.rules.framework.deadline import WHY_NO_TIME, WHY_SLOW, JudgingTooLong, RuleTooSlow
from backprobe.rules.framework.finding import (
    Edit,
    Finding,
    Fix,
    Identity,
    Location,
    Occurrences,
    Region,
    Related,
    finding_json,
    identity_of,
)
from backprobe.rules.framework.judge import Judgement, NotRun, judge, ruleset, unjudged
from backprobe.rules.framework.manual import Manual, UnknownRule, manual
from backprobe.rules.framework.options import BadOption, JudgeOptions, kept_options, options_from
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.rules.registry import RULES

__all__ = [
    "RULES",
    "WHY_NO_TIME",
    "WHY_SLOW",
    "BadOption",
    "Check",
    "Edit",
    "Finding",
    "Fix",
    "Identity",
    "JudgeOptions",
    "Judgement",
    "JudgingTooLong",
    "Location",
    "Manual",
    "NotRun",
    "Occurrences",
    "Region",
    "Related",
    "Rule",
    "RuleTooSlow",
    "UnknownRule",
    "WhyNone",
    "finding_json",
    "identity_of",
    "judge",
    "kept_options",
    "manual",
    "options_from",
    "ruleset",
    "unjudged",
    "why_none",
]


def __getattr__(name: str) -> Any:
    """`RULES`: loading 148 files takes 0.2 s of CPU, which whoever judges nothing is spared."""
    if name != "RULES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from backprobe.rules.registry import RULES

    return RULES
