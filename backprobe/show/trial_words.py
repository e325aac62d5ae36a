"""What came of a fix that was tried, in two words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backprobe.rules.framework.finding import Trial


def trial_words(trial: Trial) -> str:
    """Write `tried: confirmed`, `tried: changes values` or `not tried`."""
    words = trial.verdict.replace("-", " ")
    return words if trial.verdict == "not-tried" else f"tried: {words}"
