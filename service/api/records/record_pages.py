"""Pages of what lies below a run, and answers that are refused for their size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.api.runs.run_json import require_record, run_of
from service.context import context
from service.problems.errors import Problem
from service.web.reply import cache_headers, not_modified, page_reply, read_cursor
from store import queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flask import Response

    from service.web.parameters import Page
    from store.database.session import Transaction
    from store.runs.model import RunRow

    PageOf = Callable[[Transaction, RunRow, Sequence[Any] | None], tuple[Sequence[Any], Sequence[Any] | None]]


def page_below(run: str, what: str, query: Page, page_of: PageOf) -> Response:
    """Answer with a page of a list below a run, or 304.

    Args:
        run: Public id.
        what: The list's name, which its cursors are bound to.
        query: Limit, cursor and filters.
        page_of: Rows behind a key, and the key of the last one; None at the end.
    """
    with context().database.read() as transaction:
        row = require_record(run_of(transaction, run))
        listing = f"{row.id} {what}"
        after = read_cursor(listing, query)
        if same := not_modified(row):
            return same
        items, last = page_of(transaction, row, after)
    return page_reply(listing, query, queries.as_json(items), last, cache_headers(row))


def too_much(error: queries.TooMuch) -> Problem:
    """Return the refusal of an answer that would be too large."""
    return Problem("too-much-asked", f"{error}.")
