"""The source, line by line, with what happened on each line."""

from __future__ import annotations

from store.queries.answers import SourceFile
from store.run import RunRow
from store.session import Transaction


def source(transaction: Transaction, run: RunRow, *, path: str | None = None) -> SourceFile | None:
    """A file of the run's snippet, annotated; it needs no record, only then nothing is annotated.

    Args:
        path: One of the snippet's; None: the entry.

    Returns:
        None: no such file.
    """
    raise NotImplementedError
