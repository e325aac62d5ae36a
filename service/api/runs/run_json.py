"""One run as JSON, and the ways to it: by its id, or not at all."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from service.auth.caller import caller
from service.problems.errors import Problem
from store import queries
from store.database.ids import is_id
from store.runs import lifecycle
from store.runs.model import RunRow, RunView

if TYPE_CHECKING:
    from store.database.session import Transaction

_NOT_SHOWN: Final = {field.name for field in fields(RunRow)} - {field.name for field in fields(RunView)}
_GONE: Final = {
    "kept-until": "The record of {id} was kept until {until}, and then deleted.",
    "deleted": "The record of {id} was deleted on request.",
    "database-full": "The record of {id} was dropped before its time: the database was nearly full, and more than your "
    "share of it was yours.",
}
"""Why a record is gone, by `RunRow.record_gone`."""


def run_of(transaction: Transaction, public_id: str) -> RunRow:
    """Load the run of that id.

    Raises:
        Problem: `not-found`, with the same text whether the id is unknown or of another tenant.
    """
    asked = caller()
    run = lifecycle.get(transaction, public_id, tenant_id=asked.tenant_id) if is_id("run", public_id) else None
    if run is None or asked.project not in {None, run.project}:
        raise Problem("not-found", f"There is no run {public_id[:40]}.")
    return run


def require_record(run: RunRow) -> RunRow:
    """Return the same run if its record may still be read.

    Raises:
        Problem: `record-expired`.
    """
    if run.record.state == "expired":
        said = _GONE.get(run.record_gone or "", "The record of {id} has been deleted; nobody noted why.")
        raise Problem("record-expired", said.format(id=run.id, until=run.kept_until))
    return run


def run_json(run: RunRow, included: dict[str, Any] | None = None) -> dict[str, Any]:
    """Convert a run to JSON as `RunTold` describes it."""
    told = queries.as_json(run)
    for name in _NOT_SHOWN:
        del told[name]
    base = f"/v1/runs/{run.id}"
    below = ("tensors", "snapshots", "backward_calls", "graph", "findings", "source", "output", "events", "cancel")
    links = {name: f"{base}/{name.replace('_', '-')}" for name in below}
    return {
        **told,
        "links": {"self": base, **links, "page": f"/runs/{run.id}"},
        "included": included,
    }
