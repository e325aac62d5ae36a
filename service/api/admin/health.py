"""Is the process alive, and can it take runs? Asked by health checks, which hold no key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.context import context
from service.openapi.document import Answer, Operations, answers
from service.process.home import probe
from service.process.readiness import standing
from service.schemas.responses.runs import Health, Readiness
from service.web.reply import json_reply
from store.admin import workers
from store.database import migrator
from store.runs.model import QUEUES

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Response

    from service.process.readiness import Standing
    from store.runs.model import Queue
    from store.telemetry.broker_probe import BrokerFailure

blueprint = Operations("health", __name__, tag="Operation")


@blueprint.get("/healthz")
@answers({200: Answer(text="It lives.", model=Health)})
def get_health() -> Response:
    """The process lives; nothing is read or written for this answer."""
    return json_reply({"status": "ok"})


def _database() -> tuple[str, str, dict[str, int], dict[Queue, Standing]]:
    """State of the database, of its schema; live workers, and what runs get, by queue."""
    shared = context()
    found: dict[Queue, Standing] = {}
    try:
        with shared.database.read() as transaction:
            live = workers.live(transaction)
            found = {queue: standing(shared, transaction, queue) for queue in QUEUES}
    except Exception:  # noqa: BLE001 - whichever way a database is away or empty, it is not ready
        live = None
    try:
        schema = "at-head" if migrator.at_head(shared.settings.store.database_url) else "behind"
    except Exception:  # noqa: BLE001 - the same
        return "unavailable", "unknown", {}, {}
    if live is None:
        return ("ok" if schema == "behind" else "unavailable"), schema, {}, {}
    by_queue = {str(queue): sum(queue in node.queues for node in live) for queue in QUEUES}
    return "ok", schema, by_queue, found


def _home(home: Path) -> str:
    try:
        probe(home)
    except OSError:
        return "not-writable"
    return "writable"


def _isolation_to_json(found: Standing) -> dict[str, Any]:
    """Return the isolation as JSON, with its reasons (which may contain paths) only if the service demands no key."""
    shown = found if context().settings.is_open else found.without_reasons()
    return {"state": shown.state, "levels": list(shown.levels), "why": list(shown.why)}


def _list_outages(failure: BrokerFailure | None, found: dict[Queue, Standing]) -> list[str]:
    """List what keeps accepted runs from being executed now."""
    broken = any(level.state in ("broken", "cannot-start") for level in found.values())
    return [*(["broker"] if failure is not None else []), *(["workers"] if broken else [])]


@blueprint.get("/readyz")
@answers(
    {
        200: Answer(text="Runs are taken.", model=Readiness),
        503: Answer(text="Not ready; the fields say why.", model=Readiness),
    }
)
def get_readiness() -> Response:
    """Database reachable, schema at head, home writable, and workers that can start: all four, or 503.

    A broker that is away, or workers that live and can execute nothing, are `degraded`: runs are taken, and wait.
    """
    shared = context()
    database, schema, by_queue, found = _database()
    home = _home(shared.settings.store.home)
    failure = shared.broker.find_failure()
    can_start = all(level.state != "cannot-start" for level in found.values())
    ready = can_start and (database, schema, home) == ("ok", "at-head", "writable")
    told: dict[str, Any] = {
        "status": "ready" if ready else "not-ready",
        "degraded": _list_outages(failure, found),
        "database": database,
        "schema": schema,
        "home": home,
        "broker": "ok" if failure is None else "unavailable",
        "missing_modules": [] if failure is None or failure.missing_module is None else [failure.missing_module],
        "isolation": {queue: _isolation_to_json(level) for queue, level in found.items()},
        "workers": by_queue,
        "wakeups_failed": shared.wakeups.failed,
    }
    return json_reply(told, 200 if ready else 503, {"Cache-Control": "no-store"})
