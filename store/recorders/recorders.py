"""Watched runs: a recorder in somebody's training job makes its run, and sends its record frame by frame.

1. The id is the client's, so that a job can start with the service away; its time decides where the record lies.
2. Frames are numbered from 0 and taken in order. The same one again is no error, so that a sender may repeat what it
   was not told about; a gap is refused with the number that is wanted, and nothing is lost.
3. Whoever takes a frame holds the run's row, and so does whoever ends it (`store.recorders.ending`): a frame is in the
   record of the end, or it is refused.
4. No worker has any part in this: claims, retries and the count of runs in hand leave these runs out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from store.access.quotas import QuotaExceeded
from store.database.ids import part
from store.database.session import Transaction
from store.recorders.recorder_requests import (
    LEASE_SECONDS,
    Differs,
    Misplaced,
    Missing,
    NotWatched,
    Recording,
    RunEnded,
    SentFrame,
    TooLarge,
    Unknown,
)
from store.recorders.run_ids import check_time
from store.records.expiry import partitions
from store.runs.claims import RECORDER
from store.runs.limits import Limits
from store.runs.model import ENDED, Claim
from store.runs.submission import NOTHING_YET
from store.runs.transitions import in_status, leave_event
from store.tables import Now, frame, recorder, run, run_attempt

MOST_BYTES: Final = 64 << 20
MOST_ROWS: Final = 2_000_000
MOST_FRAMES: Final = 100_000
"""Of one run, in all its frames."""

MOST_OPEN: Final = 1000
"""Runs of one tenant that recorders send at a time."""

_OPEN: Final = sa.select(sa.func.count()).where(
    run.c.tenant_id == sa.bindparam("its_tenant"), in_status("running"), run.c.origin == "watched"
)
_FACTS: Final[dict[str, Any]] = {
    **{name: Now() for name in ("created_at", "queued_at", "rank_at", "not_before", "started_at", "heartbeat_at")},
    "lease_owner": RECORDER,
    "status": "running",
    "origin": "watched",
    "queue": "cpu",
    "min_isolation": "none",
    "priority": 5,
    "attempt": 1,
    "max_attempts": 1,
    "arguments": [],
    "limits": {},
    **NOTHING_YET,
}
_HOLD: Final = (
    sa.select(run)
    .where(run.c.public_id == sa.bindparam("its_id"), run.c.tenant_id == sa.bindparam("its_tenant"))
    .with_for_update()  # SQLite has no such clause, and needs none: BEGIN IMMEDIATE
)
_RECORDER: Final = sa.select(recorder).where(recorder.c.run_id == sa.bindparam("its_run"))
_HASHES: Final = sa.select(frame.c.n, frame.c.sha256).where(
    frame.c.run_id == sa.bindparam("its_run"), frame.c.n.between(sa.bindparam("first"), sa.bindparam("last"))
)
_Numbered = tuple[int, bytes, SentFrame]
"""A frame with its number and the hash of its bytes."""


def begin(transaction: Transaction, asked: Recording) -> bool:
    """Make the run. False: the same request had made it.

    Raises:
        Unknown: another tenant has a run of this id, or a project that the caller does not see.
        Differs: the caller's tenant has it, made by another request. Ended: it has ended.
        TimeRefused: the time in the id. QuotaExceeded: too many recorders at a time.
    """
    if _is_there(transaction, asked):
        return False
    check_time(transaction, asked)
    partitions.ensure(transaction, part(asked.public_id))
    opened = transaction.execute(_OPEN, {"its_tenant": asked.tenant_id}).scalar_one()
    if opened >= MOST_OPEN:
        raise QuotaExceeded("recorders", opened, MOST_OPEN)
    insert = postgresql.insert if transaction.dialect.name == "postgresql" else sqlite.insert
    values = {
        "public_id": asked.public_id,
        "part": part(asked.public_id),
        "tenant_id": asked.tenant_id,
        "project_id": asked.project_id,
        "labels": dict(asked.labels),
        "capture": dict(asked.capture),
        "tier": asked.capture.get("tier"),
        "torch_version": asked.environment.get("torch"),
        "created_by": asked.created_by,
        "traceparent": asked.traceparent,
    }
    values |= {name: Now(asked.lease_seconds) for name in ("queue_deadline", "kept_until", "lease_until")}
    made = insert(run).values(values | _FACTS).on_conflict_do_nothing().returning(run.c.id, run.c.part, run.c.events)
    row = transaction.execute(made).first()
    if row is None:  # made by another request since we looked
        if _is_there(transaction, asked):
            return False
        raise Unknown(asked.public_id)
    what = {"run_id": row.id, "asked": asked.asked, "environment": dict(asked.environment), "next_frame": 0, "rows": 0}
    transaction.execute(sa.insert(recorder), what)
    attempt = {"run_id": row.id, "attempt": 1, "worker": RECORDER}
    transaction.execute(sa.insert(run_attempt).values(started_at=Now()), attempt)
    leave_event(transaction, row, "claimed", asked.public_id, attempt=1)
    return True


def _is_there(transaction: Transaction, asked: Recording) -> bool:
    query = (
        sa.select(run.c.tenant_id, run.c.project_id, run.c.origin, run.c.status, recorder.c.asked)
        .outerjoin_from(run, recorder, recorder.c.run_id == run.c.id)
        .where(run.c.public_id == asked.public_id)
    )
    row = transaction.execute(query).first()
    if row is None:
        return False
    if row.tenant_id != asked.tenant_id or asked.sees_project not in {None, row.project_id}:
        raise Unknown(asked.public_id)
    if row.origin != "watched":
        raise Differs(f"run {asked.public_id} is there, and was {row.origin}, not made by a recorder")
    if row.status in ENDED:
        raise RunEnded(f"run {asked.public_id} has ended: it is {row.status}")
    if bytes(row.asked) != asked.asked:
        raise Differs(f"run {asked.public_id} was made by a request that said something else")
    return True


def lock_run(transaction: Transaction, public_id: str, *, tenant_id: int = 1, sees_project: int | None = None) -> Any:
    """Lock the run's row until the transaction ends, and return it.

    Raises:
        Unknown: the caller sees no such run. Differs: no recorder made it.
    """
    row = transaction.execute(_HOLD, {"its_id": public_id, "its_tenant": tenant_id}).first()
    if row is None or sees_project not in {None, row.project_id}:
        raise Unknown(public_id)
    if row.origin != "watched":
        raise NotWatched(f"run {public_id} was {row.origin}, not made by a recorder")
    return row


def claim_of(row: Any, *, worker: str, lease_seconds: float) -> Claim:
    """Make the claim by which a recorder or the service writes a watched run's record. It has no program.

    Args:
        row: Of `run`.
        worker: Who writes.
        lease_seconds: As `Claim` has it.
    """
    return Claim(
        run_id=row.id,
        public_id=row.public_id,
        part=row.part,
        tenant_id=row.tenant_id,
        project_id=row.project_id,
        attempt=row.attempt,
        max_attempts=row.attempt,
        worker=worker,
        files={},
        entry="",
        arguments=(),
        limits=Limits(),
        capture=row.capture,
        seed=None,
        rules=None,
        queue="cpu",
        device_class=None,
        min_isolation="none",
        lease_seconds=lease_seconds,
        cancel_requested=row.cancel_requested_at is not None,
    )


def recorder_of(transaction: Transaction, run_id: int) -> Any:
    """Load the row of a run's recorder. After `lock_run` it is the newest."""
    return transaction.execute(_RECORDER, {"its_run": run_id}).one()


