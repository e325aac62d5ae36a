"""Record -> findings. One file per rule; the file is its manual. Torch is not needed."""

from backprobe.rules.finding import Edit, Finding, Fix, Location, Occurrences, Region, Related, finding_json
from backprobe.rules.judge import Judgement, JudgeOptions, NotRun, judge
from backprobe.rules.registry import RULES
from backprobe.rules.rule import Rule
from backprobe.rules.why_none import WhyNone, why_none

__all__ = [
    "RULES", "Edit", "Finding", "Fix", "Judgement", "JudgeOptions", "Location", "NotRun", "Occurrences", "Region",
    "Related", "Rule", "WhyNone", "finding_json", "judge", "why_none",
]
