"""How judging is told from outside that its time is up: by an exception that no fence around a rule takes for a bug.

Rules read a stranger's record. Whoever judges one has a clock (a worker has `workers.judging_budget`), and raises these in
the thread that judges; `judge` leaves out the rule that was at work, or all that are left.
"""

from __future__ import annotations

from typing import Final


class RuleTooSlow(BaseException):
    """The rule at work has had its time with this record."""


class JudgingTooLong(RuleTooSlow):
    """Judging has had its time with this record: no rule is to begin any more."""


WHY_SLOW: Final = "it did not come to its end with this record in the time that one rule has"
WHY_NO_TIME: Final = "the time for judging this record was used up"
"""What is said of a rule that was ended, and of those that were not begun."""
