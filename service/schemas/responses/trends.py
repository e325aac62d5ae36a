"""Responses about what became of a project day by day."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

from backprobe.severity import Level
from service.schemas.responses.groups import GroupDay
from store.runs.model import Status


@dataclass(frozen=True, kw_only=True)
class GroupChanges:
    """Groups of findings by what became of them on a day.

    Attributes:
        new: A run of that day showed them for the first time; `GET /v1/finding-groups?first_seen.gt=` lists them.
        fixed: They are fixed, and were set so on that day.
        regressed: They are open, because a run of that day showed them after they were fixed.
    """

    new: int
    fixed: int
    regressed: int


@dataclass(frozen=True, kw_only=True)
class TrendDayTold:
    """One day (UTC).

    Attributes:
        runs: Created on that day, by status; trials are left out, as `GET /v1/runs` leaves them out.
        findings: Of these runs, by level: the sum of what the list of runs says of each.
        groups: Counted from the state that each group has now: one that was fixed and came back is regressed only.
    """

    day: datetime.date
    runs: dict[Status, int]
    findings: dict[Level, int]
    groups: GroupChanges


@dataclass(frozen=True, kw_only=True)
class RuleTrendTold:
    """How often runs showed the groups of a rule.

    Attributes:
        level: The worst of its groups.
        shown: The sum of `days`; a run that shows two groups of the rule counts twice.
        days: Every day, as `GET /v1/finding-groups?include=days` counts it, over all groups of the rule.
    """

    rule: str
    level: Level
    shown: int
    days: list[GroupDay]


@dataclass(frozen=True, kw_only=True)
class TrendsTold:
    """What became of a project: every day, the first one first; rules, the one that was shown most first."""

    project: str
    name: str
    days: list[TrendDayTold]
    rules: list[RuleTrendTold]
