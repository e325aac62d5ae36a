"""An audit of many items that comes as JSON: begun open and empty, then stored piece by piece.

1. Up to 50 items are stored with their audit, in one transaction (`audits.py`). More are several transactions, between
   which others write: 1,000 in one kept a SQLite file for half a second.
2. There must be room for all before the first is stored. What is refused in between all the same, because another
   request took the room, cancels the audit.
3. Under its Idempotency-Key the same request goes on behind what is stored, should the service end in between.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from service.api.audits.audit_entry import item_of, known_runs
from service.auth.caller import caller
from service.context import context
from service.web.idempotency import (
    Effect,
    begin_key,
    build_mismatch_problem,
    digest_of_request,
    given_key,
    in_flight,
    within_quotas,
)
from store.access import idempotency, projects
from store.access.quotas import demand_gpu
from store.audits import audit_uploads, audits
from store.runs.submission import QueuedCounts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from service.api.audits.audit_entry import Entry
    from store.access.projects import Project
    from store.audits.audits import Audit
    from store.database.session import Transaction

    Begun = Callable[[Transaction], tuple[Project, str, int]]


def take(entries: Sequence[Entry], begun: Begun) -> tuple[str, dict[str, str]]:
    """Store an audit with these items; its public id, and headers of the answer.

    Args:
        entries: Its items, looked at.
        begun: Stores the audit, open and empty: its project, public id and number.

    Raises:
        Problem: as of `create_audit`.
    """
    key, tenant_id, stored = given_key(), caller().tenant_id, 0
    with within_quotas(), context().database.begin() as transaction:
        known = None if key is None else idempotency.find_key(transaction, key, tenant_id=tenant_id)
        if known is not None:
            found = _same(transaction, known)
            if known.over:
                return known.about or "", {"Idempotent-Replayed": "true"}
            if found is None:  # it is of another project
                raise build_mismatch_problem()
            place, public_id, number = projects.load_by_number(transaction, found.project_id), found.id, found.number
            stored = found.items
        else:
            place, public_id, number = _begin(transaction, key, entries, begun)
    try:
        for first in range(stored, len(entries), audit_uploads.AT_ONCE):
            _store(number, first, entries[first : first + audit_uploads.AT_ONCE], place)
        with context().database.begin() as transaction:
            audit_uploads.close(transaction, number, len(entries))
            if key is not None:
                answer = idempotency.Answer(status=200, body=public_id.encode())
                idempotency.done(transaction, key, answer, tenant_id=tenant_id)
    except audit_uploads.Overtaken:
        with context().database.read() as transaction:
            found = audits.get(transaction, public_id, tenant_id=tenant_id)
        if found is not None and found.status == "open":
            raise in_flight() from None
    except Exception:
        with context().database.begin() as transaction:
            audit_uploads.give_up(transaction, number)
            if key is not None:
                idempotency.free(transaction, key, tenant_id=tenant_id)
        raise
    return public_id, {}


def _same(transaction: Transaction, known: idempotency.TakenKey) -> Audit | None:
    """Load the audit that this very request began before."""
    if known.request_hash != digest_of_request():
        raise build_mismatch_problem()
    found = audits.get(transaction, known.about or "", tenant_id=caller().tenant_id)
    return found if found is not None and caller().project in {None, found.project} else None


def _begin(
    transaction: Transaction, key: str | None, entries: Sequence[Entry], begun: Begun
) -> tuple[Project, str, int]:
    asking, shared = caller(), context()
    if key is not None:
        begin_key(transaction, key, digest_of_request())
    shared.room.demand(transaction, tenant_id=asking.tenant_id)
    place, public_id, number = begun(transaction)
    queues = Counter(entry.queue for entry in entries if entry.program is not None)
    for queue, count in queues.items():
        shared.backlog.check(transaction, queue, count, tenant_id=asking.sharing)
    if queues:
        QueuedCounts().keep_days(transaction, asking.tenant_id, place.number, queues.total())
    if queues["gpu"]:
        demand_gpu(transaction, tenant_id=asking.tenant_id)
    if key is not None:
        idempotency.advance(transaction, key, digest_of_request(), public_id, tenant_id=asking.tenant_id)
    write = Effect(transaction=transaction, key=None, known=None)
    write.done("audit.create", public_id, detail={"items": len(entries)})
    return place, public_id, number


def _store(number: int, first: int, entries: Sequence[Entry], place: Project) -> None:
    """Store the items from this place on, and begin their runs."""
    queues = Counter(entry.queue for entry in entries if entry.program is not None)
    with within_quotas(), context().database.begin() as transaction:
        audit_uploads.hold(transaction, number, first)
        for queue, count in queues.items():
            context().backlog.demand(transaction, queue, count, tenant_id=caller().sharing)
        known, counted = known_runs(transaction, entries), QueuedCounts()
        items = [item_of(transaction, entry, place, known, counted) for entry in entries]
        audit_uploads.grow(transaction, number, first, items)
    for queue in sorted(queues):
        context().wakeups.publish(queue)
