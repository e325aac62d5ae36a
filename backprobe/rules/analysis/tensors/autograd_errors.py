"""Exceptions of autograd by what they say. A text only selects a suspect; the rule must prove it from the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.record.families import family_of
from backprobe.rules.analysis.source.syntax import is_same_statement
from backprobe.rules.framework.rule import Level

if TYPE_CHECKING:
    from backprobe.record import Raised, Record


def raised_as(record: Record, *families: str) -> list[Raised]:
    """The exceptions of these families (`backprobe.record.families`), in the order in which they were raised.

    A record from before families were stored is read by its texts.
    """
    return [row for row in record.raised if (row.family or family_of(row.message)) in families]


def raised_with_text(record: Record, text: str) -> list[Raised]:
    """The exceptions at a statement of the program whose message contains this text: those of no known family."""
    return [row for row in record.raised if text in row.message and row.site is not None]


def level_of(record: Record, raised: Raised) -> Level:
    """An exception that ended the program is an error; one that it caught is its decision, so it is a note.

    One that passed a `finally`, or was raised again, has two rows: the program ended with what the first one says.
    """
    last = next((row for row in record.raised if record.end is not None and row.n == record.end.exception), None)
    ended = last is not None and (last.type, last.message) == (raised.type, raised.message)
    return "note" if raised.caught and not ended else "error"


def level_at(record: Record, site: int | None) -> Level | None:
    """An error where the program ended with an exception in that statement; None for the rule's own level."""
    last = next((row for row in record.raised if record.end is not None and row.n == record.end.exception), None)
    return "error" if last is not None and is_same_statement(record, last.site, site) else None
