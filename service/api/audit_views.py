"""What came of an audit: its items with their verdicts, the matrix of items and rules, its findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from apiflask import APIBlueprint
from flask import Response, request
from pydantic import Field

from backprobe.show import junit, sarif
from backprobe.show.reported import Reported
from service.api.asked import Page, Short, Strict
from service.api.audits import audit_headers, audit_of
from service.api.body import query
from service.api.cells import Column, csv_header, csv_rows
from service.api.exports import BATCH, MEDIA, SCHEMAS, export, varied, wanted_format
from service.api.reply import after_of, json_reply, page_reply
from service.api.told_audits import AuditItemList, AuditItemTold, Matrix
from service.api.told_findings import FindingTold
from service.context import context
from service.errors import Problem
from service.openapi import Answer, answers
from store import audit_items, audit_judging, findings, queries, runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.audit_items import ItemRow
    from store.audits import Audit
    from store.findings import FindingRow
    from store.session import Database, Transaction

blueprint = APIBlueprint("audit_views", __name__, tag="Audits")

_TEXT: Final = {"schema": {"type": "string"}}


class ItemsQuery(Page):
    """Which items."""

    custom_id: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Only this one.")
    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )


class MatrixQuery(Strict):
    """In which order, and as what."""

    sort: Literal["n", "worst"] = Field(default="n", description="`worst`: items that failed first.")
    rule: Annotated[str, Field(pattern="^[a-z0-9-]{1,64}$")] | None = Field(
        default=None, description="Only this rule, by its name."
    )
    format: Literal["json", "csv"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too."
    )


class AuditFindingsQuery(Strict):
    """As what."""

    format: Literal["ndjson", "sarif", "junit"] = Field(default="ndjson", description="What to answer with.")


@blueprint.get("/v1/audits/<audit>/items")
@query(ItemsQuery)
@answers(
    {
        200: Answer(
            text="A page of items, or all of them in another format.",
            model=AuditItemList,
            media={MEDIA[name]: _TEXT for name in ("ndjson", "csv", "parquet")},
            headers=("Link", "ETag", "Content-Disposition"),
        )
    },
    problems=("not-acceptable", "too-many-streams"),
    headers=("Accept",),
)
def list_audit_items(audit: str, query: ItemsQuery) -> Response:
    """The items of an audit in their order, each with its run and verdict."""
    form = wanted_format(query.format, ("ndjson", "csv", "parquet"))
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
        listing = f"{found.id} items"
        after = after_of(listing, query)
        headers = varied(audit_headers(found), form)
        if form == "json":
            rows = _page(transaction, found, after[0] if after else -1, query.limit + 1, query.custom_id)
            following = [rows[query.limit - 1].n] if len(rows) > query.limit else None
            return page_reply(listing, query, [_told(row) for row in rows[: query.limit]], following, headers)
    batches = ([_told(row) for row in rows] for rows in _batches(context().database, found, query.custom_id))
    return export(f"{found.id}-items", form, AuditItemTold, batches, headers)


@blueprint.get("/v1/audits/<audit>/matrix")
@query(MatrixQuery)
@answers(
    {
        200: Answer(
            text="Items by rules.",
            model=Matrix,
            media={"text/csv": _TEXT},
            headers=("ETag", "Content-Disposition"),
        )
    },
    problems=("not-acceptable",),
    headers=("Accept",),
)
def get_audit_matrix(audit: str, query: MatrixQuery) -> Response:
    """Items by rules: what each rule says of each item."""
    form = wanted_format(query.format, ("csv",))
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
    items = [row for rows in _batches(context().database, found) for row in rows]
    if query.sort == "worst":
        items = audit_judging.worst_first(items)
    rules = sorted({cell.rule for item in items for cell in item.cells if query.rule in {None, cell.rule}})
    rows = [
        {
            "n": item.n,
            "custom_id": item.custom_id,
            "run": item.run,
            "verdict": item.verdict,
            "states": {cell.rule: cell.state for cell in item.cells if cell.rule in rules},
        }
        for item in items
    ]
    headers = varied(audit_headers(found), form)
    if form == "json":
        return json_reply({"audit": found.id, "rules": rules, "items": rows}, headers=headers)
    names = ("n", "custom_id", "run", "verdict", *rules)
    of = [Column(name=name, steps=(name,), kind="text") for name in names]
    flat = [row | dict.fromkeys(rules, _else(item)) | row["states"] for item, row in zip(items, rows, strict=True)]
    sent = headers | {"Content-Disposition": f'attachment; filename="{found.id}-matrix.csv"'}
    return Response(csv_header(of) + csv_rows(of, flat), 200, sent, content_type="text/csv; charset=utf-8")


@blueprint.get("/v1/audits/<audit>/findings")
@query(AuditFindingsQuery)
@answers(
    {
        200: Answer(
            text="The findings, run by run.",
            media={MEDIA[name]: {"schema": SCHEMAS[name]} for name in ("ndjson", "sarif", "junit")},
            headers=("ETag", "Content-Disposition"),
        )
    },
    problems=("too-much-asked", "too-many-streams"),
)
def list_audit_findings(audit: str, query: AuditFindingsQuery) -> Response:
    """The findings of an audit's runs, run by run; SARIF and JUnit also tell the items that were not judged."""
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
    headers = varied(audit_headers(found), query.format)
    if query.format == "ndjson":
        return export(f"{found.id}-findings", "ndjson", FindingTold, _findings(context().database, found), headers)
    reported = [_reported(found, item) for rows in _batches(context().database, found) for item in rows]
    if sum(len(one.findings) for one in reported) > sarif.MOST_RESULTS:
        detail = f"Audit {found.id} has more than {sarif.MOST_RESULTS:,} findings; take ndjson."
        raise Problem("too-much-asked", detail)
    text = sarif.render(reported, name=found.name) if query.format == "sarif" else junit.render(reported)
    ending = {"sarif": "sarif", "junit": "xml"}[query.format]
    sent = headers | {"Content-Disposition": f'attachment; filename="{found.id}-findings.{ending}"'}
    charset = "; charset=utf-8" if query.format == "junit" else ""
    content = text.encode("utf-8", "backslashreplace")
    return Response(content, 200, sent, content_type=MEDIA[query.format] + charset)


