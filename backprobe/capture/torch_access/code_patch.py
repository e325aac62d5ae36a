"""Puts an enter and a leave call into a function of torch by giving it another code object, and takes them out again.

The function stays the same object, adds no frame, and its tracebacks keep file, line and columns: the source is
compiled again under its own file name with every added node at a position of the original.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any


class CannotSwap(Exception):
    """The function's source has not the shape that was expected; it is left as it is."""


def swapped_code(function: FunctionType, enter: str, leave: str, returned: str | None = None) -> CodeType:
    """Compile `function` with `enter` first, `leave` in a `finally`, and `returned(...)` around what it returns.

    Args:
        enter, leave: Statements in the names that the function has. returned: A call to which the value is added.

    Raises:
        CannotSwap: there is no source, or the function closes over names.
    """
    old = function.__code__
    if old.co_freevars:
        raise CannotSwap(f"{function.__qualname__} closes over {', '.join(old.co_freevars)}")
    definition = _definition(function)
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        raise CannotSwap(f"{function.__qualname__}: its source is not a plain definition")
    _wrap(definition, enter, leave, returned)
    return _compile_function(ast.Module(body=[definition], type_ignores=[]), function)


def _definition(function: FunctionType) -> ast.stmt | None:
    """Parse the function's definition; every node is where it is in the file.

    Empty lines stand for those before it, and an `if` for what it is indented in: shifting each node costs more.
    """
    code = function.__code__
    lines, start = linecache.getlines(code.co_filename, function.__globals__), code.co_firstlineno
    if not lines:
        raise CannotSwap(f"{function.__qualname__}: could not get source code")
    why = ""
    for end in (_last_line(code), None):
        try:
            block = lines[start - 1 : end] if end is not None else inspect.getsourcelines(function)[0]
            indented = block[0][:1].isspace()
            before = "\n" * (start - 2) + "if 1:\n" if indented else "\n" * (start - 1)
            tree = ast.parse(before + "".join(block))
        except (OSError, SyntaxError, TypeError, IndexError) as error:
            why = f"{function.__qualname__}: {error}"
            continue
        outer: Any = tree.body[0]
        return outer.body[0] if indented else outer
    raise CannotSwap(why)


def _last_line(code: CodeType) -> int:
    """Return the last line that a function's code is from; a bracket that closes behind it is not in any code."""
    last = max((place[1] or 0 for place in code.co_positions()), default=0)
    return max([last, *(_last_line(co_const) for co_const in code.co_consts if isinstance(co_const, CodeType))])


def _wrap(definition: ast.FunctionDef, enter: str, leave: str, returned: str | None) -> None:
    first = 1 if ast.get_docstring(definition) is not None and len(definition.body) > 1 else 0
    anchor = definition.body[first]
    if returned is not None:
        for node in [node for statement in definition.body for node in _returns(statement)]:
            call: Any = _find_node(ast.parse(returned, mode="eval").body, node.value or node)
            call.args.append(node.value)
            node.value = call
    guarded = ast.Try(
        body=definition.body[first:], handlers=[], orelse=[], finalbody=[_find_node(ast.parse(leave).body[0], anchor)]
    )
    definition.body = [
        *definition.body[:first], _find_node(ast.parse(enter).body[0], anchor), ast.copy_location(guarded, anchor)
    ]  # fmt: skip


def _returns(statement: ast.AST) -> Iterator[ast.Return]:
    """Yield the function's own `return` statements that give a value, not those of definitions inside it."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return
    if isinstance(statement, ast.Return) and statement.value is not None:
        yield statement
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(statement, field, ()):
            yield from _returns(child)


def _find_node(node: Any, place: ast.AST) -> Any:
    for part in ast.walk(node):
        if isinstance(part, (ast.expr, ast.stmt)):
            ast.copy_location(part, place)
    return node


def _compile_function(tree: ast.Module, function: FunctionType) -> CodeType:
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
