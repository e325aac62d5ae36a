"""The matrix of an audit: its items by rules, as JSON or CSV."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from flask import Response
from pydantic import Field

from backprobe.severity import Level
from service.api.audits.audit_views import item_batches
from service.api.audits.audits import audit_headers, audit_of
from service.api.records.exports import vary_headers, wanted_format
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Short
from service.schemas.responses.audits import Matrix
from service.web.body import Strict, query
from service.web.parameters import Flag, Split
from service.web.reply import json_reply
from service.web.table_cells import Column, csv_header, csv_rows
from store.audits import judging as audit_judging
from store.audits.items import ItemFilter

if TYPE_CHECKING:
    from collections.abc import Collection

    from store.audits.items import ItemRow

blueprint = Operations("audit_matrix", __name__, tag="Audits")

_TEXT: Final = {"schema": {"type": "string"}}


class MatrixQuery(Strict):
    """Which items and rules, in which order, and as what."""

    sort: Literal["n", "worst"] = Field(default="n", description="`worst`: items that failed first.")
    rule: Annotated[str, Field(pattern="^[a-z0-9-]{1,64}$")] | None = Field(
        default=None, description="Only this rule, by its name."
    )
    level: Annotated[list[Level], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None,
        description="Only rules with a finding of any of these levels, joined by commas, in some item. Not with "
        "`ruleset`: levels are not stored with a verdict.",
    )
    file: Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="Only items whose `custom_id` has this somewhere, whatever its case."
    )
    matching: Flag = Field(
        default=False, description="Only items of which a rule says something that `rule` and `level` let pass."
    )
    ruleset: Annotated[str, Field(pattern="^[a-z0-9_-]{1,64}$")] | None = Field(
        default=None,
        description="As the audit was judged under it, without levels; not given: by the findings of today.",
    )
    format: Literal["json", "csv"] | None = Field(
        default=None, description="What to answer with; `Accept` says it too."
    )


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
    if query.ruleset is not None and query.level:
        detail = "`level` does not go with `ruleset`: levels are not stored with a verdict. Leave one of them out."
        place = Place(parameter="level", code="not-with-ruleset", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
        rules, known = audit_judging.rules_for(transaction, found), audit_judging.known_to(transaction, found)
    if query.ruleset not in {None, *(verdict.ruleset for verdict in found.verdicts)}:
        detail = f"Audit {found.id} was not judged under {query.ruleset}."
        place = Place(parameter="ruleset", code="unknown-ruleset", detail=detail)
        raise Problem("invalid-request", detail, places=(place,))
    which = ItemFilter(name_part=query.file)
    if query.matching and query.ruleset is None:
        which = replace(which, rule=query.rule, level=query.level or ())
    batches = item_batches(context().database, found, rules, known, which=which, ruleset=query.ruleset)
    items = [row for rows in batches for row in rows]
    if query.matching:
        items = [item for item in items if has_match(item, query.rule, query.level)]
    if query.sort == "worst":
        items = audit_judging.worst_first(items)
    columns = columns_of(items, query.rule, query.level)
    rows = [_row_to_json(item, set(columns)) for item in items]
    headers = vary_headers(audit_headers(found), form)
    if form == "json":
        return json_reply({"audit": found.id, "rules": columns, "items": rows}, headers=headers)
    names = ("n", "custom_id", "run", "verdict", *columns)
    of = [Column(name=name, steps=(name,), kind="text") for name in names]
    flat = [row | dict.fromkeys(columns, _else(item)) | row["states"] for item, row in zip(items, rows, strict=True)]
    sent = headers | {"Content-Disposition": f'attachment; filename="{found.id}-matrix.csv"'}
    return Response(csv_header(of) + csv_rows(of, flat), 200, sent, content_type="text/csv; charset=utf-8")


def has_match(item: ItemRow, rule: str | None, level: Collection[str] | None) -> bool:
    """Whether a rule says something of an item that the filters let pass; None lets all pass."""
    return any(rule in {None, cell.rule} and (not level or cell.level in level) for cell in item.cells)


def columns_of(items: Collection[ItemRow], rule: str | None, level: Collection[str] | None) -> list[str]:
    """Names of the rules that say something of an item that the filters let pass, sorted."""
    cells = (cell for item in items for cell in item.cells)
    return sorted({cell.rule for cell in cells if rule in {None, cell.rule} and (not level or cell.level in level)})


def _row_to_json(item: ItemRow, rules: Collection[str]) -> dict[str, Any]:
    cells = [cell for cell in item.cells if cell.rule in rules]
    return {
        "n": item.n,
        "custom_id": item.custom_id,
        "run": item.run,
        "verdict": item.verdict,
        "judged": item.ruleset is not None,
        "states": {cell.rule: cell.state for cell in cells},
        "findings": {cell.rule: cell.findings for cell in cells if cell.findings},
        "known": {cell.rule: cell.known for cell in cells if cell.known},
        "levels": {cell.rule: cell.level for cell in cells if cell.level is not None},
    }


def _else(item: ItemRow) -> str | None:
    """Return the state of a rule that has no cell: `pass` if rules have judged the item, else `not-run`."""
    return None if item.verdict is None else "pass" if item.ruleset is not None else "not-run"
