"""A statement of a cell as a tree with the lines and columns of the cell: `%backprobe y = x * 2` in its line 3."""

from __future__ import annotations

import ast
import io
import tokenize
from typing import Final

_SILENT: Final = frozenset({tokenize.ENDMARKER, tokenize.NL, tokenize.NEWLINE, tokenize.COMMENT, tokenize.DEDENT})


def ends_in_semicolon(text: str) -> bool:
    """Return whether the last expression ends in a semicolon, so that its value is not displayed.

    A text that is no Python ends in none.
    """
    try:
        tokens = [
            generate_token
            for generate_token in tokenize.generate_tokens(io.StringIO(text).readline)
            if generate_token.type not in _SILENT
        ]
    except (tokenize.TokenError, SyntaxError):
        return False
    return bool(tokens) and tokens[-1].string == ";"


def statement_tree(statement: str, written: str, line: int, column: int) -> ast.Module:
    """Parse a statement into a tree whose places are those of the cell.

    Args:
        statement: What follows `%backprobe`. written: the line of the cell that contains it.
        line: Number of that line, from 1. column: where the statement begins in it, from 0, in characters.

    Raises:
        SyntaxError: it is no Python.
    """
    tree = ast.parse(statement)
    shift = len(written[:column].encode())  # ast counts bytes of UTF-8
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt, ast.excepthandler, ast.arg, ast.keyword, ast.alias)):
            if node.lineno == 1:
                node.col_offset += shift
            if node.end_lineno == 1 and node.end_col_offset is not None:
                node.end_col_offset += shift
    return ast.increment_lineno(tree, line - 1)
