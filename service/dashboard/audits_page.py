"""The pages `/audits` and `/audits/ID`: audits, and of one what the policy says of each program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from flask import render_template, request

from service.api.audits.audit_lists import AuditsQuery, audits_asked
from service.api.audits.audits import audit_of
from service.context import context
from service.dashboard.pages import blueprint
from service.web.body import query
from service.web.parameters import Page
from service.web.reply import after_of, sign
from store.audits import items as audit_items
from store.audits import judging
from store.audits.policy import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.audits.audits import Audit
    from store.audits.items import ItemRow
    from store.audits.policy import Rules

_LISTING: Final = "page audits"

ITEMS: Final = 200
"""Programs on one page."""


class AuditPageQuery(Page):
    """Which part of an audit's page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditShown:
    """The page of one audit.

    Attributes:
        counts: Programs by verdict, those that have none left out; empty: it is not judged.
        items: Some of its programs, worst first. more: address of the next ones; None: these were the last.
        later: These are not the first.
        rules: Of its policy.
    """

    audit: Audit
    counts: tuple[tuple[str, int], ...]
    items: tuple[ItemRow, ...]
    rules: Rules
    more: str | None
    later: bool


@blueprint.get("/audits")
@query(AuditsQuery)
def audits_list(query: AuditsQuery) -> str:
    """The audits, newest first."""
    page, more = _audits(query)
    return render_template(
        "audits.html",
        audits=page,
        more=more,
        later=query.cursor is not None,
        asked=query,
        filtered=bool(set(request.args) - {"cursor", "limit"}),
        origin=request.host_url.rstrip("/"),
    )


@blueprint.get("/audits/<audit>")
@query(AuditPageQuery)
def audit(audit: str, query: AuditPageQuery) -> str:
    """One audit."""
    return render_template("audit.html", shown=_shown(audit, query))


def _audits(query: AuditsQuery) -> tuple[Sequence[Audit], str | None]:
    """Some audits, and the address of the next page."""
    items, following = audits_asked(_LISTING, query)
    return items, _next(_LISTING, query, None if following is None else list(following))


def _shown(public_id: str, query: AuditPageQuery) -> AuditShown:
    """One audit.

    Raises:
        Problem: `not-found`.
    """
    listing = f"{public_id[:40]} page items"
    after = after_of(listing, query)
    with context().database.read() as transaction:
        found = audit_of(transaction, public_id)
        rules, known = judging.rules_for(transaction, found), judging.known_to(transaction, found)
        rows = audit_items.page(transaction, found, rules, known, after=after[0] if after else -1, limit=ITEMS + 1)
    last = found.verdicts[-1] if found.verdicts else None
    counted = {} if last is None else last.counts["items"]
    return AuditShown(
        audit=found,
        counts=tuple((word, counted[word]) for word in VERDICTS if counted.get(word)),
        items=tuple(judging.worst_first(rows[:ITEMS])),
        rules=rules,
        more=_next(listing, query, [rows[ITEMS - 1].n] if len(rows) > ITEMS else None),
        later=after is not None,
    )


def _next(listing: str, query: Page, following: Sequence[str | int] | None) -> str | None:
    """The address of the next page; None: there is none."""
    if following is None:
        return None
    again = {name: value for name, value in request.args.items() if name != "cursor"}
    return f"{request.path}?{urlencode({**again, 'cursor': sign(listing, query.filters(), following)})}"
