"""The rules and their manuals, from the one docstring that also feeds the command line and the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from flask import Response, request
from pydantic import Field

from backprobe.rules import UnknownRule, ruleset
from backprobe.rules.framework.manual import headlines, manual
from backprobe.rules.framework.rule import Confidence, Level
from backprobe.show.formats.manual_text import markdown
from service.api.records.record import NoQuery
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.runs import RuleFull, RuleList
from service.schemas.rule_families import Family, family_of
from service.web.body import query
from service.web.parameters import Page, Split
from service.web.reply import json_reply, page_reply, read_cursor

if TYPE_CHECKING:
    from backprobe.rules import Rule

blueprint = Operations("rules", __name__, tag="Rules")

_ANY_OF = "Any of these, joined by commas."


class RulesQuery(Page):
    """Which rules."""

    family: Annotated[list[Family], Split, Field(min_length=1, max_length=10)] | None = Field(
        default=None, description=_ANY_OF
    )
    level: Annotated[list[Level], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    confidence: Annotated[list[Confidence], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    q: Annotated[str, Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Words of code, name or headline; all of them must be there."
    )


def _headers() -> dict[str, str]:
    return {"ETag": f'"{ruleset()}"', "Cache-Control": "no-cache"}


def _same() -> Response | None:
    """304 if the client has these rules already: their texts change with the ruleset only."""
    if request.if_none_match.contains_weak(ruleset()):
        return Response(status=304, headers=_headers())
    return None


def _short(rule: Rule, headline: str) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "family": family_of(rule.code),
        "headline": headline,
        "level": rule.severity,
        "confidence": rule.confidence,
        "fix": rule.fix,
        "since": rule.since,
        "thresholds": dict(rule.thresholds),
        "url": rule.url,
    }


def _matches_query(told: dict[str, Any], query: RulesQuery) -> bool:
    text = f"{told['code']} {told['name']} {told['headline']}".lower()
    return (
        told["family"] in (query.family or [told["family"]])
        and told["level"] in (query.level or [told["level"]])
        and told["confidence"] in (query.confidence or [told["confidence"]])
        and all(word in text for word in (query.q or "").lower().split())
    )


@blueprint.get("/v1/rules")
@query(RulesQuery)
@answers(
    {
        200: Answer(text="A page of rules, by code.", model=RuleList, headers=("Link", "ETag")),
        304: Answer(text="Not changed since."),
    },
    headers=("If-None-Match",),
)
def list_rules(query: RulesQuery) -> Response:
    """The rules that judge runs, plug-ins included, each with what it finds in one line."""
    after = read_cursor("rules", query)
    if same := _same():
        return same
    shown = sorted((_short(rule, headline) for rule, headline in headlines()), key=lambda told: told["code"])
    rest = [told for told in shown if _matches_query(told, query) and (after is None or told["code"] > after[0])]
    page = rest[: query.limit]
    following = [page[-1]["code"]] if len(rest) > query.limit else None
    return page_reply("rules", query, page, following, _headers())


@blueprint.get("/v1/rules/<name>")
@query(NoQuery)
@answers(
    {200: Answer(text="The rule.", model=RuleFull, headers=("ETag",)), 304: Answer(text="Not changed since.")},
    headers=("If-None-Match",),
)
def get_rule(name: str) -> Response:
    """One rule by its name or code, with its manual as Markdown."""
    try:
        found = manual(name[:100])
    except UnknownRule as error:
        raise Problem("not-found", str(error).replace("`backprobe rules`", "GET /v1/rules")) from None
    if same := _same():
        return same
    rule = found.rule
    told = _short(rule, found.headline) | {
        "needs": list(rule.needs),
        "explains": list(rule.explains),
        "refines": list(rule.refines),
        "manual": markdown(found),
    }
    return json_reply(told, headers=_headers())
