"""The pages `/findings` and `/findings/GROUP`: groups of findings over all runs, and one of them at its newest run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from flask import render_template, request

from service.api.findings.groups import find_groups, group_of
from service.api.runs.run_json import run_of
from service.auth.caller import caller
from service.context import context
from service.dashboard.cards import Card, card
from service.dashboard.inbox.inbox_filters import (
    STATES,
    InboxQuery,
    Unreadable,
    own_name,
    read_filters,
    state_asked,
    state_of,
)
from service.dashboard.inbox.issue_link import new_issue_link
from service.dashboard.inbox.spark import Spark, spark_of
from service.dashboard.pages import blueprint
from service.dashboard.run_page import Texts
from service.dashboard.words import Prose, prose
from service.web.body import query
from service.web.reply import read_cursor, sign
from store.access import projects
from store.findings import group_rows, trials

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from store.findings.group_rows import GroupRow
    from store.runs.model import RunRow

_LISTING: Final = "page finding-groups"
_LONGEST_LINE: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShown:
    """A group as a row of the inbox. headline: the first line of its message."""

    group: GroupRow
    state: str
    headline: Prose
    spark: Spark


@blueprint.get("/findings")
@query(InboxQuery)
def inbox(query: InboxQuery) -> tuple[str, int]:
    """Show the groups, the one seen last first. Filters that cannot be read leave the form as it was typed."""
    facts: dict[str, Any] = {
        "asked": query,
        "state": state_asked(query),
        "states": STATES,
        "filtered": bool(set(request.args) - {"cursor", "limit"}),
        "newest": f"/findings?{urlencode(_filters_of_address())}",
        "later": query.cursor is not None,
        "me": own_name(),
        "may_change": caller().may("findings:write"),
    }
    after = read_cursor(_LISTING, query)
    with context().database.read() as transaction:
        try:
            wanted = read_filters(transaction, query)
        except Unreadable as fault:
            return render_template("findings.html", **facts, fault=fault, groups=(), more=None), 422
        page = find_groups(transaction, wanted, after, with_made_of=False)
        days = group_rows.runs_by_day(transaction, page.items)
    more = None
    if page.next is not None:
        cursor = sign(_LISTING, query.filters(), page.next)
        more = f"/findings?{urlencode({**_filters_of_address(), 'cursor': cursor})}"
    dates = group_rows.last_days()
    shown = [_show_group(group, dates, days) for group in page.items]
    return render_template("findings.html", **facts, fault=None, groups=shown, more=more), 200


@blueprint.get("/findings/<group>")
def finding_group(group: str) -> str:
    """One group: its newest run's finding with line, fix and what trials said of it, and what can be done."""
    with context().database.read() as transaction:
        found = group_of(transaction, group)
        shown = _show_group(found, group_rows.last_days(), group_rows.runs_by_day(transaction, [found]))
        newest = group_rows.newest_finding(transaction, found)
        its_project = projects.get(transaction, found.project, tenant_id=caller().tenant_id)
        run = run_of(transaction, found.last_run)
        its_card: Card | None = None
        tried: Sequence[RunRow] = ()
        if newest is not None:
            its_card = card(newest, Texts(transaction, run).lines, run.record.steps_made)
            tried = trials.of_findings(transaction, [newest.id], tenant_id=caller().tenant_id).get(newest.id, ())
    repository = None if its_project is None else its_project.repository
    page = f"{context().settings.store.public_url or request.host_url.rstrip('/')}/findings/{found.id}"
    return render_template(
        "finding_group.html",
        issue=None if repository is None else new_issue_link(repository, found, page),
        shown=shown,
        run=run,
        card=its_card,
        tried=tried,
        me=own_name(),
        may_change=caller().may("findings:write"),
    )


def _show_group(group: GroupRow, dates: Sequence[str], days: Mapping[int, Mapping[str, int]]) -> GroupShown:
    first = next((line for line in group.message.split("\n") if line.strip()), "")
    short = first if len(first) <= _LONGEST_LINE else f"{first[:_LONGEST_LINE]}…"
    drawn = spark_of(dates, days.get(group.number, {}))
    return GroupShown(group=group, state=state_of(group), headline=prose(short), spark=drawn)


def _filters_of_address() -> dict[str, str]:
    return {name: value for name, value in request.args.items() if name != "cursor"}
