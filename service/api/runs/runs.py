"""Runs: the list, one of them, and the request to stop one."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Annotated, Final, Literal

from flask import Response
from pydantic import Field

from backprobe.rules.framework.rule import Level
from service.api.runs.run_includes import included_json
from service.api.runs.run_json import require_record, run_json, run_of
from service.auth.caller import caller
from service.context import context
from service.limits.seats import asked_seconds
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.requests import Nothing, ProjectId, RunChanged, Short
from service.schemas.responses.runs import RunList, RunTold
from service.web.body import body, query
from service.web.filters import Rules, WithLabels
from service.web.idempotency import effect, storing
from service.web.parameters import Included, Page, Span, Split, Time, length_of_span
from service.web.reply import (
    cache_headers,
    check_match,
    etag_of,
    iso,
    json_reply,
    next_address,
    not_modified,
    page_reply,
    read_cursor,
)
from store.access import projects
from store.findings import rejudging
from store.runs import lifecycle as runs
from store.runs.model import Origin, Queue, RunPage, Status
from store.runs.reading.run_filter import RunFilter

if TYPE_CHECKING:
    from store.runs.model import RunRow

blueprint = Operations("runs", __name__, tag="Runs")

MOST_AHEAD: Final = datetime.timedelta(days=3653)
"""How far ahead a record can be kept."""


class RunsQuery(Page):
    """Which runs."""

    origin: Annotated[list[Origin], Split, Field(min_length=1, max_length=4)] | None = Field(
        default=None, description="Any of these, joined by commas; not given: all but trial."
    )
    status: Annotated[list[Status], Split, Field(min_length=1, max_length=7)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )
    queue: Queue | None = None
    project: ProjectId | Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="Only those of this project: its id or its name."
    )
    labels: WithLabels = Field(default_factory=dict)
    rule: Rules | None = Field(default=None, description="Names or codes: a finding by any of these, not suppressed.")
    level: Annotated[list[Level], Split, Field(min_length=1, max_length=3)] | None = Field(
        default=None, description="A finding of any of these levels, not suppressed; with `rule`, one that is both."
    )
    actor: Annotated[Short, Field(min_length=1)] | None = Field(default=None, description="Whose: `created_by`.")
    snippet: Annotated[str, Field(pattern=r"^snp_[0-7][0-9A-HJKMNP-TV-Z]{25}$")] | None = Field(
        default=None, description="Only those of this program."
    )
    snippet_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="Only those of the program with this content hash, in hex: whoever has the program finds its runs "
        "and sends no text. SHA-256 over the entry, then each file's path and content in order of paths, each of these "
        "pieces with its length in bytes in front, as eight bytes, least significant first.",
    )
    audit: Annotated[str, Field(pattern=r"^aud_[0-7][0-9A-HJKMNP-TV-Z]{25}$")] | None = Field(
        default=None, description="Only those of this audit's items."
    )
    q: Annotated[Short, Field(min_length=1)] | None = Field(
        default=None, description="Part of the entry, or of a label's name or value."
    )
    since: Span | None = Field(
        default=None, description="Created within the last minutes, hours, days or weeks: `30m`, `1h`, `7d`, `2w`."
    )
    created_gt: Time | None = Field(default=None, alias="created.gt", description="Created later than this.")
    created_lt: Time | None = Field(default=None, alias="created.lt", description="Created earlier than this.")
    sort: Literal["-created_at", "created_at"] = Field(
        default="-created_at", description="The newest first, or the oldest."
    )

    def _earliest(self) -> list[datetime.datetime]:
        """Return the times after which a run must have been created."""
        times = [] if self.created_gt is None else [self.created_gt]
        if self.since is not None:
            times.append(datetime.datetime.now(datetime.UTC) - length_of_span(self.since))
        return times

    def to_run_filter(self) -> RunFilter:
        """Return the filters as the store takes them."""
        return RunFilter(
            origin=self.origin or (),
            status=self.status or (),
            queue=self.queue,
            labels=self.labels,
            rule=self.rule or (),
            level=self.level or (),
            actor=self.actor,
            snippet=self.snippet,
            snippet_sha256=None if self.snippet_sha256 is None else bytes.fromhex(self.snippet_sha256),
            audit=self.audit,
            words=self.q,
            created_after=max(map(iso, self._earliest()), default=None),
            created_before=None if self.created_lt is None else iso(self.created_lt),
        )


@blueprint.get("/v1/runs")
@query(RunsQuery)
@answers({200: Answer(text="A page of runs, in the order of `sort`.", model=RunList, headers=("Link",))})
def list_runs(query: RunsQuery) -> Response:
    """List runs, newest first unless `sort` says otherwise."""
    page = _page("runs", query)
    return page_reply("runs", query, [run_json(run) for run in page.items], None if page.next is None else [page.next])


def runs_page(listing: str, query: RunsQuery) -> tuple[tuple[RunRow, ...], str | None]:
    """Load the same list for a page of people: its runs, and the address of the next page of it."""
    page = _page(listing, query)
    return page.items, next_address(listing, query, None if page.next is None else [page.next])


def _page(listing: str, query: RunsQuery) -> RunPage:
    after = read_cursor(listing, query)
    asked = caller()
    with context().database.read() as transaction:
        project_id = asked.project_id
        if query.project is not None:
            found = projects.find(transaction, query.project, tenant_id=asked.tenant_id)
            if found is None or project_id not in {None, found.number}:
                return RunPage(items=(), next=None)
            project_id = found.number
        return runs.page(
            transaction,
            query.to_run_filter(),
            tenant_id=asked.tenant_id,
            project_id=project_id,
            after=after[0] if after else None,
            limit=query.limit,
            oldest_first=query.sort == "created_at",
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


@blueprint.patch("/v1/runs/<run>")
@body(RunChanged)
@answers(
    {200: Answer(text="The run, changed.", model=RunTold, headers=("ETag",))},
    problems=("if-match-needed", "stale", *STORING),
    headers=("If-Match",),
    scope="runs:write",
)
def change_run(run: str, body: RunChanged) -> Response:
    """Change a run's labels, pin its record, or say how long it is kept. Needs `If-Match`."""
    given = {name: getattr(body, name) for name in body.model_fields_set}
    if (kept := given.get("kept_until")) is not None:
        given["kept_until"] = iso(_within_reach(kept))
    with storing() if "labels" in given else effect() as write:
        row = run_of(write.transaction, run)
        check_match(f"run {row.id}", etag_of(row))
        changed = runs.change(write.transaction, row, **given)
        if changed is None:
            raise Problem("stale", f"Another request has just changed run {row.id}.")
        write.done("run.change", row.id, run=row.id, detail={"fields": sorted(given)})
        changed = run_of(write.transaction, run)
    return json_reply(run_json(changed), 200, cache_headers(changed))


