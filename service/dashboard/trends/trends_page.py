"""The pages `/projects` and `/projects/PROJECT`: projects, and of one its runs, findings, groups and rules by day."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal
from urllib.parse import urlencode

from flask import render_template
from pydantic import BeforeValidator

from backprobe.severity import LEVELS
from service.api.access.projects import projects_page
from service.auth.caller import caller
from service.context import context
from service.dashboard.inbox.spark import Spark, spark_of
from service.dashboard.pages import blueprint
from service.problems.errors import Problem
from service.web.body import Strict, query
from service.web.parameters import Page
from service.web.reply import next_address
from store.access import projects
from store.findings import daily_counts
from store.runs.states import STATUSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.access.projects import Project
    from store.findings.daily_counts import ProjectTrends, TrendDay

_LISTING: Final = "page projects of trends"

WINDOWS: Final = ("7", "30", "90")
_BAR_WIDTHS: Final = {7: 36, 30: 8, 90: 3}
"""Pixels of a day's bar by length of the window: each drawing fits a phone."""

_CHANGES: Final = {
    "new": "seen for the first time",
    "fixed": "set fixed, and not back",
    "regressed": "back after a fix",
}


class TrendsQuery(Strict):
    """How many days, today included."""

    days: Annotated[Literal[7, 30, 90], BeforeValidator(lambda typed: int(typed) if typed in WINDOWS else typed)] = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One count by day.

    Attributes:
        word: What is counted. about: More of it, or nothing. total: The sum of the days.
        address: The list of what was counted; None: no list has the same groups.
    """

    word: str
    about: str
    total: int
    spark: Spark
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleLine:
    """How often runs showed a rule by day; `address`: its groups."""

    rule: str
    level: str
    shown: int
    spark: Spark
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DayLine:
    """One day in numbers; `address`: its runs."""

    day: TrendDay
    total: int
    address: str


@blueprint.get("/projects")
@query(Page)
def project_list(query: Page) -> str:
    """List the projects, the oldest first."""
    page = projects_page(_LISTING, query)
    more = next_address(_LISTING, query, None if page.next is None else [page.next])
    return render_template("projects.html", projects=page.items, more=more, later=query.cursor is not None)


@blueprint.get("/projects/<project>")
@query(TrendsQuery)
def project_trends(project: str, query: TrendsQuery) -> str:
    """Show what became of one project, by its id or its name."""
    last = datetime.datetime.now(datetime.UTC).date()
    with context().database.read() as transaction:
        found = projects.find(transaction, project[:200], tenant_id=caller().tenant_id)
        if found is None or caller().project not in {None, found.id}:
            raise Problem("not-found", f"There is no project {project[:40]}.")
        first = last - datetime.timedelta(days=query.days - 1)
        trends = daily_counts.load_trends(transaction, found.number, first=first, last=last)
    return render_template(
        "project.html",
        project=found,
        length=query.days,
        windows=WINDOWS,
        lines=_show_lines(found, trends),
        rules=_show_rules(found, trends),
        days=[_show_day(found, day) for day in reversed(trends.days)],
        statuses=[status for status in STATUSES if any(day.runs[status] for day in trends.days)],
    )


def _show_lines(found: Project, trends: ProjectTrends) -> dict[str, list[Line]]:
    """Return the counts of the page by heading; those of runs and findings have the list that they were counted from.

    The inbox has no filter for the days on which groups were fixed or first seen.
    """
    window = _window_of(trends.days)
    runs = {status: {day.day: day.runs[status] for day in trends.days} for status in STATUSES}
    every = {day.day: sum(day.runs.values()) for day in trends.days}
    levels = {level: {day.day: day.findings[level] for day in trends.days} for level in LEVELS}
    changes = {word: {day.day: getattr(day, word) for day in trends.days} for word in _CHANGES}
    shown = [("all", every), *((status, counts) for status, counts in runs.items() if any(counts.values()))]
    return {
        "Runs by outcome": [
            _line(word, counts, "run", _runs_address(found, window, {} if word == "all" else {"status": word}))
            for word, counts in shown
        ],
        "Findings by level": [
            _line(level, counts, "finding", _runs_address(found, window, {"level": level}))
            for level, counts in levels.items()
        ],
        "Groups of findings": [_line(word, counts, "group", None, _CHANGES[word]) for word, counts in changes.items()],
    }


def _line(word: str, counts: Mapping[str, int], noun: str, address: str | None, about: str = "") -> Line:
    spark = spark_of(list(counts), counts, noun=noun, width=_BAR_WIDTHS[len(counts)])
    return Line(word=word, about=about, total=sum(counts.values()), spark=spark, address=address)


def _show_rules(found: Project, trends: ProjectTrends) -> list[RuleLine]:
    dates = [day.day for day in trends.days]
    return [
        RuleLine(
            rule=rule.rule,
            level=rule.level,
            shown=rule.shown,
            spark=spark_of(dates, rule.days, noun="finding", width=_BAR_WIDTHS[len(dates)]),
            address=f"/findings?{urlencode({'project': found.id, 'state': 'all', 'rule': rule.rule})}",
        )
        for rule in trends.rules
    ]


def _show_day(found: Project, day: TrendDay) -> DayLine:
    return DayLine(day=day, total=sum(day.runs.values()), address=_runs_address(found, _window_of([day]), {}))


def _window_of(days: Sequence[TrendDay]) -> dict[str, str]:
    """Return the filters of the list of runs that let these days pass; both bounds are exclusive."""
    before = datetime.date.fromisoformat(days[0].day) - datetime.timedelta(days=1)
    after = datetime.date.fromisoformat(days[-1].day) + datetime.timedelta(days=1)
    return {"created.gt": f"{before}T23:59:59.999Z", "created.lt": f"{after}T00:00:00.000Z"}


def _runs_address(found: Project, window: Mapping[str, str], more: Mapping[str, str]) -> str:
    return f"/runs?{urlencode({'project': found.id, **more, **window})}"
