"""Whether a record shows the whole of a run: only then is what it lacks evidence that it did not happen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record


@table
def is_whole_run(record: Record) -> bool:
    """The program came to its end, no cap bit, every backward call was walked, and the recorder made no error."""
    end = record.end
    if end is None or end.exit_code != 0 or end.own_errors or record.truncated or record.header.tier == "state":
        return False
    return not any(call.truncated or call.entry == "unseen" for call in record.backward_calls)
