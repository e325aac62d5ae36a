"""The only writer of `run.status`: statements that move a run along `store.runs.states.NEXT`.

1. A move names the status it comes from; if the run has another by now, the statement changes no row.
2. Every move raises `version` and `events`, writes a `run_event` and tells those who wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.states import NEXT, WAITING
from store.tables import Now, run, run_event

CHANNEL: Final = "backprobe_run"
"""PostgreSQL's NOTIFY channel; the payload is the run's public id."""


def build_transition(before: str, after: str) -> sa.Update:
    """Build an UPDATE of runs from one status to another. The caller adds the rest of WHERE and the facts of the end.

    The words stand in the SQL itself, because only then the partial indices on status serve.

    Raises:
        ValueError: `NEXT` has no such arrow.
    """
    if after not in NEXT[before]:
        raise ValueError(f"a run cannot go from {before} to {after}")
    facts: dict[str, Any] = {
        "status": _word(after),
        "version": run.c.version + 1,
        "events": run.c.events + 1,
    }
    if before == "running":
        facts |= {"lease_until": None, "lease_owner": None}
    if after not in WAITING:
        facts |= {"finished_at": Now()}
    return sa.update(run).where(run.c.status == _word(before)).values(facts)


def in_status(status: str) -> sa.ColumnElement[bool]:
    """Build a condition that the partial indices on status can serve."""
    return run.c.status == _word(status)


def _word(status: str) -> sa.ColumnElement[str]:
    if status not in NEXT:
        raise ValueError(f"no status {status!r}")
    return sa.literal_column(f"'{status}'", sa.Text())


_EVENT: Final = sa.insert(run_event).values(
    {"at": Now()}
    | {
        column.name: sa.bindparam(f"event_{column.name}", type_=column.type)
        for column in run_event.columns
        if column.name != "at"
    }
)
_NOTIFY: Final = sa.select(sa.func.pg_notify(sa.bindparam("channel"), sa.bindparam("told")))


@cache
def _in_one(beside: sa.Insert | sa.Update | None) -> sa.Select[Any]:
    both = (_EVENT.cte("event"),) if beside is None else (_EVENT.cte("event"), beside.cte("beside"))
    return _NOTIFY.add_cte(*both)


def leave_event(
    transaction: Transaction,
    place: Any,
    kind: str,
    public_id: str,
    *,
    attempt: int | None = None,
    payload: Mapping[str, Any] | None = None,
    beside: tuple[sa.Insert | sa.Update, Mapping[str, Any]] | None = None,
) -> None:
    """Write the event that a changed run's row counted, and wake those who wait for the run (`tell`).

    Args:
        transaction: The one that changed it.
        place: A row with the run's `part`, `id` and `events` after the change.
        kind: As in `run_event`.
        public_id: The run's.
        attempt: During which; None: none.
        payload: A few facts; never content of a record.
        beside: A statement of the module's own with its parameters, which goes along: on PostgreSQL all of this is one
            round trip, and a claim with its end takes a fifth less time.
    """
    facts: dict[str, Any] = {"part": place.part, "run_id": place.id, "seq": place.events, "kind": kind}
    facts |= {"attempt": attempt, "payload": dict(payload or {})}
    event = {f"event_{name}": value for name, value in facts.items()}
    if transaction.dialect.name != "postgresql":
        transaction.execute(_EVENT, event)
        if beside is not None:
            transaction.execute(*beside)
        return
    event |= {"channel": CHANNEL, "told": public_id}
    if beside is not None:
        event |= beside[1]
    transaction.execute(_in_one(None if beside is None else beside[0]), event)


def tell(transaction: Transaction, public_id: str) -> None:
    """Wake those who wait for this run, when the transaction commits. On SQLite they see the commit itself."""
    if transaction.dialect.name == "postgresql":
        transaction.execute(_NOTIFY, {"channel": CHANNEL, "told": public_id})