def take(
    transaction: Transaction,
    public_id: str,
    n: int,
    *sent: SentFrame,
    tenant_id: int = 1,
    sees_project: int | None = None,
    lease_seconds: float = LEASE_SECONDS,
) -> int:
    """Keep frames, and the run for another `lease_seconds`; the number of the next frame that is wanted.

    Args:
        transaction: To write by.
        public_id: The run's.
        n: Number of the first of `sent`; the others follow it. Those that have come before change nothing.
        sent: One or more: all that are new are kept, or none.
        tenant_id: Whose run.
        sees_project: The only project that the caller sees; None: all of the tenant's.
        lease_seconds: Silence after which the recorder is taken to be gone.

    Raises:
        Unknown: there is no such run. Missing: frames before them. Differs: one had come with other bytes.
        Ended: some are new, and the run takes no more. TooLarge, Misplaced.
    """
    row = lock_run(transaction, public_id, tenant_id=tenant_id, sees_project=sees_project)
    state = recorder_of(transaction, row.id)
    numbered = [(at, hashlib.sha256(sent_frame.body).digest(), sent_frame) for at, sent_frame in enumerate(sent, n)]
    fresh = _fresh(transaction, row, state, numbered)
    if not fresh:
        return state.next_frame  # also after the end: they are in the record
    is_over = row.cancel_requested_at is not None or row.lease_owner != RECORDER or state.told is not None
    if row.status in ENDED or is_over:
        said = row.status if row.status in ENDED else "being ended"
        raise RunEnded(f"run {public_id} takes no more frames: it is {said}")
    if fresh[0][0] > state.next_frame:
        raise Missing(f"frame {fresh[0][0]} has come before frame {state.next_frame}", state.next_frame)
    frames = [sent_frame for _, _, sent_frame in fresh]
    _check_places(state.last, frames)
    _check_size(row, state, frames)
    transaction.execute(
        sa.insert(frame).values(at=Now()),
        [
            {"run_id": row.id, "n": at, "sha256": digest, "size_bytes": len(sent_frame.body), "body": sent_frame.body}
            for at, digest, sent_frame in fresh
        ],
    )
    wanted = state.next_frame + len(frames)
    rows = state.rows + sum(sent_frame.rows for sent_frame in frames)
    counted = {"next_frame": wanted, "rows": rows, "last": frames[-1].kind}
    transaction.execute(sa.update(recorder).where(recorder.c.run_id == row.id).values(**counted))
    kept = {"lease_until": Now(lease_seconds), "heartbeat_at": Now(), "version": run.c.version + 1}
    kept["record_bytes"] = run.c.record_bytes + sum(len(sent_frame.body) for sent_frame in frames)
    transaction.execute(sa.update(run).where(run.c.id == row.id).values(**kept))
    return wanted


