"""What the rules say about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from apiflask import APIBlueprint
from pydantic import Field

from service.api.asked import Confidence, FindingLevel, Flag, Page, Split, Whole
from service.api.body import query
from service.api.reply import after_of, cache_headers, not_modified, page_reply
from service.api.run_json import run_of
from service.api.told import FindingList
from service.context import context
from service.errors import Problem
from service.openapi import Answer, answers
from store import findings

if TYPE_CHECKING:
    from flask import Response

blueprint = APIBlueprint("findings", __name__, tag="Findings")

_ANY_OF = "Any of these, joined by commas."


class FindingsQuery(Page):
    """Which findings."""

    level: Annotated[list[FindingLevel], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    rule: (
        Annotated[
            list[Annotated[str, Field(pattern="^[A-Za-z0-9-]{1,64}$")]], Split, Field(min_length=1, max_length=50)
        ]
        | None
    ) = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    confidence: Annotated[list[Confidence], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = None
    suppressed: Flag | None = Field(default=None, description="Only those that are, or are not.")
    gone: Flag = Field(default=False, description="Those that newer rules no longer make; else those that they do.")


@blueprint.get("/v1/runs/<run>/findings")
@query(FindingsQuery)
@answers(
    {
        200: Answer(text="A page of findings.", model=FindingList, headers=("Link", "ETag")),
        304: Answer(text="Not changed since."),
    },
    problems=("not-judged-yet",),
    headers=("If-None-Match",),
)
def list_findings(run: str, query: FindingsQuery) -> Response:
    """The findings of a run, worst first, then in order of the source."""
    with context().database.read() as transaction:
        row = run_of(transaction, run)
        listing = f"{row.id} findings"
        after = after_of(listing, query)
        if not row.ended and row.findings.ruleset is None:
            raise Problem("not-judged-yet", f"Run {row.id} is {row.status}.", headers={"Retry-After": "1"})
        if same := not_modified(row):
            return same
        page = findings.page(
            transaction,
            row,
            level=query.level or (),
            rule=query.rule or (),
            confidence=query.confidence or (),
            line=query.line,
            suppressed=query.suppressed,
            gone=query.gone,
            after=after[0] if after else None,
            limit=query.limit,
        )
    following = None if page.next is None else [page.next]
    return page_reply(listing, query, [found.json() for found in page.items], following, cache_headers(row))
