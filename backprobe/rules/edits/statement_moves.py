"""Edits that take a whole statement out of its place, or put it into another."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import line_after, line_before, replacement
from backprobe.rules.analysis.source.syntax import blocks, region_in, site_of, statement, text_in, tree_of
from backprobe.rules.framework.finding import Edit, Region
from backprobe.rules.framework.locations import source_lines

if TYPE_CHECKING:
    from backprobe.record import Record, Site


def without_line(record: Record, site: Site, node: ast.stmt) -> Edit | None:
    """Take a statement out with its lines; None if it is alone in its block or shares a line."""
    region = region_in(record, site.source, node)
    lines = source_lines(record)[site.source]
    around = tree_of(record, site)
    alone = around is None or any(body == [node] for body in blocks(around.parents.get(node)))
    rest = lines[region.end_line - 1][region.end_col - 1 :].strip()
    before = lines[region.start_line - 1][: region.start_col - 1].strip()
    if alone or before or (rest and not rest.startswith("#")) or region.end_line >= len(lines):
        return None
    return replacement(
        record, site, Region(start_line=region.start_line, start_col=1, end_line=region.end_line + 1, end_col=1), ""
    )


def moved(record: Record, number: int, other: int, *, after: bool = False) -> tuple[Edit, ...]:
    """Edits that put a statement directly before another one of the same block, or after it; none if that is unsafe."""
    site, target = site_of(record, number), site_of(record, other)
    node, beside, tree = statement(record, site), statement(record, target), tree_of(record, site)
    if node is None or beside is None or tree is None or site.source != target.source:
        return ()
    if node is beside or tree.parents.get(node) is not tree.parents.get(beside):
        return ()
    text = text_in(record, site.source, region_in(record, site.source, node))
    taken = without_line(record, site, node)
    put = line_after(record, target, beside, text) if after else line_before(record, target, beside, text)
    return (taken, put) if taken is not None and put is not None and "\n" not in text else ()
