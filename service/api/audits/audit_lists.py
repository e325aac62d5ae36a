"""Which audits a list shows: its filters, and the page that the caller may see; the API and the pages ask alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from service.auth.caller import caller
from service.context import context
from service.schemas.audit_requests import PolicyId
from service.schemas.requests import ProjectId
from service.web.filters import WithLabels
from service.web.parameters import Page, Split
from service.web.reply import read_cursor
from store.audits import audits
from store.audits.audits import Audit


class AuditsQuery(Page):
    """Which audits."""

    project: ProjectId | None = Field(default=None, description="Only those of this project.")
    policy: PolicyId | None = Field(default=None, description="Only those judged by this policy.")
    status: (
        Annotated[list[Literal["open", "running", "judged", "canceled"]], Split, Field(min_length=1, max_length=4)]
        | None
    ) = Field(default=None, description="Any of these, joined by commas.")
    verdict: Annotated[list[Literal["passed", "failed"]], Split, Field(min_length=1, max_length=2)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )
    labels: WithLabels = Field(default_factory=dict)


def audits_asked(listing: str, query: AuditsQuery) -> tuple[Sequence[Audit], Sequence[Any] | None]:
    """Load a page of the audits that the caller may see, and the key of the next page."""
    asked, after = caller(), read_cursor(listing, query)
    if asked.project is not None and query.project not in {None, asked.project}:
        return (), None
    with context().database.read() as transaction:
        page = audits.page(
            transaction,
            tenant_id=asked.tenant_id,
            of_project=asked.project or query.project,
            of_policy=query.policy,
            status=query.status or (),
            verdict=query.verdict or (),
            labels=query.labels,
            after=None if after is None else (after[0], after[1]),
            limit=query.limit,
        )
    return page.items, page.next
