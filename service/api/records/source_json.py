"""The source of a run as JSON: of `/source`, and of `include=source`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from store import queries

if TYPE_CHECKING:
    from store.queries import SourceFile
    from store.runs.model import RunRow

MOST_LINES: Final = 2000
"""Told at once."""


def source_json(run: RunRow, found: SourceFile, first: int = 1, last: int = MOST_LINES) -> dict[str, Any]:
    """Lines `first` to `last` of a file, from 1, and how much of the run was looked at for them."""
    return {
        "path": found.path,
        "files": list(found.files),
        "line_count": len(found.lines),
        "steps_made": run.record.steps_made,
        "steps_looked_at": run.record.steps_looked_at,
        "lines": queries.as_json(found.lines[first - 1 : last]),
    }
