"""The syntax trees of the recorded sources: the statement of a site, and the region of an expression in it.

A tree may sharpen a line or show an intent; no rule calls a verdict proven by a tree alone.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backprobe.rules.analysis.parse_bounds import MOST_WORDS, count_words, parse_bounded
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.locations import source_lines
from backprobe.rules.framework.tables import note_text_read, table

if TYPE_CHECKING:
    from backprobe.record import Record, Site


@dataclass(frozen=True, slots=True)
class Tree:
    """One file: its module, the parent of each node, and all nodes in the order of `ast.walk`, which takes longer."""

    module: ast.Module
    parents: dict[ast.AST, ast.AST]
    nodes: tuple[ast.AST, ...]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, innermost first."""
        above = self.parents.get(node)
        while above is not None:
            yield above
            above = self.parents.get(above)


@table
def trees(record: Record) -> dict[int, Tree]:
    """The tree of each source that parses; recorded text is a stranger's, so it may not, or be too long for one."""
    note_text_read()
    parsed: dict[int, Tree] = {}
    left = MOST_WORDS
    for source in record.sources:
        counted = count_words(source.text, left + 1)
        if counted > left:
            continue
        left -= counted
        module = parse_bounded(source.text)
        if module is None:
            continue
        nodes = tuple(ast.walk(module))
        parents = {child: node for node in nodes for child in ast.iter_child_nodes(node)}
        parsed[source.source] = Tree(module, parents, nodes)
    return parsed


def statement(record: Record, site: Site) -> ast.stmt | None:
    """The innermost statement around a site; None where the source is not known or does not parse."""
    return _statements(record).get(site.site)


@table
def _statements(record: Record) -> dict[int, ast.stmt]:
    found: dict[int, ast.stmt] = {}
    starts: dict[int, list[tuple[tuple[int, int], ast.stmt]]] = {}
    for number, tree in trees(record).items():
        every = ((region_in(record, number, node), node) for node in tree.nodes if isinstance(node, ast.stmt))
        starts[number] = sorted(
            (((region.start_line, region.start_col), node) for region, node in every), key=lambda start: start[0]
        )
    for site in record.sites:
        known = starts.get(site.source, [])
        at = bisect_right(known, (site.line, site.col), key=lambda start: start[0]) - 1
        if at >= 0:
            node = _around(record, site, known[at][1])
            if node is not None:
                found[site.site] = node
    return found


def site_at(record: Record, node: ast.stmt) -> Site | None:
    """A site of a statement: the first that was put there; None if the statement has none."""
    return _sites(record).get(node)


def number_at(record: Record, node: ast.stmt | None) -> int | None:
    """The number of that site."""
    site = None if node is None else site_at(record, node)
    return None if site is None else site.site


@table
def _sites(record: Record) -> dict[ast.stmt, Site]:
    found: dict[ast.stmt, Site] = {}
    for site in record.sites:
        node = _statements(record).get(site.site)
        if node is not None and site.kind not in ("enter", "grad-read"):
            found.setdefault(node, site)
    return found


def _around(record: Record, site: Site, last: ast.stmt) -> ast.stmt | None:
    """The innermost statement around the site: the last one that starts before it, or one around that."""
    for node in (last, *trees(record)[site.source].ancestors(last)):
        if isinstance(node, ast.stmt):
            region = region_in(record, site.source, node)
            if (site.end_line, site.end_col) <= (region.end_line, region.end_col):
                return node
    return None


def is_same_statement(record: Record, one: int | None, other: int | None) -> bool:
    """Two sites belong to one statement: a statement may have several, one that opens its function among them."""
    if one is None or other is None:
        return False
    node = statement(record, site_of(record, one))
    return one == other or (node is not None and node is statement(record, site_of(record, other)))


def tree_of(record: Record, site: Site) -> Tree | None:
    """The tree of a site's file; None where there is none."""
    return trees(record).get(site.source)


def region_in(record: Record, source: int, node: ast.stmt | ast.expr | ast.keyword) -> Region:
    """Where a node of that source is, in characters: `ast` counts the bytes of UTF-8."""
    lines = source_lines(record)[source]
    first, last = node.lineno, node.end_lineno or node.lineno
    return Region(
        start_line=first,
        start_col=_characters(lines, first, node.col_offset) + 1,
        end_line=last,
        end_col=_characters(lines, last, node.end_col_offset or 0) + 1,
    )


def _characters(lines: list[str], line: int, offset: int) -> int:
    text = lines[line - 1] if line <= len(lines) else ""
    return offset if text.isascii() else len(text.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "replace"))


def text_in(record: Record, source: int, region: Region) -> str:
    """The text of a region."""
    lines = source_lines(record)[source][region.start_line - 1 : region.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: region.end_col - 1]
    lines[0] = lines[0][region.start_col - 1 :]
    return "\n".join(lines)


def value_of(node: ast.stmt | None) -> ast.expr | None:
    """The expression that a statement evaluates: what is assigned, returned or called for its effect."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
        return node.value
    return None


def statement_at(record: Record, site: int | None) -> ast.stmt | None:
    """The innermost statement around the site of that number; None for no site."""
    return None if site is None else statement(record, lookup(record).sites[site])


def parts_of(node: ast.AST | None) -> Iterator[ast.AST]:
    """A node and everything below it; nothing for None."""
    return iter(()) if node is None else ast.walk(node)


def blocks(parent: ast.AST | None) -> Iterator[list[ast.stmt]]:
    """The lists of statements that stand in a compound statement: its body, its `else`, its `finally`."""
    for field in ("body", "orelse", "finalbody"):
        block: list[ast.stmt] | None = getattr(parent, field, None)
        if isinstance(block, list):
            yield block


def method_called(part: ast.AST) -> str | None:
    """The last name of what a call calls: `view` of `x.view(3)`, `Linear` of `nn.Linear(2, 1)`; None for no call."""
    if not isinstance(part, ast.Call):
        return None
    return part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", None)


def site_of(record: Record, number: int) -> Site:
    """The row of a site."""
    return lookup(record).sites[number]
