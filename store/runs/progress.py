"""How far a run has come: an event every few seconds while it goes on, of a few numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import sqlalchemy as sa

from store.database.session import Transaction
from store.runs.claims import Beat, renew
from store.runs.model import Claim
from store.runs.transitions import leave_event
from store.tables import run

PROGRESS_SECONDS: Final = 10.0
"""Between two of them at most: a run of a day leaves 8,640."""

FIRST_PROGRESS_SECONDS: Final = 2.0
"""Between the first ones, for a person who has just started the run; then a tenth of its time so far."""


def progress(transaction: Transaction, claim: Claim, counts: Mapping[str, int]) -> Beat:
    """Leave a `progress` event under the fence.

    Args:
        transaction: To write by.
        claim: Whose attempt.
        counts: What has come so far: tensors, moments, snapshots, backward_calls, steps.

    Raises:
        FencedOut: the attempt is stale; the transaction can only be rolled back.
    """
    beat = renew(transaction, claim)
    counted = sa.update(run).where(run.c.id == claim.run_id)
    counted = counted.values(version=run.c.version + 1, events=run.c.events + 1)
    row = transaction.execute(counted.returning(run.c.id, run.c.part, run.c.events)).one()
    leave_event(transaction, row, "progress", claim.public_id, attempt=claim.attempt, payload=counts)
    return beat
