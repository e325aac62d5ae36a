"""Workers, queues and usage: what a tenant may know of them, and the operator all."""

from __future__ import annotations

import datetime
import hmac
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BeforeValidator, Field

from service.api.records.record import NoQuery
from service.auth.caller import caller
from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.problems.errors import Place, Problem
from service.schemas.responses.operation import QueuesTold, UsageTold, WorkerList
from service.web.body import Strict, query
from service.web.parameters import Page
from service.web.reply import json_reply, page_reply, read_cursor
from store.access import usage
from store.admin import workers
from store.queries import as_json

if TYPE_CHECKING:
    from flask import Response

    from store.admin.workers import WorkerNode

blueprint = Operations("operation", __name__, tag="Operation")

MOST_DAYS: Final = 92
"""Of usage in one answer: each day is a sum over its runs."""

_USUAL_DAYS: Final = 30


def _day(value: object) -> object:
    try:
        return datetime.date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        message = "A day is written like 2026-11-20"
        raise ValueError(message) from None


Day = Annotated[datetime.date, BeforeValidator(_day, json_schema_input_type=str)]


class DaysQuery(Strict):
    """Which days."""

    first: Day | None = Field(default=None, alias="from", description="The first day (UTC); 30 days before `to`.")
    last: Day | None = Field(default=None, alias="to", description="The last day (UTC); today.")

    def days(self) -> tuple[datetime.date, datetime.date]:
        """Return the first day and the last one.

        Raises:
            Problem: `too-much-asked`.
        """
        last = self.last or datetime.datetime.now(datetime.UTC).date()
        first = self.first or max(datetime.date.min + datetime.timedelta(_USUAL_DAYS), last) - datetime.timedelta(
            _USUAL_DAYS - 1
        )
        days = (last - first).days + 1
        if days > MOST_DAYS:
            detail = f"{days} days were requested; at most {MOST_DAYS} are allowed."
            place = Place(parameter="from", code="too-much-asked", detail=detail)
            raise Problem("too-much-asked", detail, places=(place,))
        return first, last


@blueprint.get("/v1/workers")
@query(Page)
@answers({200: Answer(text="A page of workers.", model=WorkerList, headers=("Link",))})
def list_workers(query: Page) -> Response:
    """Workers that have beaten in the last minute: what they offer. Whose machine, and how busy, the operator sees."""
    after = read_cursor("workers", query)
    rest = [worker for worker in list_live_workers() if after is None or worker["id"] > after[0]]
    shown = rest[: query.limit]
    return page_reply("workers", query, shown, [shown[-1]["id"]] if len(rest) > query.limit else None)


def list_live_workers() -> list[dict[str, Any]]:
    """Return the live workers as the caller may see them, by id."""
    with context().database.read() as transaction:
        live = workers.live(transaction)
    return sorted((_worker_to_json(_id(node), node) for node in live), key=lambda worker: worker["id"])


def _id(node: WorkerNode) -> str:
    """Make an id that is the same for a worker as long as it lives, and says nothing about its machine."""
    return f"wrk_{hmac.digest(context().settings.secret, b'worker ' + node.id.encode(), 'sha256').hex()[:20]}"


def _worker_to_json(public_id: str, node: WorkerNode) -> dict[str, Any]:
    operates = caller().operates and caller().may("admin")
    return {
        "id": public_id,
        "node": node.id if operates else None,
        "queues": list(node.queues),
        "levels": list(node.levels),
        "devices": list(node.devices),
        "versions": dict(node.versions),
        "slots": node.slots,
        "busy": node.busy if operates else None,
        "draining": node.draining,
        "sandbox": node.probe.get("sandbox", "ready" if node.levels else "broken"),
        "broken": node.probe.get("why") if operates else None,
        "heartbeat_seconds": round(node.silent_seconds, 1),
    }


@blueprint.get("/v1/queue")
@query(NoQuery)
@answers({200: Answer(text="The queues, as they stand.", model=QueuesTold)})
def get_queue() -> Response:
    """How many runs wait and run, and how long the oldest has waited: one's own, or, for the operator, all."""
    return json_reply(load_queues(), headers={"Cache-Control": "no-store"})


def load_queues() -> dict[str, Any]:
    """Return the queues as `QueuesTold` has them: of the service for the operator, else of the caller's."""
    asked = caller()
    whole = asked.operates and asked.may("admin")
    with context().database.read() as transaction:
        found = usage.queues(
            transaction, tenant_id=None if whole else asked.tenant_id, project_id=None if whole else asked.project_id
        )
    of = "service" if whole else "tenant" if asked.project is None else "project"
    return {"of": of, "queues": as_json(found)}


@blueprint.get("/v1/usage")
@query(DaysQuery)
@answers({200: Answer(text="Usage by day.", model=UsageTold)}, problems=("too-much-asked",))
def get_usage(query: DaysQuery) -> Response:
    """What runs used, by the day on which they were accepted: at most 92 days, and days without runs are left out."""
    return json_reply(load_usage(query))


def load_usage(query: DaysQuery) -> dict[str, Any]:
    """Return the caller's usage as `UsageTold` has it.

    Raises:
        Problem: `too-much-asked`.
    """
    asked = caller()
    first, last = query.days()
    with context().database.read() as transaction:
        found = usage.by_day(
            transaction,
            tenant_id=asked.tenant_id,
            project_id=asked.project_id,
            first=first.isoformat(),
            last=last.isoformat(),
        )
    items = as_json(found)
    names = ("runs", "wall_seconds", "gpu_seconds", "snapshots", "record_bytes")
    total = {"day": f"{first}/{last}", **{name: sum(getattr(day, name) for day in found) for name in names}}
    return {"items": items, "total": total}
