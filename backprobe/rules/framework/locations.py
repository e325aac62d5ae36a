"""Where things are in the user's files: a site, or a part of it, as a location that a finding can show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Location, Region
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record, Site

MAX_LINE = 500
"""Characters of a source line that a finding carries."""


def region_of(site: Site) -> Region:
    """The whole site."""
    return Region(start_line=site.line, start_col=site.col, end_line=site.end_line, end_col=site.end_col)


def location(record: Record, site: int, region: Region | None = None) -> Location:
    """Where a site is, or a region inside its file."""
    row = lookup(record).sites[site]
    shown = region or region_of(row)
    source = lookup(record).sources[row.source]
    return Location(
        path=source.path, region=shown, text=line_text(record, row.source, shown.start_line), function=row.function
    )


def line_text(record: Record, source: int, line: int) -> str:
    """One line of a source as it was run, without its newline; "" where the source was not kept."""
    lines = source_lines(record)[source]
    return lines[line - 1][:MAX_LINE] if 0 < line <= len(lines) else ""


@table
def source_lines(record: Record) -> dict[int, list[str]]:
    """The lines of each source, without newlines: split as Python does, at newlines only."""
    return {row.source: row.text.replace("\r\n", "\n").replace("\r", "\n").split("\n") for row in record.sources}


def line_words(record: Record, site: int, beside: int | None) -> str:
    """Say on which line a site is; with the file, ``line 23 of `model.py` ``, where it is not that of `beside`."""
    index = lookup(record)
    row = index.sites[site]
    if beside is not None and index.sites[beside].source == row.source:
        return f"line {row.line}"
    path = next((source.path for source in record.sources if source.source == row.source), None)
    return f"line {row.line}" if path is None or len(record.sources) == 1 else f"line {row.line} of `{path}`"


def line_of(record: Record, site: int | None) -> int | None:
    """The first line of a site; None for no site."""
    return None if site is None else lookup(record).sites[site].line
