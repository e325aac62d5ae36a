"""The findings of an audit: a page of them, or all, as programs and people read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import Response, request
from pydantic import Field

from backprobe.rules.framework.rule import Level
from backprobe.show.formats import junit, sarif
from backprobe.show.formats.program_report import Reported
from service.api.audits.audit_views import item_batches
from service.api.audits.audits import audit_headers, audit_of
from service.api.findings.finding_formats import program_error
from service.api.records.exports import BATCH, MEDIA, SCHEMAS, export, vary_headers, wanted_format
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.responses.findings import FindingList, FindingTold
from service.web.body import query
from service.web.parameters import Flag, Page, Split
from service.web.reply import page_reply, read_cursor
from store.audits import audit_findings
from store.audits import judging as audit_judging
from store.findings import findings
from store.runs import lifecycle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from store.audits.audit_findings import AuditFindings
    from store.audits.audits import Audit
    from store.audits.items import ItemRow
    from store.audits.policy import Rules
    from store.database.session import Database, Transaction
    from store.findings.findings import FindingRow
    from store.runs.model import RunRow

    Place3 = tuple[int, int, int]

blueprint = Operations("audit_findings", __name__, tag="Audits")

_FINDINGS: Final = ("ndjson", "sarif", "junit")


class AuditFindingsQuery(Page):
    """Which findings, and as what."""

    level: Annotated[list[Level], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )
    new: Flag | None = Field(default=None, description="Only those that the baseline has not, or has.")
    format: Literal["json", "ndjson", "sarif", "junit"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )


@blueprint.get("/v1/audits/<audit>/findings")
@query(AuditFindingsQuery)
@answers(
    {
        200: Answer(
            text="A page of findings, or all of them in another format.",
            model=FindingList,
            media={MEDIA[name]: {"schema": SCHEMAS[name]} for name in _FINDINGS},
            headers=("Link", "ETag", "Content-Disposition"),
        )
    },
    problems=("too-much-asked", "not-acceptable", "too-many-streams"),
    headers=("Accept",),
)
def list_audit_findings(audit: str, query: AuditFindingsQuery) -> Response:
    """The findings of an audit's runs, worst first; SARIF and JUnit tell them run by run, with what was not judged.

    A failure or error of JUnit is what fails the audit by its policy: a finding that only warns is a case that passes,
    and one that the baseline has is skipped where only new ones count. SARIF has the `baselineState` of each where
    there is a baseline, and the exception of a program that raised.
    """
    form = wanted_format(query.format, _FINDINGS)
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
        listing = f"{found.id} findings"
        after = read_cursor(listing, query)
        start = None if after is None else (after[0], after[1], after[2])
        headers = vary_headers(audit_headers(found), form)
        if form == "json":
            page = _findings_page(transaction, found, query, start, query.limit)
            return page_reply(listing, query, [row.json() for row in page.items], page.next, headers)
    if form == "ndjson":
        return export(f"{found.id}-findings", form, FindingTold, _findings(found, query, start), headers)
    return _render_findings(found, query, form, headers)


def _render_findings(found: Audit, query: AuditFindingsQuery, form: str, headers: Mapping[str, str]) -> Response:
    with context().database.read() as transaction:
        rules = audit_judging.rules_for(transaction, found)
        known = None if found.baseline_id is None else audit_judging.known_to(transaction, found)
    reported = [
        _build_report(found, item, query, rules, known)
        for rows in item_batches(context().database, found, rules, known or frozenset())
        for item in rows
    ]
    if sum(len(report.findings) for report in reported) > sarif.MOST_RESULTS:
        detail = f"Audit {found.id} has more than {sarif.MOST_RESULTS:,} findings; filter them, or take ndjson."
        raise Problem("too-much-asked", detail)
    text = sarif.render(reported, name=found.name) if form == "sarif" else junit.render(reported)
    ending = {"sarif": "sarif", "junit": "xml"}[form]
    sent = dict(headers) | {"Content-Disposition": f'attachment; filename="{found.id}-findings.{ending}"'}
    charset = "; charset=utf-8" if form == "junit" else ""
    content = text.encode("utf-8", "backslashreplace")
    return Response(content, 200, sent, content_type=MEDIA[form] + charset)


def _findings_page(
    transaction: Transaction, found: Audit, query: AuditFindingsQuery, after: Place3 | None, limit: int
) -> AuditFindings:
    return audit_findings.page(transaction, found, level=query.level or (), new=query.new, after=after, limit=limit)


def _findings(found: Audit, query: AuditFindingsQuery, after: Place3 | None) -> Iterator[list[Any]]:
    """All of them, a transaction for each batch; it goes on when the request is over."""
    database = context().database

    def batches(after: Place3 | None) -> Iterator[list[Any]]:
        while True:
            with database.read() as transaction:
                page = _findings_page(transaction, found, query, after, BATCH)
            yield [row.json() for row in page.items]
            if page.next is None:
                return
            after = page.next

    return batches(after)


def _findings_of(database: Database, row: RunRow, query: AuditFindingsQuery) -> Iterator[list[FindingRow]]:
    """Yield the findings of a run in batches, without those that a comment suppresses."""
    after = None
    while True:
        with database.read() as transaction:
            page = findings.page(transaction, row, level=query.level or (), suppressed=False, after=after, limit=BATCH)
        yield list(page.items)
        if page.next is None:
            return
        after = page.next


def _build_report(
    found: Audit, item: ItemRow, query: AuditFindingsQuery, rules: Rules, known: frozenset[str] | None
) -> Reported:
    row = None
    if item.run is not None:
        with context().database.read() as transaction:
            row = lifecycle.get(transaction, item.run, tenant_id=found.tenant_id)
    of_run = [] if row is None else _findings_of(context().database, row, query)
    told = [row.finding for rows in of_run for row in rows]
    if query.new is not None:
        told = [finding for finding in told if query.new == (finding.fingerprint not in (known or ()))]
    problem = item.problem
    return Reported(
        name=item.custom_id or f"(item {item.n})",
        findings=tuple(told),
        ended_well=item.status == "succeeded",
        ending=item.status or "refused",
        exit_code=None if row is None else row.outcome.exit_code,
        ruleset=item.ruleset,
        rules_judged=item.rules_judged,
        backward_calls=item.backward_calls,
        unnamed=item.unnamed,
        base_url=request.host_url.rstrip("/"),
        error=None if row is None else program_error(row),
        problem=None if problem is None else f"{problem['code']}: {problem['detail']}",
        rules=rules,
        known=known,
        verdict=item.verdict,
    )