def _within_reach(asked: datetime.datetime) -> datetime.datetime:
    """Convert a time to UTC, and refuse one that is too far away.

    Raises:
        Problem: `invalid-request`.
    """
    now = datetime.datetime.now(datetime.UTC)
    if not now - MOST_AHEAD <= asked <= now + MOST_AHEAD:
        detail = "A record is kept for ten years at most."
        raise Problem(
            "invalid-request", detail, places=(Place(pointer="#/kept_until", code="out-of-range", detail=detail),)
        )
    return asked.astimezone(datetime.UTC)


@blueprint.delete("/v1/runs/<run>")
@answers(
    {204: Answer(text="Gone: record, output, and the source unless another run has the same program.")},
    problems=("run-not-ended",),
    scope="runs:write",
)
def delete_run(run: str) -> Response:
    """Delete the record, the output and the source of an ended run. The run itself and its findings stay."""
    with effect() as write:
        row = run_of(write.transaction, run)
        if not row.ended:
            raise Problem("run-not-ended", f"Run {row.id} is {row.status}; cancel it first.")
        if runs.forget(write.transaction, row):
            write.done("run.delete", row.id, run=row.id)
    return Response(status=204)


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
def cancel_run(run: str) -> Response:
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
    {202: Answer(text="Accepted; its findings are replaced within seconds.", model=RunTold, headers=("Location",))},
    problems=("run-not-ended", "record-expired", *ONCE),
    headers=("Idempotency-Key",),
    scope="runs:write",
    rate="submits",
)
def judge_run(run: str) -> Response:
    """Judge a run again with today's rules. Its findings keep their ids; what is no longer found is kept as gone.

    A trial is not judged again: 422.
    """
    with effect() as write:
        row = run_of(write.transaction, run)
        if write.known is None:
            if not row.ended:
                raise Problem("run-not-ended", f"Run {row.id} is {row.status}.")
            if row.trial is not None:
                detail = f"Run {row.id} is a trial: its verdict is of the rules that judged both of its runs."
                raise Problem("invalid-request", f"{detail} Try the fix again instead.")
            if require_record(row).key is None or row.record.state not in {"whole", "partial"}:
                raise Problem("record-expired", f"Run {row.id} has no record to judge.")
            row = rejudging.ask(write.transaction, run, tenant_id=row.tenant_id) or row
            write.done("run.judge", row.id, run=row.id)
    return json_reply(run_json(row), 202, {"Location": f"/v1/runs/{row.id}", **write.headers})
