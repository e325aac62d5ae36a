"""Submitting, and running again: check everything, store the run, wake a worker, and perhaps wait for the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flask import g

from service.api.access.projects import place_of_caller
from service.api.runs.isolation_offer import WorkerRequirements, choose_level, least_for
from service.api.runs.limit_maxima import allowed_limits, repeated_limits
from service.api.runs.run_includes import included_json
from service.api.runs.run_json import run_json, run_of
from service.api.runs.snippets import load_program, of_files, of_source
from service.auth.caller import caller
from service.context import context
from service.limits.seats import asked_seconds
from service.openapi.document import ONCE, STORING, Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.program_checks import Snippet
from service.schemas.requests import DEVICES, RerunAsked, RulesAsked, RunAsked
from service.schemas.responses.runs import RunTold
from service.web.body import body, query
from service.web.idempotency import storing
from service.web.parameters import Included
from service.web.reply import etag_of, json_reply
from store.runs import lifecycle
from store.runs.limits import Limits
from store.runs.model import Submission

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flask import Response

    from backprobe.isolation import IsolationLevel
    from store.access.projects import Project
    from store.runs.model import Queue, RunRow

blueprint = Operations("submit", __name__, tag="Runs")

RETRY_SECONDS = 1
_SPECIAL = (
    "not-found",
    "syntax-error",
    "no-entry-point",
    "unknown-device",
    "isolation-unavailable",
    "too-large",
    "queue-full",
    *STORING,
)


def program_of(asked: RunAsked) -> Snippet:
    """Check the program that was sent, or load the one that was named, which was checked when it was sent."""
    if asked.snippet is not None:
        known = load_program(asked.snippet)
        known.check_room(_limits(asked).disk_bytes)
        return known
    if asked.source is not None:
        sent = of_source(asked.source, asked.entry)
    else:
        sent = of_files(asked.files or [], asked.entry)
    sent.check(caller().tenant_id)
    sent.check_room(_limits(asked).disk_bytes)
    return sent


def queue_of(asked: RunAsked) -> Queue:
    """Choose the queue whose workers have the device.

    Raises:
        Problem: `unknown-device`; `invalid-request` if device and queue disagree.
    """
    queue = DEVICES.get(asked.device)
    if queue is None:
        detail = f"There is no device {asked.device!r}; there are {' and '.join(DEVICES)}."
        raise Problem(
            "unknown-device", detail, places=(Place(pointer="#/device", code="unknown-device", detail=detail),)
        )
    if asked.queue is not None and asked.queue != queue:
        detail = f"The device {asked.device} is in the queue {queue}, not {asked.queue}."
        raise Problem(
            "invalid-request", detail, places=(Place(pointer="#/queue", code="not-its-queue", detail=detail),)
        )
    return "gpu" if queue == "gpu" else "cpu"


def submission_of(
    asked: RunAsked,
    snippet: Snippet,
    queue: Queue,
    least: IsolationLevel,
    place: Project,
    *,
    custom_id: str | None = None,
) -> Submission:
    """Build what is to be queued, with all that the request leaves open."""
    asking = caller()
    return Submission(
        files=snippet.files,
        entry=snippet.entry,
        named=snippet.named,
        arguments=tuple(asked.arguments),
        queue=queue,
        device_class=asked.device_class,
        min_isolation=least,
        limits=_limits(asked),
        capture=asked.capture.to_stored(),
        seed=asked.seed,
        rules=_rules(asked.rules) if asked.rules is not None else (dict(place.settings) or None),
        priority=asked.priority,
        labels=asked.labels,
        created_by=asking.actor,
        tenant_id=asking.tenant_id,
        project_id=place.number,
        custom_id=custom_id,
        traceparent=_traceparent(),
    )


def _limits(asked: RunAsked) -> Limits:
    return allowed_limits(asked.limits.model_dump(exclude_none=True))


def _traceparent() -> str | None:
    """Return the trace that the worker continues: this request's, if it is part of one."""
    return None if g.span is None else g.span.traceparent


def _rules(asked: RulesAsked | None) -> dict[str, Any] | None:
    """Return what is stored of the rules: what was given; None: all rules, as they are."""
    return (asked.model_dump(exclude_unset=True) or None) if asked is not None else None


@blueprint.post("/v1/runs")
@body(RunAsked)
@query(Included)
@answers(
    {
        202: Answer(text="Queued; Location has it.", model=RunTold, headers=("Location", "Retry-After")),
        200: Answer(text="Ended while waited for.", model=RunTold, headers=("Location", "Preference-Applied", "ETag")),
    },
    problems=("not-found", "source-not-kept", *_SPECIAL, *ONCE),
    headers=("Prefer", "Idempotency-Key", "traceparent"),
    scope="runs:write",
    rate="submits",
)
def submit_run(body: RunAsked, query: Included) -> Response:
    """Submit a snippet.

    Everything is checked before anything is stored. With `Prefer: wait=N` the answer is the ended run, if it ends
    within N seconds.
    """
    run, headers = _submit(body)
    return told_run(run, query.include, headers)


