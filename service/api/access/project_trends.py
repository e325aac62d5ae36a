"""What became of a project day by day: runs, findings, groups, and the rules that were shown most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.api.access.projects import load_project
from service.api.admin.operation import DaysQuery
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.responses.trends import TrendsTold
from service.web.body import query
from service.web.reply import json_reply
from store.findings import daily_counts

if TYPE_CHECKING:
    from flask import Response

    from store.findings.daily_counts import RuleTrend, TrendDay

blueprint = Operations("project_trends", __name__, tag="Operation")


@blueprint.get("/v1/projects/<project>/trends")
@query(DaysQuery)
@answers({200: Answer(text="The days and the rules.", model=TrendsTold)}, problems=("too-much-asked",))
def get_project_trends(project: str, query: DaysQuery) -> Response:
    """Count a project's runs, findings, groups and rules day by day: at most 92 days, those without runs too."""
    found = load_project(project)
    first, last = query.days()
    with context().database.read() as transaction:
        trends = daily_counts.load_trends(transaction, found.number, first=first, last=last)
    dates = [day.day for day in trends.days]
    told = {
        "project": found.id,
        "name": found.name,
        "days": [_day_to_json(day) for day in trends.days],
        "rules": [_rule_to_json(rule, dates) for rule in trends.rules],
    }
    return json_reply(told, headers={"Cache-Control": "no-store"})


def _day_to_json(day: TrendDay) -> dict[str, Any]:
    groups = {"new": day.new, "fixed": day.fixed, "regressed": day.regressed}
    return {"day": day.day, "runs": day.runs, "findings": day.findings, "groups": groups}


def _rule_to_json(rule: RuleTrend, dates: list[str]) -> dict[str, Any]:
    days = [{"day": day, "runs": rule.days.get(day, 0)} for day in dates]
    return {"rule": rule.rule, "level": rule.level, "shown": rule.shown, "days": days}
