"""A statement of a cell as a tree with the lines and columns of the cell: `%backprobe y = x * 2` in its line 3."""

from __future__ import annotations

import ast


def statement_tree(statement: str, written: str, line: int, column: int) -> ast.Module:
    """The tree.

    Args:
        statement: What follows `%backprobe`. written: the line of the cell that it stands in.
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
