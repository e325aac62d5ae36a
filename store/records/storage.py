"""Save and load a record: `load(save(record)) == record`, the same tuples on either database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from store.database.session import Transaction
from store.records.bulk import write
from store.records.reader import load_record
from store.records.rows import record_batches
from store.runs.model import RunKey

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules import WhyNone


def save(transaction: Transaction, key: RunKey, record: Record, whys: Mapping[int, WhyNone] | None = None) -> None:
    """Write all rows of a record under a key that has none yet.

    Statistics are float32 by definition: capture rounds them, and what it did not round is rounded here.

    Raises:
        BadRecord: a number does not fit its column; nothing was written.
    """
    write(transaction, key, record_batches(record, whys))


def load(transaction: Transaction, key: RunKey) -> Record | None:
    """Load the record saved under a key; None if there is none, or its header never came."""
    return load_record(transaction, key)
