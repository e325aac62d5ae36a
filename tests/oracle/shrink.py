"""Makes a program that shows a difference small: statements go, blocks become their bodies, while it still shows it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Shows = Callable[[str], bool]


def shrunk(source: str, shows: Shows, tries: int = 400) -> str:
    """The smallest program found within so many tries that still shows what the first one did."""
    best, left = ast.unparse(ast.parse(source)) + "\n", tries
    if not shows(best):
        return source
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _smaller(best):
            left -= 1
            if left <= 0:
                break
            if _compiles(candidate) and shows(candidate):
                best, smaller = candidate, True
                break
    return best


def _smaller(source: str) -> Iterator[str]:
    """Programs with one statement less, or with a block's body in its place; the last statements first."""
    count = sum(1 for _ in _bodies(ast.parse(source)))
    for which in range(count):
        size = len(list(_bodies(ast.parse(source)))[which])
        for length in (size // 2, 1):
            if length < 1 or (length == 1 and size // 2 == 1 and size != 1 and length == size // 2 and False):
                continue
            for at in range(size - length, -1, -1):
                tree = ast.parse(source)
                body = list(_bodies(tree))[which]
                del body[at : at + length]
                yield _text(tree)
                if length == 1:
                    yield from _without_node(source, which, at)


def _without_node(source: str, which: int, at: int) -> Iterator[str]:
    tree = ast.parse(source)
    body = list(_bodies(tree))[which]
    inner = getattr(body[at], "body", None)
    if inner and not isinstance(body[at], (ast.FunctionDef, ast.ClassDef)):
        body[at : at + 1] = inner
        yield _text(tree)


def _bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def _text(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if hasattr(node, "body") and isinstance(node.body, list) and not node.body and not isinstance(node, ast.Module):
            node.body = [ast.Pass()]
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (AttributeError, ValueError):
        return ""


def _compiles(source: str) -> bool:
    try:
        compile(source, "shrunk.py", "exec")
    except (SyntaxError, ValueError):
        return False
    return bool(source)