def _fresh(transaction: Transaction, row: Any, state: Any, numbered: Sequence[_Numbered]) -> Sequence[_Numbered]:
    """Those of the frames that have not come; of an ended run also those whose hash is not known any more.

    Raises:
        Differs: one had come with other bytes.
    """
    first, last = numbered[0][0], numbered[-1][0]
    known: dict[int, bytes] = {}
    if first < state.next_frame:
        which = {"its_run": row.id, "first": first, "last": last}
        known = {found.n: bytes(found.sha256) for found in transaction.execute(_HASHES, which)}
    fresh: list[_Numbered] = []
    for at, digest, sent_frame in numbered:
        if at < state.next_frame and known.get(at) == digest:
            continue
        if at < state.next_frame and row.status not in ENDED:
            raise Differs(f"frame {at} of run {row.public_id} has come, with other bytes")
        fresh.append((at, digest, sent_frame))
    return fresh


def _check_places(last: str | None, sent: Sequence[SentFrame]) -> None:
    for sent_frame in sent:
        if last == "end":
            raise Misplaced("bytes-after-end", "a frame follows the end frame")
        if last is None and sent_frame.kind != "header":
            raise Misplaced("no-header", "the first frame is not a header")
        if last is not None and sent_frame.kind == "header":
            raise Misplaced("second-header", "a second header frame")
        last = sent_frame.kind


def _check_size(row: Any, state: Any, sent: Sequence[SentFrame]) -> None:
    for what, there, more, most in (
        ("bytes", row.record_bytes, sum(len(sent_frame.body) for sent_frame in sent), MOST_BYTES),
        ("rows", state.rows, sum(sent_frame.rows for sent_frame in sent), MOST_ROWS),
        ("frames", state.next_frame, len(sent), MOST_FRAMES),
    ):
        if there + more > most:
            said = f"run {row.public_id} has {there:,} {what}, and may have {most:,}: {more:,} more are too many"
            raise TooLarge(said)
