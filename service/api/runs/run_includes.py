"""What is told with a run on request, so that an editor needs no second call: `include=findings,tensors`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from service.api.findings.findings import FindingsQuery
from service.api.records.tensor_filters import TensorsQuery
from service.web.reply import sign
from store import queries
from store.findings import findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database.session import Transaction
    from store.runs.model import RunRow

MOST_INCLUDED: Final = 100


def included_json(transaction: Transaction, run: RunRow, names: Sequence[str]) -> dict[str, Any] | None:
    """What `include=` asks for: the first page of each list, with the cursor of its second."""
    if not names:
        return None
    told: dict[str, Any] = {"findings": None, "tensors": None}
    if "findings" in names:
        found = findings.page(transaction, run, limit=MOST_INCLUDED)
        cursor = None if found.next is None else sign(f"{run.id} findings", FindingsQuery().filters(), [found.next])
        told["findings"] = {"items": [row.json() for row in found.items], "next_cursor": cursor}
    if "tensors" in names:
        seen = queries.tensors_told(transaction, run, limit=MOST_INCLUDED)
        cursor = None if seen.next is None else sign(f"{run.id} tensors", TensorsQuery().filters(), [seen.next])
        told["tensors"] = {"items": seen.items, "next_cursor": cursor}
    return told
