"""`POST /v1/runs`: check everything, store the run, wake a worker, and perhaps wait for the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apiflask import APIBlueprint

from service.api.asked import DEVICES, Included, RunAsked
from service.api.body import body, pointer, query
from service.api.effect import effect
from service.api.reply import etag_of, json_reply
from service.api.run_json import included_json, run_json, run_of
from service.api.told import RunTold
from service.caller import caller
from service.context import context
from service.errors import Place, Problem
from service.openapi import ONCE, Answer, answers
from service.snippet import SOURCE_NAME, Snippet
from service.waiting import asked_seconds
from store import runs, tenants, workers
from store.limits import Limits
from store.run import LEVELS, Submission

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flask import Response

    from store.run import Level, Queue
    from store.session import Transaction

blueprint = APIBlueprint("submit", __name__, tag="Runs")

RETRY_SECONDS = 1
FULL_SECONDS = 10
"""After which a tenant whose queue is full may try again."""

_SPECIAL = ("syntax-error", "no-entry-point", "unknown-device", "isolation-unavailable", "too-large", "quota-exceeded")


def _snippet(asked: RunAsked) -> Snippet:
    if asked.source is not None:
        return Snippet(files={SOURCE_NAME: asked.source}, entry=SOURCE_NAME, pointers={SOURCE_NAME: "#/source"})
    files = asked.files or []
    texts: dict[str, str] = {}
    for at, file in enumerate(files):
        if file.path in texts:
            detail = f"{file.path} is there twice."
            place = Place(pointer=pointer(("files", at, "path")), code="doubled-path", detail=detail)
            raise Problem("invalid-request", detail, places=(place,))
        texts[file.path] = file.text
    entry = asked.entry or (files[0].path if len(files) == 1 else None)
    if entry is None or entry not in texts:
        detail = "Several files, and no `entry`." if entry is None else f"{entry} is not among `files`."
        raise Problem(
            "no-entry-point", detail, places=(Place(pointer="#/entry", code="no-entry-point", detail=detail),)
        )
    pointers = {file.path: pointer(("files", at, "text")) for at, file in enumerate(files)}
    return Snippet(files=texts, entry=entry, pointers=pointers)


def _queue(asked: RunAsked) -> Queue:
    """The queue whose workers have the device.

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


def _demanded(asked: RunAsked, levels: Sequence[Level]) -> tuple[Level, str]:
    """The least level at which a run can have what it asks for, and the limit that asks for it (empty: none does).

    Several processes need namespaces of their own; a folder to write to is at every level but `process`.
    """
    if (asked.limits.processes or 1) > 1 and LEVELS.index(asked.isolation) < LEVELS.index("namespace"):
        return "namespace", "processes"
    best = max(levels, key=LEVELS.index)
    if asked.limits.disk_bytes and best != "none" and LEVELS.index(asked.isolation) <= LEVELS.index("process"):
        return "namespace", "disk_bytes"
    return asked.isolation, ""


def _check_offer(transaction: Transaction, asked: RunAsked, queue: Queue) -> Level:
    """The least level demanded. What no live worker can give is refused; while none is alive, only `none` is known."""
    offer = workers.offered(transaction, queue)
    if asked.device != "cpu" and not offer.workers and workers.live(transaction):
        detail = f"No live worker has the device {asked.device}; those that live serve the CPU only."
        raise Problem(
            "unknown-device", detail, places=(Place(pointer="#/device", code="unknown-device", detail=detail),)
        )
    levels = offer.levels or ("none",)
    least, limit = _demanded(asked, levels)
    enough = LEVELS.index(least) <= max(LEVELS.index(level) for level in levels)
    grouped = (asked.limits.processes or 1) == 1 or offer.cgroups
    if enough and grouped:
        return least
    who = f"Live workers of the queue {queue} offer: {', '.join(levels)}"
    if enough:
        who += ", and none of them can make cgroups; `backprobe doctor` says why"
    if not offer.workers:
        who = f"No worker of the queue {queue} is alive, so no level but none is known to be offered"
    detail = f"{who}. Asked for was {least}{f', by `limits.{limit}`' if limit else ''}."
    place = Place(pointer=f"#/limits/{limit}" if limit else "#/isolation", code="isolation-unavailable", detail=detail)
    raise Problem("isolation-unavailable", detail, places=(place,))


def _submission(asked: RunAsked, snippet: Snippet, queue: Queue, least: Level, project_id: int) -> Submission:
    asking = caller()
    return Submission(
        files=snippet.files,
        entry=snippet.entry,
        arguments=tuple(asked.arguments),
        queue=queue,
        device_class=asked.device_class,
        min_isolation=least,
        limits=Limits.from_request(asked.limits.model_dump(exclude_none=True)),
        capture=asked.capture.model_dump(),
        seed=asked.seed,
        priority=asked.priority,
        labels=asked.labels,
        created_by=asking.actor,
        tenant_id=asking.tenant_id,
        project_id=project_id,
    )


@blueprint.post("/v1/runs")
@body(RunAsked)
@query(Included)
@answers(
    {
        202: Answer(text="Queued; Location has it.", model=RunTold, headers=("Location", "Retry-After")),
        200: Answer(text="Ended while waited for.", model=RunTold, headers=("Location", "Preference-Applied", "ETag")),
    },
    problems=(*_SPECIAL, *ONCE),
    headers=("Prefer", "Idempotency-Key"),
    scope="runs:write",
)
def submit_run(body: RunAsked, query: Included) -> Response:
    """Submit a snippet.

    Everything is checked before anything is stored. With `Prefer: wait=N` the answer is the ended run, if it ends
    within N seconds.
    """
    shared = context()
    snippet, queue = _snippet(body), _queue(body)
    snippet.check()
    with shared.database.read() as transaction:
        least = _check_offer(transaction, body, queue)
    try:
        with effect() as write:
            if write.known is None:
                project_id = caller().project_id or tenants.first_project(write.transaction, caller().tenant_id)
                run = runs.submit(write.transaction, _submission(body, snippet, queue, least, project_id)).id
                write.done("run.submit", run, run=run)
            else:
                run = str(write.known.run)
    except runs.QueueFull as full:
        raise Problem("quota-exceeded", f"{full}.", headers={"Retry-After": str(FULL_SECONDS)}) from None
    if write.known is None:
        shared.wakeups.publish(queue)
    return _told(run, query.include, write.headers)


def _told(public_id: str, include: Sequence[str], more: Mapping[str, str]) -> Response:
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
