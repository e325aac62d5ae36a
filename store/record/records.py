"""Save and load a record: `load(save(record)) == record`, the same tuples on either database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from store.record.bulk import write
from store.record.load import load_record
from store.record.rows import record_batches
from store.run import RunKey
from store.session import Transaction

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
    """The record saved under a key; None: there is none (or its header never came)."""
    return load_record(transaction, key)
