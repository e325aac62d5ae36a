"""What the rules say about a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from backprobe.rules.framework.rule import Confidence, Level
from service.api.findings.finding_formats import RENDERED, render_findings
from service.api.findings.finding_json import finding_of, with_trials
from service.api.records.exports import BATCH, EXPORTS, MEDIA, SCHEMAS, export, vary_headers, wanted_format
from service.api.runs.run_json import run_of
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.findings import FindingList, FindingTold
from service.web.body import Strict, query
from service.web.filters import Rules
from service.web.parameters import Flag, Page, Split, Whole
from service.web.reply import SAME, cache_headers, conditional, json_reply, not_modified, page_reply, read_cursor
from store.findings import findings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flask import Response

    from store.database.session import Database
    from store.findings.findings import FindingRow
    from store.runs.model import RunRow

blueprint = Operations("findings", __name__, tag="Findings")

_ANY_OF = "Any of these, joined by commas."


class FindingsQuery(Page):
    """Which findings."""

    level: Annotated[list[Level], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    rule: Rules | None = Field(default=None, description=f"Names or codes. {_ANY_OF}")
    confidence: Annotated[list[Confidence], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description=_ANY_OF
    )
    line: Annotated[Whole, Field(ge=1, le=2**31 - 1)] | None = None
    suppressed: Flag | None = Field(default=None, description="Only those that are, or are not.")
    format: Literal["json", "ndjson", "csv", "parquet", "sarif", "junit", "github"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )
    include: Annotated[list[Literal["trials"]], Split, Field(min_length=1, max_length=1)] = Field(
        default_factory=list, description="trials: what came of each finding's fixes; in JSON only."
    )
    gone: Flag = Field(default=False, description="Those that newer rules no longer make; else those that they do.")

    def to_store_filters(self) -> dict[str, Any]:
        """Return the filters as the store takes them."""
        return {
            "level": self.level or (),
            "rule": self.rule or (),
            "confidence": self.confidence or (),
            "line": self.line,
            "suppressed": self.suppressed,
            "gone": self.gone,
        }


@blueprint.get("/v1/runs/<run>/findings")
@query(FindingsQuery)
@answers(
    {
        200: Answer(
            text="A page of findings, or all of them in another format.",
            model=FindingList,
            media={MEDIA[name]: {"schema": SCHEMAS[name]} for name in (*EXPORTS, *RENDERED)},
            headers=("Link", "ETag", "Content-Disposition"),
        ),
        304: SAME,
    },
    problems=("not-judged-yet", "not-acceptable", "too-much-asked", "too-many-streams"),
    headers=("If-None-Match", "Accept"),
)
def list_findings(run: str, query: FindingsQuery) -> Response:
    """The findings of a run, worst first, then in order of the source."""
    form = wanted_format(query.format, (*EXPORTS, *RENDERED))
    with context().database.read() as transaction:
        row = run_of(transaction, run)
        listing = f"{row.id} findings"
        after = read_cursor(listing, query)
        if not row.ended and row.findings.ruleset is None:
            raise Problem("not-judged-yet", f"Run {row.id} is {row.status}.", headers={"Retry-After": "1"})
        headers = _headers(row, findings.groups_version(transaction, row))
        if form == "json":
            if not query.include and (same := not_modified(row, headers)):
                return same
            headers = vary_headers(headers, form)
            last = after[0] if after else None
            page = findings.page(transaction, row, **query.to_store_filters(), after=last, limit=query.limit)
            following = None if page.next is None else [page.next]
            told = with_trials(transaction, page.items, wanted=bool(query.include))
            return page_reply(listing, query, told, following, headers)
    headers = vary_headers(headers, form)
    batches = _batches(context().database, row, query, after[0] if after else None)
    if form in RENDERED:
        return render_findings(row, [found.finding for rows in batches for found in rows], form, headers)
    plain = ([found.json() for found in rows] for rows in batches)
    return export(f"{row.id}-findings", form, FindingTold, plain, headers)


def _headers(run: RunRow, groups: int) -> dict[str, str]:
    """ETag of a list of findings: also what people make of one, at any time after the run's end, changes it."""
    told = cache_headers(run)
    return {"ETag": f'{told["ETag"][:-1]}-g{groups}"', "Cache-Control": "no-cache"}


def _batches(
    database: Database, run: RunRow, query: FindingsQuery, after: int | None
) -> Iterator[Sequence[FindingRow]]:
    while True:
        with database.read() as transaction:
            page = findings.page(transaction, run, **query.to_store_filters(), after=after, limit=BATCH)
        yield page.items
        if page.next is None:
            return
        after = page.next


class FindingQuery(Strict):
    """What else to tell of a finding."""

    include: Annotated[list[Literal["trials"]], Split, Field(min_length=1, max_length=1)] = Field(
        default_factory=list, description="trials: what came of its fixes."
    )


@blueprint.get("/v1/findings/<finding>")
@query(FindingQuery)
@answers(
    {200: Answer(text="The finding.", model=FindingTold, headers=("ETag",)), 304: SAME}, headers=("If-None-Match",)
)
def get_finding(finding: str, query: FindingQuery) -> Response:
    """One finding by its id."""
    with context().database.read() as transaction:
        (told,) = with_trials(transaction, [finding_of(transaction, finding)], wanted=bool(query.include))
    return conditional(json_reply(told))