def _page(transaction: Transaction, found: Audit, after: int, limit: int, custom_id: str | None) -> list[ItemRow]:
    rules = audit_judging.rules_for(transaction, found)
    known = audit_judging.known_to(transaction, found)
    return audit_items.page(transaction, found, rules, known, custom_id=custom_id, after=after, limit=limit)


def _batches(database: Database, found: Audit, custom_id: str | None = None) -> Iterator[list[ItemRow]]:
    """All items, a transaction for each batch; it goes on when the request is over."""
    after = -1
    while True:
        with database.read() as transaction:
            rows = _page(transaction, found, after, audit_items.AT_ONCE, custom_id)
        yield rows
        if len(rows) < audit_items.AT_ONCE:
            return
        after = rows[-1].n


def _else(item: ItemRow) -> str | None:
    """What is told of a rule that has no cell: it passes, where rules have judged."""
    return None if item.verdict is None else "pass" if item.ruleset is not None else "not-run"


def _told(row: ItemRow) -> dict[str, Any]:
    told = queries.as_json(row)
    del told["run_id"], told["ruleset"]
    return told


def _findings_of(database: Database, found: Audit, item: ItemRow) -> Iterator[list[FindingRow]]:
    """The findings of an item's run, without those that a comment suppresses."""
    after = None
    while item.run is not None:
        with database.read() as transaction:
            row = runs.get(transaction, item.run, tenant_id=found.tenant_id)
            if row is None:
                return
            page = findings.page(transaction, row, suppressed=False, after=after, limit=BATCH)
        yield list(page.items)
        if page.next is None:
            return
        after = page.next


def _findings(database: Database, found: Audit) -> Iterator[list[Any]]:
    for items in _batches(database, found):
        for item in items:
            for rows in _findings_of(database, found, item):
                yield [row.json() for row in rows]


def _reported(found: Audit, item: ItemRow) -> Reported:
    told = [row.finding for rows in _findings_of(context().database, found, item) for row in rows]
    return Reported(
        name=item.custom_id or f"(item {item.n})",
        findings=tuple(told),
        ended_well=item.status == "succeeded",
        ending=item.status or "refused",
        ruleset=item.ruleset,
        rules_judged=0,
        base_url=request.host_url.rstrip("/"),
    )
