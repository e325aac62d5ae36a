"""Runs: the list, one of them, and the request to stop one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

from apiflask import APIBlueprint
from flask import request
from pydantic import Field

from service.api.asked import Included, Nothing, Page, Queue, Split, Status, Time
from service.api.body import body, query
from service.api.effect import effect
from service.api.reply import after_of, cache_headers, iso, json_reply, not_modified, page_reply, sign
from service.api.run_json import included_json, run_json, run_of
from service.api.told import RunList, RunTold
from service.caller import caller
from service.context import context
from service.errors import Problem
from service.openapi import ONCE, Answer, answers
from service.waiting import asked_seconds
from store import rejudging, runs

if TYPE_CHECKING:
    from flask import Response

    from store.run import RunPage, RunRow

blueprint = APIBlueprint("runs", __name__, tag="Runs")


class RunsQuery(Page):
    """Which runs."""

    status: Annotated[list[Status], Split, Field(min_length=1, max_length=7)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )
    queue: Queue | None = None
    created_gt: Time | None = Field(default=None, alias="created.gt", description="Created later than this.")
    created_lt: Time | None = Field(default=None, alias="created.lt", description="Created earlier than this.")


@blueprint.get("/v1/runs")
@query(RunsQuery)
@answers({200: Answer(text="A page of runs, newest first.", model=RunList, headers=("Link",))})
def list_runs(query: RunsQuery) -> Response:
    """List runs, newest first."""
    page = _page("runs", query)
    return page_reply("runs", query, [run_json(run) for run in page.items], None if page.next is None else [page.next])


def runs_page(listing: str, query: RunsQuery) -> tuple[tuple[RunRow, ...], str | None]:
    """The same list for a page of people: its runs, and the address of the next page of it."""
    page = _page(listing, query)
    if page.next is None:
        return page.items, None
    cursor = sign(listing, query.filters(), [page.next])
    again = {name: value for name, value in request.args.items() if name != "cursor"}
    return page.items, f"{request.path}?{urlencode({**again, 'cursor': cursor})}"


def _page(listing: str, query: RunsQuery) -> RunPage:
    after = after_of(listing, query)
    created: dict[str, Any] = {}
    if query.created_gt is not None:
        created["created_after"] = iso(query.created_gt)
    if query.created_lt is not None:
        created["created_before"] = iso(query.created_lt)
    with context().database.read() as transaction:
        return runs.page(
            transaction,
            tenant_id=caller().tenant_id,
            project_id=caller().project_id,
            after=after[0] if after else None,
            limit=query.limit,
            status=query.status or (),
            queue=query.queue,
            **created,
        )


@blueprint.get("/v1/runs/<run>")
@query(Included)
@answers(
    {
        200: Answer(text="The run, as it stands.", model=RunTold, headers=("ETag", "Preference-Applied")),
        304: Answer(text="Not changed since."),
    },
    headers=("Prefer", "If-None-Match"),
)
def get_run(run: str, query: Included) -> Response:
    """One run; with `Prefer: wait=N` as soon as it has ended, or after N seconds as it stands."""
    shared = context()
    seconds = asked_seconds()
    with shared.database.read() as transaction:
        row = run_of(transaction, run)
    waited = seconds is not None and (row.ended or shared.waiters.wait(run, seconds, caller().tenant_id))
    applied = {"Preference-Applied": f"wait={seconds}"} if waited else {}
    with shared.database.read() as transaction:
        row = run_of(transaction, run)
        if not query.include and (same := not_modified(row)):
            same.headers.update(applied)
            return same
        told = run_json(row, included_json(transaction, row, query.include))
    return json_reply(told, 200, {**cache_headers(row), **applied})


@blueprint.post("/v1/runs/<run>/cancel")
@body(Nothing, optional=True)
@answers(
    {
        202: Answer(text="Asked for; the run stops within seconds.", model=RunTold, headers=("Location",)),
        200: Answer(text="It had ended, or was still queued and has now.", model=RunTold, headers=("Location",)),
    },
    problems=ONCE,
    headers=("Idempotency-Key",),
    scope="runs:write",
)
def cancel_run(run: str, body: Nothing) -> Response:  # noqa: ARG001 - `body` was checked, and says nothing
    """Stop a run; what it has recorded so far is kept. An ended run stays as it is."""
    with effect() as write:
        row = run_of(write.transaction, run)
        if write.known is None:
            row = runs.request_cancel(write.transaction, run, tenant_id=row.tenant_id) or row
            write.done("run.cancel", row.id, run=row.id)
    return json_reply(run_json(row), 200 if row.ended else 202, {"Location": f"/v1/runs/{row.id}", **write.headers})


@blueprint.post("/v1/runs/<run>/judge")
@body(Nothing, optional=True)
@answers(
    {202: Answer(text="Asked for; its findings are told anew within seconds.", model=RunTold, headers=("Location",))},
    problems=("run-not-ended", "record-expired", *ONCE),
    headers=("Idempotency-Key",),
    scope="runs:write",
)
def judge_run(run: str, body: Nothing) -> Response:  # noqa: ARG001 - `body` was checked, and says nothing
    """Judge a run again with today's rules. Its findings keep their ids; what is no longer found is kept as gone."""
    with effect() as write:
        row = run_of(write.transaction, run)
        if write.known is None:
            if not row.ended:
                raise Problem("run-not-ended", f"Run {row.id} is {row.status}.")
            if row.key is None or row.record.state not in {"whole", "partial"}:
                raise Problem("record-expired", f"Run {row.id} has no record to judge.")
            row = rejudging.ask(write.transaction, run, tenant_id=row.tenant_id) or row
            write.done("run.judge", row.id, run=row.id)
    return json_reply(run_json(row), 202, {"Location": f"/v1/runs/{row.id}", **write.headers})
