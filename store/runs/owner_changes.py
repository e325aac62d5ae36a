"""What its owner changes of a run that is there: labels, how long the record is kept, and whether it is kept at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.records.expiry.sweep import delete_records
from store.runs.model import RunRow
from store.runs.reading.run_rows import by_number
from store.runs.transitions import in_status, leave_event, tell
from store.tables import Now, run, snippet, snippet_file

AT_ONCE: Final = 20_000
"""Rows and snapshots of a record up to which it goes in the transaction itself: more would hold other writers up."""

_its: Final = run.c.id == sa.bindparam("its_number")
_other: Final = run.alias("other")
_FORGOTTEN: Final = (
    sa.update(run)
    .where(_its, ~sa.or_(in_status("queued"), in_status("running")), run.c.record_state != "expired")
    .values(
        record_state="expired",
        record_gone="deleted",
        record_bytes=0,
        pinned=False,
        kept_until=Now(),
        judge_due_at=None,
        version=run.c.version + 1,
        events=run.c.events + 1,
    )
    .returning(run.c.id, run.c.part, run.c.public_id, run.c.events, run.c.snippet_id)
)
_PROGRAM: Final = (
    sa.select(snippet_file.c.path, snippet_file.c.body)
    .join_from(snippet_file, run, run.c.snippet_id == snippet_file.c.snippet_id)
    .where(_its, snippet_file.c.is_text)
    .order_by(snippet_file.c.n)
)
_LOCK_SOURCE: Final = sa.select(snippet.c.id).where(snippet.c.id == sa.bindparam("its_snippet")).with_for_update()
_SOURCE_GONE: Final = sa.delete(snippet_file).where(
    snippet_file.c.snippet_id == sa.bindparam("its_snippet"),
    ~sa.exists(
        sa.select(_other.c.id).where(
            _other.c.snippet_id == sa.bindparam("its_snippet"),
            sa.or_(_other.c.record_state != "expired", _other.c.status.in_(("queued", "running"))),
        )
    ),
)


def program_of(transaction: Transaction, found: RunRow) -> Mapping[str, str] | None:
    """Load the text of the run's program by path; None if it has none, or the program is deleted."""
    rows = transaction.execute(_PROGRAM, {"its_number": found.run_id}).all()
    return {row.path: row.body.decode() for row in rows} or None


def change(
    transaction: Transaction,
    found: RunRow,
    *,
    labels: Mapping[str, str] | None = None,
    pinned: bool | None = None,
    kept_until: str | None = None,
) -> RunRow | None:
    """Write what is given, if the run still is at the version that was read.

    Args:
        transaction: To write by.
        found: The run as its reader saw it.
        labels: Replaces all of its labels; None: as they are.
        pinned: Its record is never expired; None: as it is.
        kept_until: Time, ISO 8601 in UTC, from which its record may be deleted; None: as it is.

    Returns:
        The run as it then is; None: somebody else changed it meanwhile, and nothing was written.
    """
    asked: dict[str, Any] = {"labels": labels, "pinned": pinned, "kept_until": kept_until}
    given = {name: value for name, value in asked.items() if value is not None}
    if given:
        written = transaction.execute(
            sa.update(run)
            .where(run.c.id == found.run_id, run.c.version == found.version)
            .values(**given, version=run.c.version + 1)
            .returning(run.c.id)
        ).first()
        if written is None:
            return None
        tell(transaction, found.id)
    return by_number(transaction, found.run_id)


def forget(transaction: Transaction, found: RunRow) -> bool:
    """Delete the record, the output and the source of an ended run; its row and its findings stay.

    The source stays while another run of the same program has not been forgotten. The rows of a large record go bit by
    bit within the hour (`retention.leftovers`), and nobody reads them meanwhile. A second time changes nothing.

    Returns:
        Something was deleted.
    """
    row = transaction.execute(_FORGOTTEN, {"its_number": found.run_id}).first()
    if row is None:
        return False
    if found.record.snapshots + found.record.nodes + found.record.tensors <= AT_ONCE:
        delete_records(transaction, row.part, row.id)
    which = {"its_snippet": row.snippet_id}
    transaction.execute(_LOCK_SOURCE, which)  # nobody submits the same program between the look and the deletion
    transaction.execute(_SOURCE_GONE, which)
    leave_event(transaction, row, "status", row.public_id, payload={"status": found.status, "record": "expired"})
    return True
