"""Puts an enter and a leave call into a function of torch by giving it another code object, and takes them out again.

The function stays the same object, adds no frame, and its tracebacks keep file, line and columns: the source is
compiled again under its own file name with every added node at a position of the original.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from types import CodeType, FunctionType
from typing import Any


class CannotSwap(Exception):
    """The function's source has not the shape that was expected; it is left as it is."""


def swapped_code(function: FunctionType, enter: str, leave: str, returned: str | None = None) -> CodeType:
    """The code of `function` with `enter` first, `leave` in a `finally`, and `returned(...)` around what it returns.

    Args:
        enter, leave: Statements in the names that the function has. returned: A call to which the value is added.

    Raises:
        CannotSwap: there is no source, or the function closes over names.
    """
    old = function.__code__
    if old.co_freevars:
        raise CannotSwap(f"{function.__qualname__} closes over {', '.join(old.co_freevars)}")
    try:
        lines, start = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError) as error:
        raise CannotSwap(f"{function.__qualname__}: {error}") from error
    definition: Any = tree.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        raise CannotSwap(f"{function.__qualname__}: its source is not a plain definition")
    _put_back(tree, start - 1, len(lines[0]) - len(lines[0].lstrip()))
    _wrap(definition, enter, leave, returned)
    return _compiled(tree, function)


def _put_back(tree: ast.Module, lines: int, columns: int) -> None:
    """Undo the shift that extracting and dedenting the source made, so that carets stay where they are."""
    ast.increment_lineno(tree, lines)
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt, ast.arg, ast.keyword, ast.alias, ast.ExceptHandler)):
            node.col_offset += columns
            node.end_col_offset = (node.end_col_offset or 0) + columns


def _wrap(definition: ast.FunctionDef, enter: str, leave: str, returned: str | None) -> None:
    first = 1 if ast.get_docstring(definition) is not None and len(definition.body) > 1 else 0
    anchor = definition.body[first]
    if returned is not None:
        for node in [n for n in ast.walk(definition) if isinstance(n, ast.Return) and n.value is not None]:
            call: Any = _at(ast.parse(returned, mode="eval").body, node.value or node)
            call.args.append(node.value)
            node.value = call
    guarded = ast.Try(
        body=definition.body[first:], handlers=[], orelse=[], finalbody=[_at(ast.parse(leave).body[0], anchor)]
    )
    definition.body = [
        *definition.body[:first], _at(ast.parse(enter).body[0], anchor), ast.copy_location(guarded, anchor)
    ]  # fmt: skip


def _at(node: Any, place: ast.AST) -> Any:
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt)):
            ast.copy_location(part, place)
    return node


def _compiled(tree: ast.Module, function: FunctionType) -> CodeType:
    ast.fix_missing_locations(tree)
    old = function.__code__
    module = compile(tree, old.co_filename, "exec", dont_inherit=True, flags=old.co_flags & _FUTURES)
    for constant in module.co_consts:
        if isinstance(constant, CodeType) and constant.co_name == function.__name__:
            return constant.replace(co_qualname=old.co_qualname)
    raise CannotSwap(f"{function.__qualname__}: its compiled code was not found")


_FUTURES = 0x1FE0000
"""The bits of `co_flags` that `from __future__` sets (CPython, Include/cpython/code.h)."""


_made: dict[tuple[CodeType, str, str, str | None], CodeType] = {}
"""Code that was compiled before: reading and compiling torch's sources takes 30 ms, which a warm process does once."""


class Swaps:
    """The swaps of one run, undone together."""

    def __init__(self) -> None:
        self.fallbacks: list[str] = []
        self._old: list[tuple[FunctionType, CodeType]] = []

    def put(self, function: Any, enter: str, leave: str, returned: str | None = None) -> None:
        """Swap one function's code; where that cannot be done `fallbacks` says so and the function is not seen."""
        target: Any = inspect.unwrap(function)
        key = (target.__code__, enter, leave, returned)
        try:
            code = _made.get(key) or swapped_code(target, enter, leave, returned)
            _made[key] = code
        except CannotSwap as reason:
            self.fallbacks.append(f"not observed: {reason}")
            return
        self._old.append((target, target.__code__))
        target.__code__ = code

    def undo(self) -> None:
        """Give every function its own code back."""
        while self._old:
            function, code = self._old.pop()
            function.__code__ = code
