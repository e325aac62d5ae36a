"""Audits: begun with their runs, looked at, canceled, judged again. `audit_views.py` tells what came of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from apiflask import APIBlueprint
from pydantic import Field

from service.api.asked import Nothing, Page, ProjectId, Split
from service.api.audit_asked import AuditAsked, ItemAsked
from service.api.body import body, query
from service.api.effect import effect
from service.api.offer import Wanted, offered
from service.api.policies import policy_of
from service.api.projects import place_of_caller
from service.api.record import NoQuery
from service.api.reply import after_of, json_reply, page_reply
from service.api.run_json import run_of
from service.api.submit import program_of, queue_of, submission_of, within_quotas
from service.api.told_audits import AuditList, AuditTold
from service.caller import caller
from service.context import context
from service.errors import Problem
from service.openapi import ONCE, Answer, answers
from store import audits, projects, runs
from store.audits import Audit, NewAudit, NewItem
from store.ids import is_id

if TYPE_CHECKING:
    from flask import Response

    from service.snippet import Snippet
    from store.run import Level, Queue
    from store.session import Transaction

blueprint = APIBlueprint("audits", __name__, tag="Audits")

RETRY_SECONDS = 2


class AuditsQuery(Page):
    """Which audits."""

    project: ProjectId | None = Field(default=None, description="Only those of this project.")
    policy: Annotated[str, Field(pattern=r"^pol_[0-7][0-9A-HJKMNP-TV-Z]{25}$")] | None = Field(
        default=None, description="Only those judged by this policy."
    )
    status: (
        Annotated[list[Literal["open", "running", "judged", "canceled"]], Split, Field(min_length=1, max_length=4)]
        | None
    ) = Field(default=None, description="Any of these, joined by commas.")
    verdict: Annotated[list[Literal["passed", "failed"]], Split, Field(min_length=1, max_length=2)] | None = Field(
        default=None, description="Any of these, joined by commas."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """An item that was looked at: to be run, or refused with a problem."""

    asked: ItemAsked
    program: Snippet | None = None
    queue: Queue = "cpu"
    least: Level = "none"
    problem: dict[str, Any] | None = None


@blueprint.post("/v1/audits")
@body(AuditAsked)
@answers(
    {202: Answer(text="Begun; Location has it.", model=AuditTold, headers=("Location", "Retry-After"))},
    problems=("not-found", "quota-exceeded", "queue-full", *ONCE),
    headers=("Idempotency-Key", "traceparent"),
    scope="audits:write",
    rate="submits",
)
def create_audit(body: AuditAsked) -> Response:
    """Run many programs and judge them together.

    An item that cannot be run is refused alone: its problem stands at the item, which is told as not-run.
    """
    shared, asked = context(), caller()
    ready = [_looked_at(body.whole(item)) for item in body.items]
    queues: set[Queue] = set()
    with within_quotas(), effect() as write:
        if write.known is not None:
            public_id = (write.known.body or b"").decode()
        else:
            shared.room.demand(write.transaction, tenant_id=asked.tenant_id)
            place = place_of_caller(write.transaction, body.project)
            policy = None if body.policy is None else policy_of(write.transaction, body.policy)
            base = None if body.baseline is None else audit_of(write.transaction, body.baseline)
            items: list[NewItem] = []
            for queue, count in Counter(one.queue for one in ready if one.program is not None).items():
                shared.backlog.demand(write.transaction, queue, count)
            for one in ready:
                items.append(_item(write.transaction, one, place))
                if one.program is not None:
                    queues.add(one.queue)
            new = NewAudit(
                name=body.name,
                project_id=place.number,
                created_by=asked.actor,
                policy_id=None if policy is None else policy.number,
                baseline_id=None if base is None else base.number,
                labels=body.labels,
            )
            public_id = audits.create(write.transaction, new, items, tenant_id=asked.tenant_id)
            write.done("audit.create", public_id, detail={"items": len(items)})
        found = audit_of(write.transaction, public_id)
    for queue in sorted(queues):
        shared.wakeups.publish(queue)
    headers = {"Location": f"/v1/audits/{found.id}", "Retry-After": str(RETRY_SECONDS), **write.headers}
    return json_reply(audit_json(found), 202, headers)


def _looked_at(asked: ItemAsked) -> _Ready:
    """Everything that can be said of an item before anything is stored."""
    try:
        if asked.run is not None:
            return _Ready(asked=asked)
        queue, program = queue_of(asked), program_of(asked)
        limits = asked.limits
        wanted = Wanted(
            queue=queue,
            device=asked.device,
            isolation=asked.isolation,
            processes=limits.processes,
            disk_bytes=limits.disk_bytes,
        )
        with context().database.read() as transaction:
            least = offered(transaction, wanted)
    except Problem as error:
        return _Ready(asked=asked, problem=_problem(error))
    return _Ready(asked=asked, program=program, queue=queue, least=least)


def _problem(error: Problem) -> dict[str, Any]:
    places = [place.as_json() for place in error.places]
    return {"code": error.code, "detail": error.detail, "errors": places}


def _item(transaction: Transaction, one: _Ready, place: projects.Project) -> NewItem:
    """The item to be stored, with its run."""
    name = one.asked.custom_id
    if one.problem is not None:
        return NewItem(custom_id=name, problem=one.problem)
    if one.program is None:
        try:
            return NewItem(custom_id=name, run_id=run_of(transaction, str(one.asked.run)).run_id)
        except Problem as error:
            return NewItem(custom_id=name, problem=_problem(error))
    submission = submission_of(one.asked, one.program, one.queue, one.least, place, custom_id=name)
    return NewItem(custom_id=name, run_id=runs.submit(transaction, submission).run_id)


@blueprint.get("/v1/audits")
@query(AuditsQuery)
@answers({200: Answer(text="A page of audits, newest first.", model=AuditList, headers=("Link",))})
def list_audits(query: AuditsQuery) -> Response:
    """The audits, newest first."""
    asked = caller()
    after = after_of("audits", query)
    if asked.project is not None and query.project not in {None, asked.project}:
        return page_reply("audits", query, [], None)
    with context().database.read() as transaction:
        page = audits.page(
            transaction,
            tenant_id=asked.tenant_id,
            of_project=asked.project or query.project,
            of_policy=query.policy,
            status=query.status or (),
            verdict=query.verdict or (),
            after=None if after is None else (after[0], after[1]),
            limit=query.limit,
        )
    return page_reply("audits", query, [audit_json(one) for one in page.items], page.next)


@blueprint.get("/v1/audits/<audit>")
@query(NoQuery)
@answers({200: Answer(text="The audit.", model=AuditTold, headers=("ETag",))})
def get_audit(audit: str) -> Response:
    """One audit: how far it is, and what it came to."""
    with context().database.read() as transaction:
        found = audit_of(transaction, audit)
    return json_reply(audit_json(found), headers=audit_headers(found))


@blueprint.post("/v1/audits/<audit>/cancel")
@body(Nothing, optional=True)
@answers(
    {202: Answer(text="The audit as it is now.", model=AuditTold)},
    problems=ONCE,
    headers=("Idempotency-Key",),
    scope="audits:write",
)
def cancel_audit(audit: str) -> Response:
    """End an audit without a verdict; runs that it began are canceled. One that has ended stays as it is."""
    with effect() as write:
        found = audit_of(write.transaction, audit)
        if write.known is None:
            for run in audits.cancel(write.transaction, found):
                runs.request_cancel(write.transaction, run, tenant_id=found.tenant_id)
            write.done("audit.cancel", found.id)
            found = audit_of(write.transaction, audit)
    return json_reply(audit_json(found), 202, write.headers)


@blueprint.post("/v1/audits/<audit>/judge")
@body(Nothing, optional=True)
@answers(
    {202: Answer(text="The audit as it is now.", model=AuditTold)},
    problems=ONCE,
    headers=("Idempotency-Key",),
    scope="audits:write",
)
def judge_audit(audit: str) -> Response:
    """Judge all runs of an audit by today's rules, then the audit: a second verdict beside the first.

    One that was never judged, or is being judged, stays as it is.
    """
    with effect() as write:
        found = audit_of(write.transaction, audit)
        if write.known is None:
            if found.status == "judged":
                audits.again(write.transaction, found)
            write.done("audit.judge", found.id)
            found = audit_of(write.transaction, audit)
    return json_reply(audit_json(found), 202, write.headers)


def audit_of(transaction: Transaction, public_id: str) -> Audit:
    """The audit of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    found = audits.get(transaction, public_id, tenant_id=asked.tenant_id) if is_id("aud", public_id) else None
    if found is None or asked.project not in {None, found.project}:
        raise Problem("not-found", f"There is no audit {public_id[:40]}.")
    return found


