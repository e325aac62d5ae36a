"""What a run includes on request, so that an editor needs no second call: `include=findings,tensors,source`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from service.api.findings.finding_json import with_trials
from service.api.findings.findings import FindingsQuery
from service.api.records.source_json import source_json
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
    """Load what `include=` asks for: the first page of each list, with the cursor of its second."""
    if not names:
        return None
    told: dict[str, Any] = {"findings": None, "tensors": None, "source": None}
    if "findings" in names:
        found = findings.page(transaction, run, limit=MOST_INCLUDED)
        cursor = None if found.next is None else sign(f"{run.id} findings", FindingsQuery().filters(), [found.next])
        told["findings"] = {"items": with_trials(transaction, found.items, wanted=True), "next_cursor": cursor}
    if "tensors" in names:
        seen = queries.tensors_told(transaction, run, limit=MOST_INCLUDED)
        cursor = None if seen.next is None else sign(f"{run.id} tensors", TensorsQuery().filters(), [seen.next])
        told["tensors"] = {"items": seen.items, "next_cursor": cursor}
    if "source" in names and run.snippet is not None and (entry := queries.source(transaction, run)) is not None:
        told["source"] = source_json(run, entry)
    return told
