"""What came of an audit: its items with their verdicts, and the matrix of items and rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import Response
from pydantic import Field

from service.api.audits.audits import audit_headers, audit_of
from service.api.records.exports import MEDIA, export, varied, wanted_format
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Short
from service.schemas.responses.audits import AuditItemList, AuditItemTold, Matrix
from service.web.body import Strict, query
from service.web.parameters import Page, Split
from service.web.reply import after_of, json_reply, page_reply
from service.web.table_cells import Column, csv_header, csv_rows
from store import queries
from store.audits import items as audit_items
from store.audits import judging as audit_judging
from store.audits.policy import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from store.audits.audits import Audit
    from store.audits.items import ItemRow
    from store.database.session import Database, Transaction


blueprint = Operations("audit_views", __name__, tag="Audits")

_TEXT: Final = {"schema": {"type": "string"}}


class ItemsQuery(Page):
    """Which items."""

    custom_id: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Only this one.")
    verdict: Annotated[list[Verdict], Split, Field(min_length=1, max_length=5)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )
    format: Literal["json", "ndjson", "csv", "parquet"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too. All but json answer with the whole list."
    )


class MatrixQuery(Strict):
    """In which order, and as what."""

    sort: Literal["n", "worst"] = Field(default="n", description="`worst`: items that failed first.")
    rule: Annotated[str, Field(pattern="^[a-z0-9-]{1,64}$")] | None = Field(
        default=None, description="Only this rule, by its name."
    )
    ruleset: Annotated[str, Field(pattern="^[a-z0-9_-]{1,64}$")] | None = Field(
        default=None, description="As the audit was judged under it; not given: by the findings of today."
    )
    format: Literal["json", "csv"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too."
    )


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
            rows = _chosen(transaction, found, after[0] if after else -1, query)
            following = [rows[query.limit - 1].n] if len(rows) > query.limit else None
            return page_reply(listing, query, [_told(row) for row in rows[: query.limit]], following, headers)
    batches = (
        [_told(row) for row in rows if query.verdict is None or row.verdict in query.verdict]
        for rows in item_batches(context().database, found, query.custom_id)
    )
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
    if query.ruleset not in {None, *(one.ruleset for one in found.verdicts)}:
        detail = f"Audit {found.id} was not judged under {query.ruleset}."
        place = Place(parameter="ruleset", code="unknown-ruleset", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    items = [row for rows in item_batches(context().database, found, ruleset=query.ruleset) for row in rows]
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


def _chosen(transaction: Transaction, found: Audit, after: int, query: ItemsQuery) -> list[ItemRow]:
    """The items of a page and one more, if there is one."""
    if query.verdict is None:
        return _page(transaction, found, after, query.limit + 1, query.custom_id)
    chosen: list[ItemRow] = []
    while len(chosen) <= query.limit:
        rows = _page(transaction, found, after, audit_items.AT_ONCE, query.custom_id)
        chosen += [row for row in rows if row.verdict in query.verdict]
        if len(rows) < audit_items.AT_ONCE:
            break
        after = rows[-1].n
    return chosen[: query.limit + 1]


def _page(
    transaction: Transaction,
    found: Audit,
    after: int,
    limit: int,
    custom_id: str | None = None,
    ruleset: str | None = None,
) -> list[ItemRow]:
    rules = audit_judging.rules_for(transaction, found)
    known = audit_judging.known_to(transaction, found)
    return audit_items.page(
        transaction, found, rules, known, custom_id=custom_id, after=after, limit=limit, ruleset=ruleset
    )


def item_batches(
    database: Database, found: Audit, custom_id: str | None = None, ruleset: str | None = None
) -> Iterator[list[ItemRow]]:
    """All items, a transaction for each batch; it goes on when the request is over."""
    after = -1
    while True:
        with database.read() as transaction:
            rows = _page(transaction, found, after, audit_items.AT_ONCE, custom_id, ruleset)
        yield rows
        if len(rows) < audit_items.AT_ONCE:
            return
        after = rows[-1].n


def _else(item: ItemRow) -> str | None:
    """What is told of a rule that has no cell: it passes, where rules have judged."""
    return None if item.verdict is None else "pass" if item.ruleset is not None else "not-run"


def _told(row: ItemRow) -> dict[str, Any]:
    told = queries.as_json(row)
    for name in ("run_id", "ruleset", "rules_judged", "backward_calls", "unnamed"):
        del told[name]
    return told
