"""Expressions of the user's program in words, and the edits that change them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import region_in, text_in
from backprobe.rules.framework.finding import Edit, Region
from backprobe.rules.framework.locations import source_lines

if TYPE_CHECKING:
    from backprobe.record import Record, Site

_SYMBOLS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def symbol_of(operator: ast.operator) -> str | None:
    """`+` for `ast.Add`; None for an operator that tensors have no arithmetic for."""
    return _SYMBOLS.get(type(operator))


def outermost(value: ast.expr | None) -> str:
    """The operation that gives the value of an expression, as a person would name it."""
    if isinstance(value, ast.Call):
        called = value.func
        if isinstance(called, ast.Attribute) and not _is_path(called.value):
            return f"`.{called.attr}()`"
        return f"`{ast.unparse(called)}()`"
    if isinstance(value, ast.BinOp):
        symbol = symbol_of(value.op)
        return f"`{symbol}`" if symbol else "an operation"
    if isinstance(value, ast.UnaryOp):
        return "`-`" if isinstance(value.op, ast.USub) else "an operation"
    if isinstance(value, ast.Subscript):
        return "indexing"
    if isinstance(value, ast.Attribute):
        return f"`.{value.attr}`"
    return "this statement"


def _is_path(node: ast.expr) -> bool:
    """A plain dotted name such as `torch.nn.functional`."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def path_of(record: Record, site: Site) -> str:
    """The file of a site."""
    return lookup(record).sources[site.source].path


def replacement(record: Record, site: Site, region: Region, text: str) -> Edit:
    """Put a text in place of a region of a site's file."""
    return Edit(path=path_of(record, site), region=region, text=text)


def insertion(record: Record, site: Site, line: int, col: int, text: str) -> Edit:
    """Put a text before a column of a line."""
    return replacement(record, site, Region(start_line=line, start_col=col, end_line=line, end_col=col), text)


def line_after(record: Record, site: Site, node: ast.stmt, text: str) -> Edit | None:
    """A new line behind a statement, indented as it is; None if the statement shares its line with others."""
    region = region_in(record, site.source, node)
    lines = source_lines(record)[site.source]
    before = lines[region.start_line - 1][: region.start_col - 1]
    behind = lines[region.end_line - 1][region.end_col - 1 :].strip()
    if before.strip() or (behind and not behind.startswith("#")):
        return None
    end = len(lines[region.end_line - 1]) + 1
    return insertion(record, site, region.end_line, end, f"\n{before}{text}")


def line_before(record: Record, site: Site, node: ast.stmt, text: str) -> Edit | None:
    """A new line in front of a statement, indented as it is; None if something stands before it on its line."""
    region = region_in(record, site.source, node)
    before = source_lines(record)[site.source][region.start_line - 1][: region.start_col - 1]
    if before.strip():
        return None
    return insertion(record, site, region.start_line, 1, f"{before}{text}\n")


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """The argument that a call gives by this name."""
    return next((given for given in call.keywords if given.arg == name), None)


def with_keyword(record: Record, site: Site, call: ast.Call, name: str, value: str) -> Edit:
    """Give a call this keyword argument, in place of the one it has."""
    given = keyword(call, name)
    if given is not None:
        return replacement(record, site, region_in(record, site.source, given.value), value)
    region = region_in(record, site.source, call)
    inside = text_in(record, site.source, region)[:-1].rstrip()
    comma = "" if inside.endswith(("(", ",")) else ", "
    if inside.endswith(","):
        comma = " "
    if "#" in inside.rpartition("\n")[2] and (call.args or call.keywords):  # what follows a comment is part of it
        last = max((*call.args, *call.keywords), key=lambda node: (node.lineno, node.col_offset))
        region = region_in(record, site.source, last)
        return insertion(record, site, region.end_line, region.end_col, f", {name}={value}")
    return insertion(record, site, region.end_line, region.end_col - 1, f"{comma}{name}={value}")


def without_keyword(record: Record, site: Site, call: ast.Call, name: str) -> Edit | None:
    """Take a keyword argument out of a call, with its comma; None if the call has it not, or has only that."""
    given = keyword(call, name)
    arguments = sorted((*call.args, *call.keywords), key=lambda node: (node.lineno, node.col_offset))
    if given is None:
        return None
    at = arguments.index(given)
    region = region_in(record, site.source, given)
    if at > 0:
        before = region_in(record, site.source, arguments[at - 1])
        region = Region(
            start_line=before.end_line,
            start_col=before.end_col,
            end_line=region.end_line,
            end_col=region.end_col,
        )
    elif len(arguments) > 1:
        after = region_in(record, site.source, arguments[1])
        region = Region(
            start_line=region.start_line,
            start_col=region.start_col,
            end_line=after.start_line,
            end_col=after.start_col,
        )
    return replacement(record, site, region, "")