def audit_headers(found: Audit) -> dict[str, str]:
    """ETag of an audit. Its runs may be judged again at any time, so nothing below it is kept."""
    return {"ETag": f'"{found.version}"', "Cache-Control": "no-cache"}


def audit_json(found: Audit) -> dict[str, Any]:
    """As `AuditTold` describes it."""
    last = found.verdicts[-1] if found.verdicts else None
    counted = {} if last is None else last.counts["items"]
    items = {name.replace("-", "_"): counted.get(name) for name in ("pass", "warn", "fail", "error", "not-run")}
    base = f"/v1/audits/{found.id}"
    names = (
        "id", "name", "status", "version", "policy", "policy_revision", "baseline", "project", "labels",
        "created_by", "created_at", "finished_at",
    )  # fmt: skip
    return {
        **{name: getattr(found, name) for name in names},
        "verdict": None if last is None else last.verdict,
        "items": {"total": found.items, "running": found.running, **items},
        "findings": None if last is None else last.counts["findings"],
        "ruleset": None if last is None else last.ruleset,
        "verdicts": len(found.verdicts),
        "reasons": [] if last is None else last.counts["reasons"],
        "links": {
            "self": base,
            "items": f"{base}/items",
            "matrix": f"{base}/matrix",
            "findings": f"{base}/findings",
            "sarif": f"{base}/findings?format=sarif",
        },
    }