def submit_source(text: str) -> str:
    """Submit a program of one file with all defaults, as a form of a page does; return the id of its run."""
    return _submit(RunAsked(source=text))[0]


def _submit(asked: RunAsked) -> tuple[str, Mapping[str, str]]:
    """Queue a run and wake a worker; return the id of the run and the headers of the answer."""
    shared = context()
    queue, snippet = queue_of(asked), program_of(asked)
    least = least_for(asked, queue)
    with storing() as write:
        if write.known is None:
            shared.backlog.demand(write.transaction, queue, tenant_id=caller().sharing)
            place = place_of_caller(write.transaction, asked.project)
            run = lifecycle.enqueue(write.transaction, submission_of(asked, snippet, queue, least, place)).id
            write.done("run.submit", run, run=run)
        else:
            run = str(write.known.run)
    if write.known is None:
        shared.wakeups.publish(queue)
    return run, write.headers


@blueprint.post("/v1/runs/<run>/rerun")
@body(RerunAsked, optional=True)
@query(Included)
@answers(
    {
        202: Answer(text="A new run is queued; Location has it.", model=RunTold, headers=("Location", "Retry-After")),
        200: Answer(text="Ended while waited for.", model=RunTold, headers=("Location", "Preference-Applied", "ETag")),
    },
    problems=("source-not-kept", "unknown-device", "isolation-unavailable", "queue-full", *STORING, *ONCE),
    headers=("Prefer", "Idempotency-Key", "traceparent"),
    scope="runs:write",
    rate="submits",
)
def rerun_run(run: str, body: RerunAsked, query: Included) -> Response:
    """Run the same program again, with everything as it was but for what the body says. `rerun_of` names the first."""
    shared = context()
    queue: Queue | None = None
    with storing() as write:
        if write.known is None:
            first = run_of(write.transaction, run)
            files = lifecycle.program_of(write.transaction, first)
            if files is None or first.entry is None:
                raise Problem("source-not-kept", f"The program of run {first.id} is not kept.")
            again = build_rerun(body, first, files)
            pointers = dict.fromkeys(files, "#")
            Snippet(files=files, entry=again.entry, pointers=pointers).check_room(again.limits.disk_bytes)
            wanted = WorkerRequirements(
                queue=again.queue,
                device="cuda" if again.queue == "gpu" else "cpu",
                isolation=again.min_isolation,
                processes=body.limits.processes,
                disk_bytes=body.limits.disk_bytes,
                limits=again.limits,
                device_class=again.device_class,
            )
            least = choose_level(write.transaction, wanted)
            shared.backlog.demand(write.transaction, again.queue, tenant_id=caller().sharing)
            new = lifecycle.enqueue(write.transaction, replace(again, min_isolation=least)).id
            write.done("run.rerun", new, run=new, detail={"of": first.id})
            queue = again.queue
        else:
            new = str(write.known.run)
    if queue is not None:
        shared.wakeups.publish(queue)
    return told_run(new, query.include, write.headers)


def build_rerun(asked: RerunAsked, first: RunRow, files: Mapping[str, str]) -> Submission:
    """Build the submission of the same run with these files, and with what is asked for otherwise."""
    asking = caller()
    given = asked.model_fields_set
    return Submission(
        files=files,
        entry=str(first.entry),
        named=first.named is not False,
        arguments=first.arguments,
        queue=asked.queue if asked.queue is not None else first.queue,
        device_class=first.device_class if asked.queue in {None, first.queue} else None,
        min_isolation=asked.isolation if asked.isolation is not None else first.min_isolation,
        limits=repeated_limits(first.limits, asked.limits.model_dump(exclude_none=True)),
        capture=asked.capture.to_stored() if asked.capture is not None else first.capture,
        seed=asked.seed if "seed" in given else first.seed,
        rules=_rules(asked.rules) if "rules" in given else first.rules,
        priority=first.priority,
        labels=first.labels,
        created_by=asking.actor,
        rerun_of=first.id,
        tenant_id=asking.tenant_id,
        project_id=first.project_id,
        traceparent=_traceparent(),
    )


def told_run(public_id: str, include: Sequence[str], more: Mapping[str, str]) -> Response:
    """Answer the client that began a run: 200 with its end, if that came while it was waited for, else 202."""
    shared = context()
    seconds = asked_seconds()
    waited = seconds is not None and shared.waiters.wait(public_id, seconds, caller().tenant_id)
    with shared.database.read() as transaction:
        run = run_of(transaction, public_id)
        told = run_json(run, included_json(transaction, run, include))
    headers = {"Location": f"/v1/runs/{run.id}", **more}
    if waited:
        headers["Preference-Applied"] = f"wait={seconds}"
    if run.ended:
        return json_reply(told, 200, {**headers, "Content-Location": headers["Location"], "ETag": etag_of(run)})
    return json_reply(told, 202, {**headers, "Retry-After": str(RETRY_SECONDS)})
