"""What became of a project day by day: its runs, their findings, its groups, and the rules that runs showed."""

from __future__ import annotations

import datetime
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Final, get_args

import sqlalchemy as sa

from backprobe.severity import LEVELS
from store.database.session import Transaction
from store.findings.group_rows import State
from store.findings.group_state import HAS_RETURNED
from store.runs.states import STATUSES
from store.tables import finding_group, finding_group_day, run

_STATES: Final = get_args(State)
"""All of them: they stand before the time in the index of a project's groups."""


def _sum_of(count: Any) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(count), 0)


_r: Final = run.c
_COUNT: Final[sa.ColumnElement[int]] = sa.func.count()
_OF_STATUS: Final[list[Any]] = [
    sa.select(
        sa.literal_column(f"'{status}'", sa.Text()).label("status"),
        _COUNT.label("runs"),
        _sum_of(_r.errors).label("error"),
        _sum_of(_r.warnings).label("warning"),
        _sum_of(_r.notes).label("note"),
    ).where(
        _r.project_id == sa.bindparam("its_project"),
        _r.status == sa.literal_column(f"'{status}'"),
        _r.origin != sa.literal_column("'trial'"),
        _r.created_at >= sa.bindparam("its_first"),
        _r.created_at <= sa.bindparam("its_last"),
    )
    for status in STATUSES
]
_RUNS_OF_A_DAY: Final = sa.union_all(*_OF_STATUS)
"""A part for each status: SQLite adds along the index `run_of_day`, and sorts nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendDay:
    """One day (UTC) of a project.

    Attributes:
        day: `2026-11-20`. runs: Created on it, by status, trials left out. findings: Of these runs, by level, as the
            list of runs counts them.
        new: Groups that a run showed on that day for the first time. fixed: Groups that are fixed, set so on that day.
        regressed: Groups that are open because a run of that day showed them after they were fixed.
    """

    day: str
    runs: dict[str, int]
    findings: dict[str, int]
    new: int
    fixed: int
    regressed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleTrend:
    """How often runs showed the groups of a rule.

    Attributes:
        level: The worst of its groups. shown: The sum of `days`. days: By ISO date; a day without is left out. A run
            that shows two groups counts twice.
    """

    rule: str
    level: str
    shown: int
    days: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTrends:
    """Every day from the first to the last; rules, the one shown most first."""

    days: tuple[TrendDay, ...]
    rules: tuple[RuleTrend, ...]


def load_trends(
    transaction: Transaction, project_id: int, *, first: datetime.date, last: datetime.date
) -> ProjectTrends:
    """Count what became of a project from the first day to the last one, both in UTC.

    Args:
        transaction: To read by.
        project_id: Number of the project.
        first: The first day.
        last: The last day.
    """
    dates = [(first + datetime.timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
    if not dates:
        return ProjectTrends(days=(), rules=())
    runs, findings = _count_runs(transaction, project_id, dates)
    groups = _count_groups(transaction, project_id, dates)
    days = tuple(
        TrendDay(
            day=day,
            runs={status: runs[day].get(status, 0) for status in STATUSES},
            findings={level: findings[day].get(level, 0) for level in LEVELS},
            **{name: groups[name].get(day, 0) for name in ("new", "fixed", "regressed")},
        )
        for day in dates
    )
    return ProjectTrends(days=days, rules=_count_rules(transaction, project_id, dates))


_Counts = defaultdict[str, dict[str, int]]


def _count_runs(transaction: Transaction, project_id: int, dates: list[str]) -> tuple[_Counts, _Counts]:
    """Count runs by day and status, and their findings by day and level; from the index `run_of_day` alone."""
    runs: _Counts = defaultdict(dict)
    findings: _Counts = defaultdict(lambda: dict.fromkeys(LEVELS, 0))
    for day in dates:
        which = {"its_project": project_id, "its_first": _first_of(day), "its_last": _last_of(day)}
        for row in transaction.execute(_RUNS_OF_A_DAY, which):
            runs[day][row.status] = row.runs
            for level in LEVELS:
                findings[day][level] += int(getattr(row, level))
    return runs, findings


def _count_groups(transaction: Transaction, project_id: int, dates: list[str]) -> _Counts:
    """Count groups by what became of them and by day, from the state that they have now."""
    g = finding_group.c
    mine = (g.project_id == project_id, g.state.in_(_STATES))
    seen = g.last_seen_at >= _first_of(dates[0])
    conditions = {
        "new": (g.first_seen_at, (seen,)),
        "fixed": (g.state_at, (g.state == "fixed",)),
        "regressed": (g.state_at, (seen, HAS_RETURNED)),
    }
    found: _Counts = defaultdict(dict)
    for name, (time, which) in conditions.items():
        day = _day_of(transaction, time).label("day")
        query = sa.select(day, sa.func.count().label("groups")).where(
            *mine, *which, time >= _first_of(dates[0]), time <= _last_of(dates[-1])
        )
        found[name] = {row.day: row.groups for row in transaction.execute(query.group_by(day))}
    return found


def _count_rules(transaction: Transaction, project_id: int, dates: list[str]) -> tuple[RuleTrend, ...]:
    d, g = finding_group_day.c, finding_group.c
    shown = sa.select(d.day, d.rule, sa.func.sum(d.runs).label("runs"))
    shown = shown.where(d.project_id == project_id, d.day >= dates[0], d.day <= dates[-1])
    days: _Counts = defaultdict(dict)
    for row in transaction.execute(shown.group_by(d.day, d.rule).order_by(d.day, d.rule)):
        days[row.rule][row.day] = int(row.runs)
    worst = sa.func.min(sa.case(*((g.level == level, place) for place, level in enumerate(LEVELS))))
    seen = (g.project_id == project_id, g.state.in_(_STATES), g.last_seen_at >= _first_of(dates[0]))
    rows = transaction.execute(sa.select(g.rule, worst.label("place")).where(*seen).group_by(g.rule))
    levels: dict[str, int] = {row.rule: row.place for row in rows}
    rules = [
        RuleTrend(rule=rule, level=LEVELS[levels.get(rule, -1)], shown=sum(counts.values()), days=counts)
        for rule, counts in days.items()
    ]
    return tuple(sorted(rules, key=lambda rule: (-rule.shown, rule.rule)))


def _first_of(day: str) -> str:
    return f"{day}T00:00:00.000Z"


def _last_of(day: str) -> str:
    return f"{day}T23:59:59.999Z"


def _day_of(transaction: Transaction, time: Any) -> sa.ColumnElement[str]:
    """Return the day of a time in UTC; its words are literals, so that GROUP BY has the same expression."""
    if transaction.dialect.name == "postgresql":
        utc = sa.func.timezone(sa.literal_column("'UTC'"), time)
        return sa.func.to_char(utc, sa.literal_column("'YYYY-MM-DD'"), type_=sa.Text())
    return sa.func.substr(sa.cast(time, sa.Text()), sa.literal_column("1"), sa.literal_column("10"), type_=sa.Text())
