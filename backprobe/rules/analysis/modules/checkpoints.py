"""Calls of `torch.utils.checkpoint`: which there are, and how the program writes them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement

if TYPE_CHECKING:
    from backprobe.record import Record, WatchedCall


def checkpoint_calls(record: Record) -> dict[int, list[WatchedCall]]:
    """The calls by the site of their statement, in order."""
    found: dict[int, list[WatchedCall]] = {}
    for call in record.watched_calls:
        if call.function.startswith("torch.utils.checkpoint.") and call.site is not None:
            found.setdefault(call.site, []).append(call)
    return found


def written_call(record: Record, site: int, col: int | None) -> ast.Call | None:
    """The checkpoint call in a statement: the one at the recorded column."""
    row = site_of(record, site)
    node = statement(record, row)
    found = [part for part in ast.walk(node) if isinstance(part, ast.Call)] if node is not None else []
    here = [part for part in found if region_in(record, row.source, part).start_col == col]
    named = [part for part in here or found if "checkpoint" in last_name(part.func)]
    return next(iter(named or here), None)  # what a method is called on begins where its own call begins
