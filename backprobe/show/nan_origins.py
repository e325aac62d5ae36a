"""What the deep tier found, one line each: the op that made the first NaN, its line, and where it ran."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from backprobe.show.plain_text import plain

if TYPE_CHECKING:
    from backprobe.record import Origin, Record

_WORDS: Final = {"nan": "NaN", "inf": "infinity"}


def origin_lines(record: Record) -> list[str]:
    """Write the lines of a record of the deep tier; none of another one."""
    if record.header.tier != "deep":
        return []
    if not record.origins:
        return ["origin: every value that was looked at is finite, so the program was not run again"]
    return [_line(record, row) for row in record.origins]


def _line(record: Record, row: Origin) -> str:
    if not row.op:
        return f"origin of the first {_WORDS[row.what]}: not found; {plain(row.why or 'no reason is known')}"
    line = next((site.line for site in record.sites if site.site == row.site), None)
    place = "outside your files" if line is None else f"line {line}"
    call = f", in the backward pass of call {row.call}" if row.call is not None else ""
    where = f", {plain(row.why)}" if row.why else ""
    return f"origin of the first {_WORDS[row.what]}: {plain(row.op)}, {place}{call}{where}; it read {plain(row.inputs)}"
