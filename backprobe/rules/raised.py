"""Exceptions of autograd by what they say. A text only selects a suspect; the rule must prove it from the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from backprobe.rules.rule import Level
from backprobe.rules.syntax import is_same_statement

if TYPE_CHECKING:
    from backprobe.record import Raised, Record

Family = Literal["freed-graph", "changed-in-place", "no-history"]

_TEXTS: Final[dict[Family, tuple[str, ...]]] = {
    "freed-graph": ("Trying to backward through the graph a second time",),
    "changed-in-place": ("has been modified by an inplace operation",),
    "no-history": (
        "does not require grad and does not have a grad_fn",
        "One of the differentiated Tensors does not require grad",
    ),
}


def raised_as(record: Record, family: Family) -> list[Raised]:
    """The exceptions whose text is of this family, in the order in which they were raised."""
    return [row for row in record.raised if any(text in row.message for text in _TEXTS[family])]


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
