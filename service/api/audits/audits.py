"""Create, read, cancel and judge audits. `audit_views` returns their results."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from flask import Response

from service.api.access.projects import place_of_caller
from service.api.audits import audit_lines, audit_pieces
from service.api.audits.audit_entry import item_of, known_runs, looked_at
from service.api.audits.audit_lists import AuditsQuery, audits_asked
from service.api.audits.policies import policy_of
from service.api.records.record import NoQuery
from service.auth.caller import caller
from service.context import context
from service.limits.seats import asked_seconds
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Problem
from service.schemas.audit_requests import AuditAsked, AuditHead, ItemAsked
from service.schemas.requests import Nothing
from service.schemas.responses.audits import AuditList, AuditTold
from service.web.body import body, query
from service.web.idempotency import effect, storing
from service.web.reply import SAME, conditional, json_reply, page_reply
from store.audits import audit_uploads, audits, deletion
from store.audits.audits import Audit, NewAudit
from store.audits.policy import VERDICTS
from store.database.ids import is_id
from store.runs import lifecycle
from store.runs.submission import QueuedCounts

if TYPE_CHECKING:
    from store.access.projects import Project
    from store.database.session import Transaction

blueprint = Operations("audits", __name__, tag="Audits")

RETRY_SECONDS = 2


@blueprint.post("/v1/audits")
@body(AuditAsked, lines=(AuditHead, ItemAsked))
@answers(
    {
        202: Answer(text="Begun; Location has it.", model=AuditTold, headers=("Location", "Retry-After")),
        200: Answer(text="Ended while waited for.", model=AuditTold, headers=("Location", "Preference-Applied")),
    },
    problems=("not-found", "queue-full", "too-many-streams", *STORING, *ONCE),
    headers=("Prefer", "Idempotency-Key", "traceparent"),
    scope="audits:write",
    rate="submits",
)
def create_audit(body: AuditAsked | None) -> Response:
    """Run many programs and judge them together.

    An item that cannot be run does not fail the audit: the item has state `not-run` and its problem. As NDJSON an
    audit has up to 50,000 items: line 1 is the audit, each further line an item. Lines are stored as they arrive: an
    upload that broke, or was answered with a `Retry-After`, continues from where it stopped when it is sent again with
    its `Idempotency-Key`. Such an audit is `open` until its last line has come. At the 100th line that is no item, or
    whose program does not parse, the upload is refused whole, and the audit canceled: `errors` lists these lines.
    """
    if body is None:
        with context().lists.seat():
            public_id, more = audit_lines.take(_open)
    else:
        public_id, more = _create_audit(body)
    found, waited = waited_for(public_id)
    headers = {"Location": f"/v1/audits/{found.id}", **waited, **more}
    if found.finished_at is not None:
        return json_reply(audit_json(found), 200, headers)
    return json_reply(audit_json(found), 202, {**headers, "Retry-After": str(RETRY_SECONDS)})


def _create_audit(body: AuditAsked) -> tuple[str, dict[str, str]]:
    """Store the audit with all its items, at once or in pieces; return its public id, and headers of the answer."""
    entries = [looked_at(body.whole(item)) for item in body.items]
    if len(entries) > audit_uploads.AT_ONCE:
        return audit_pieces.take(entries, lambda transaction: _open(transaction, body))
    queues = Counter(entry.queue for entry in entries if entry.program is not None)
    with storing() as write:
        if write.known is not None:
            return (write.known.body or b"").decode(), write.headers
        place, new = _new(write.transaction, body)
        for queue, count in queues.items():
            context().backlog.demand(write.transaction, queue, count, tenant_id=caller().sharing)
        known = known_runs(write.transaction, entries)
        counted = QueuedCounts()
        items = [item_of(write.transaction, entry, place, known, counted) for entry in entries]
        public_id = audits.create(write.transaction, new, items, tenant_id=caller().tenant_id)
        write.done("audit.create", public_id, detail={"items": len(items)})
    for queue in sorted(queues):
        context().wakeups.publish(queue)
    return public_id, write.headers


def _new(transaction: Transaction, head: AuditHead) -> tuple[Project, NewAudit]:
    """Where an audit comes into, and what is stored of it.

    Raises:
        Problem: `not-found`: its project, policy or baseline.
    """
    place = place_of_caller(transaction, head.project)
    policy = None if head.policy is None else policy_of(transaction, head.policy)
    base = None if head.baseline is None else audit_of(transaction, head.baseline)
    return place, NewAudit(
        name=head.name,
        project_id=place.number,
        created_by=caller().actor,
        policy_id=None if policy is None else policy.number,
        baseline_id=None if base is None else base.number,
        labels=head.labels,
    )


def _open(transaction: Transaction, head: AuditHead) -> tuple[Project, str, int]:
    place, new = _new(transaction, head)
    return place, *audits.begin(transaction, new, tenant_id=caller().tenant_id)


def waited_for(public_id: str) -> tuple[Audit, dict[str, str]]:
    """Wait for the audit's end as `Prefer: wait=N` asks; return it, and what the answer says of the waiting.

    Raises:
        Problem: `not-found`.
    """
    shared, seconds = context(), asked_seconds()

    def load() -> Audit:
        with shared.database.read() as transaction:
            return audit_of(transaction, public_id)

    audit = load()
    if seconds is None:
        return audit, {}
    waited = audit.finished_at is not None or shared.waiters.wait_until(lambda: load().finished_at is not None, seconds)
    return (load() if waited else audit), {"Preference-Applied": f"wait={seconds}"} if waited else {}


@blueprint.get("/v1/audits")
@query(AuditsQuery)
@answers({200: Answer(text="A page of audits, newest first.", model=AuditList, headers=("Link",))})
def list_audits(query: AuditsQuery) -> Response:
    """The audits, newest first."""
    items, following = audits_asked("audits", query)
    return page_reply("audits", query, [audit_json(item) for item in items], following)


@blueprint.get("/v1/audits/<audit>")
@query(NoQuery)
@answers(
    {200: Answer(text="The audit.", model=AuditTold, headers=("ETag", "Preference-Applied")), 304: SAME},
    headers=("Prefer", "If-None-Match"),
)
def get_audit(audit: str) -> Response:
    """One audit: how far it is, and what it came to; with `Prefer: wait=N` as soon as it has ended."""
    found, waited = waited_for(audit)
    return conditional(json_reply(audit_json(found), headers={**audit_headers(found), **waited}))


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
                lifecycle.request_cancel(write.transaction, run, tenant_id=found.tenant_id)
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


@blueprint.delete("/v1/audits/<audit>")
@answers({204: Answer(text="Gone, with its items and verdicts.")}, problems=("audit-not-ended",), scope="audits:write")
def delete_audit(audit: str) -> Response:
    """Delete an audit that has ended. Its runs stay; an audit that has it as its baseline keeps its verdicts."""
    database = context().database
    with database.read() as transaction:
        found = audit_of(transaction, audit)
    try:
        deletion.empty(database, found)
        with effect() as write:
            found = audit_of(write.transaction, audit)
            deletion.delete(write.transaction, found)
            write.done("audit.delete", found.id, detail={"items": found.items})
    except deletion.NotEnded as error:
        said = f"{error}."
        raise Problem("audit-not-ended", said[0].upper() + said[1:]) from None
    return Response(status=204)


def audit_of(transaction: Transaction, public_id: str) -> Audit:
    """Load the audit of that id.

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
    items = {name.replace("-", "_"): counted.get(name) for name in VERDICTS}
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
            "events": f"{base}/events",
            "matrix": f"{base}/matrix",
            "findings": f"{base}/findings",
            "sarif": f"{base}/findings?format=sarif",
        },
    }
