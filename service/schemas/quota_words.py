"""The quotas of a tenant in words, for the command line and for pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

QUOTA_WORDS: Final[Mapping[str, str]] = {
    "max_queued": "runs that may wait; more are refused",
    "max_running": "runs that should run at once",
    "weight": "share of the workers where all wait: twice the weight, twice the runs",
    "max_record_bytes": "bytes stored, of records and all else; beyond them nothing more is stored",
    "keep_days": "days that a record is kept after its run",
    "max_gpu_seconds": "seconds of the queue gpu in a month (UTC); beyond them submits to it are refused",
}
"""By the names of `store.access.tenants.BOUNDS`."""
