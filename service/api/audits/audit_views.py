"""The items of an audit with their verdicts; `audit_matrix` has them by rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from service.api.audits.audits import audit_headers, audit_of
from service.api.records.exports import MEDIA, export, vary_headers, wanted_format
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.schemas.requests import Short
from service.schemas.responses.audits import AuditItemList, AuditItemTold
from service.web.body import query
from service.web.parameters import Page, Split
from service.web.reply import page_reply, read_cursor
from store import queries
from store.audits import items as audit_items
from store.audits import judging as audit_judging
from store.audits.items import ALL, ItemFilter
from store.audits.policy import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flask import Response

    from store.audits.audits import Audit
    from store.audits.items import ItemRow
    from store.audits.policy import Rules
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
        rules, known = audit_judging.rules_for(transaction, found), audit_judging.known_to(transaction, found)
        listing = f"{found.id} items"
        after = read_cursor(listing, query)
        headers = vary_headers(audit_headers(found), form)
        if form == "json":
            rows = _load_items(transaction, found, rules, known, after[0] if after else -1, query)
            following = [rows[query.limit - 1].n] if len(rows) > query.limit else None
            return page_reply(listing, query, [_item_to_json(row) for row in rows[: query.limit]], following, headers)
    which = ItemFilter(custom_id=query.custom_id)
    batches = (
        [_item_to_json(row) for row in rows if query.verdict is None or row.verdict in query.verdict]
        for rows in item_batches(context().database, found, rules, known, which=which)
    )
    return export(f"{found.id}-items", form, AuditItemTold, batches, headers)


def _load_items(
    transaction: Transaction, found: Audit, rules: Rules, known: frozenset[str], after: int, query: ItemsQuery
) -> list[ItemRow]:
    """Load the items of a page and one more, if there is one."""
    which = ItemFilter(custom_id=query.custom_id)
    at_once = query.limit + 1 if query.verdict is None else audit_items.AT_ONCE
    chosen: list[ItemRow] = []
    while len(chosen) <= query.limit:
        rows = audit_items.page(transaction, found, rules, known, which=which, after=after, limit=at_once)
        chosen += [row for row in rows if query.verdict is None or row.verdict in query.verdict]
        if len(rows) < at_once:
            break
        after = rows[-1].n
    return chosen[: query.limit + 1]


def item_batches(
    database: Database,
    found: Audit,
    rules: Rules,
    known: frozenset[str],
    *,
    which: ItemFilter = ALL,
    ruleset: str | None = None,
    after: int = -1,
) -> Iterator[list[ItemRow]]:
    """All items behind place `after`, a transaction for each batch; it goes on when the request is over."""
    at_once = audit_items.AT_ONCE
    while True:
        with database.read() as transaction:
            rows = audit_items.page(
                transaction, found, rules, known, which=which, after=after, limit=at_once, ruleset=ruleset
            )
        yield rows
        if len(rows) < at_once:
            return
        after = rows[-1].n


def _item_to_json(row: ItemRow) -> dict[str, Any]:
    told = queries.as_json(row)
    for name in ("run_id", "ruleset", "rules_judged", "backward_calls", "unnamed"):
        del told[name]
    return told
