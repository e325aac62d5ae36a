"""A program's text with the functions that a record names in whole, and of the others their first lines.

    as it is                    with line 5 named
    token = "x"                 # …
    def unused(path):           def unused(path):
        return read(path)           ...  # …
    def train(model):           def train(model):
        loss(model).backward()      loss(model).backward()
    train(Net())                # …

The rest parses, and each line keeps its number. What stands outside functions stays if one of its lines is named; else
only imports, classes and the first lines of functions do.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from typing import Final

_ENDS: Final = re.compile(r"\r\n|\r|\n")
_LEFT_OUT: Final = "# …"
_ELLIPSIS: Final = "...  # …"

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def outline(text: str, named: Collection[int]) -> str | None:
    """Cut a text down to what may be sent; None if the text, or what is left of it, is no Python.

    Args:
        text: Of one file. named: 1-based numbers of the lines that the record names.
    """
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    lines = _ENDS.split(text)
    functions = [node for node in ast.walk(module) if isinstance(node, _Function)]
    inside = {line for node in functions for line in _span(node)}
    if inside.issuperset(named):
        for number in set(range(1, len(lines) + 1)) - set(_framework(module)):
            lines[number - 1] = _LEFT_OUT
    for node in functions:
        if not any(line in _span(node) for line in named) and node.body[0].lineno > node.lineno:
            _leave_out(lines, node)
    left = "\n".join(lines)
    try:
        ast.parse(left)
    except (SyntaxError, ValueError):
        return None
    return left


def _span(node: ast.stmt) -> range:
    """Return the lines of a statement, with its decorators."""
    first = node.lineno
    if isinstance(node, _Function | ast.ClassDef) and node.decorator_list:
        first = node.decorator_list[0].lineno
    return range(first, (node.end_lineno or node.lineno) + 1)


def _framework(module: ast.Module) -> Iterator[int]:
    """Yield the lines of imports, classes and functions that stand in no other statement."""
    for node in module.body:
        if isinstance(node, _Function | ast.ClassDef | ast.Import | ast.ImportFrom):
            yield from _span(node)


def _leave_out(lines: list[str], node: _Function) -> None:
    """Put `...` for the body of a function."""
    first, last = node.body[0], node.end_lineno or node.lineno
    begin = min(_span(first))
    if not lines[begin - 1][: first.col_offset].isspace():
        return  # its header goes on in this line
    lines[begin - 1] = lines[begin - 1][: first.col_offset] + _ELLIPSIS
    for number in range(begin + 1, last + 1):
        lines[number - 1] = _LEFT_OUT
