"""Is the process alive, and can it take runs? Asked by health checks, which hold no key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apiflask import APIBlueprint

from service.api.reply import json_reply
from service.context import context
from service.home import probe
from service.openapi import Answer, answers
from service.told.runs import Health, Readiness
from store import migrate, workers

if TYPE_CHECKING:
    from pathlib import Path

    from flask import Response

blueprint = APIBlueprint("health", __name__, tag="Operation")


@blueprint.get("/healthz")
@answers({200: Answer(text="It lives.", model=Health)})
def get_health() -> Response:
    """The process lives; nothing is read or written for this answer."""
    return json_reply({"status": "ok"})


def _database() -> tuple[str, str, dict[str, int]]:
    """State of the database, of its schema, and live workers by queue."""
    shared = context()
    try:
        with shared.database.read() as transaction:
            live = workers.live(transaction)
    except Exception:  # noqa: BLE001 - whichever way a database is away or empty, it is not ready
        live = None
    try:
        schema = "at-head" if migrate.at_head(shared.settings.store.database_url) else "behind"
    except Exception:  # noqa: BLE001 - the same
        return "unavailable", "unknown", {}
    if live is None:
        return ("ok" if schema == "behind" else "unavailable"), schema, {}
    by_queue = {queue: sum(queue in node.queues for node in live) for queue in ("cpu", "gpu")}
    return "ok", schema, by_queue


def _home(home: Path) -> str:
    try:
        probe(home)
    except OSError:
        return "not-writable"
    return "writable"


@blueprint.get("/readyz")
@answers(
    {
        200: Answer(text="Runs are taken.", model=Readiness),
        503: Answer(text="Not ready; the fields say why.", model=Readiness),
    }
)
def get_readiness() -> Response:
    """Database reachable, schema at head, home writable: all three, or 503. Workers and broker are reported only."""
    shared = context()
    database, schema, by_queue = _database()
    home = _home(shared.settings.store.home)
    ready = (database, schema, home) == ("ok", "at-head", "writable")
    told: dict[str, Any] = {
        "status": "ready" if ready else "not-ready",
        "database": database,
        "schema": schema,
        "home": home,
        "workers": by_queue,
        "wakeups_failed": shared.wakeups.failed,
    }
    return json_reply(told, 200 if ready else 503, {"Cache-Control": "no-store"})
