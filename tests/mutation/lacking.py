"""A record with one kind of fact left out everywhere, or a source that does not show what ran: what no rule may break on.

A record of a run that was cut, of a lower tier or of code without a file lacks such facts, and a rule asks before it uses
them. A program that runs to its end seldom lacks one, so these are made from its record.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

import msgspec

from backprobe.record import TABLES, Record, Row, Source

_SOURCES: Final[dict[str, Callable[[str], str]]] = {
    "sources without text": lambda _text: "",
    "sources that say nothing": lambda text: "pass\n" * text.count("\n"),
    "sources that are expressions only": lambda text: "name\n" * text.count("\n"),
    "sources of plain assignments": lambda text: "name = other = value\n" * text.count("\n"),
    "sources of plain calls": lambda text: "name(*some)\n" * text.count("\n"),
    "sources that moved down a line": lambda text: f"\n{text}",
    "sources that moved up a line": lambda text: text.partition("\n")[2],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """A record that lacks something; about: what, for people."""

    about: str
    record: Record


def lacking(record: Record, tables: Collection[str] = TABLES) -> Iterator[Lacking]:
    """Every variant of a record that lacks one thing: the fields that may be None, one at a time, then the sources.

    Args:
        tables: Those that lack something. A rule that reads no other one says the same of all other variants.
    """
    for table in TABLES:
        rows: tuple[Row, ...] = getattr(record, table) if table in tables else ()
        for field in _may_be_none(type(rows[0])) if rows else ():
            if any(getattr(row, field) is not None for row in rows):
                without = tuple(msgspec.structs.replace(row, **{field: None}) for row in rows)
                yield Lacking(about=f"no {table}.{field}", record=_replace_rows(record, table, without))
    for about, change in _SOURCES.items() if "sources" in tables else ():
        yield Lacking(about=about, record=_replace_rows(record, "sources", _rewritten(record.sources, change)))


def _rewritten(sources: tuple[Source, ...], change: Callable[[str], str]) -> tuple[Row, ...]:
    return tuple(msgspec.structs.replace(source, text=change(source.text)) for source in sources)


def _replace_rows(record: Record, table: str, rows: tuple[Row, ...]) -> Record:
    return msgspec.structs.replace(record, **{table: rows})


@cache
def _may_be_none(row: type[Row]) -> tuple[str, ...]:
    return tuple(field.name for field in msgspec.structs.fields(row) if field.default is None)
