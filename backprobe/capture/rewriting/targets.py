"""What statements bind: how a target takes a value apart, and the plain names in it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from backprobe.capture.rewriting.ast_nodes import place

Target = Any
"""How a statement binds its value: a name; a tuple of targets, one per element; ("*", target); None where unnamed."""


def is_docstring(node: ast.stmt | None) -> bool:
    """Return whether the statement is a string that stands alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_future(node: ast.stmt | None) -> bool:
    """Return whether the statement is a `from __future__ import`."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


def target_of(node: ast.expr) -> Target:
    """How an assignment target takes a value apart."""
    if isinstance(node, (ast.Tuple, ast.List)):
        return tuple(target_of(element) for element in node.elts)
    if isinstance(node, ast.Starred):
        return ("*", target_of(node.value))
    if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name):
        return None
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return ast.unparse(node)
    return None


def plain_names(targets: Sequence[ast.expr]) -> list[ast.Name] | None:
    """List the plain names that targets are made of; None if anything else is among them."""
    found: list[ast.Name] = []
    for target in targets:
        if isinstance(target, ast.Name):
            found.append(target)
        elif isinstance(target, (ast.Tuple, ast.List)):
            inner = plain_names(target.elts)
            if inner is None:
                return None
            found += inner
        elif isinstance(target, ast.Starred) and isinstance(target.value, ast.Name):
            found.append(target.value)
        else:
            return None
    return found


def containers(targets: Sequence[ast.expr]) -> list[ast.expr]:
    """Load the names that subscripts are stored into: a store into a tensor binds no name."""
    found = [target.value for target in targets if isinstance(target, ast.Subscript)]
    return [place(ast.Name(node.id, ast.Load()), node) for node in found if isinstance(node, ast.Name)]


def build_target_read(target: ast.expr) -> list[ast.expr]:
    """Build what an augmented assignment reads of its target."""
    copy: Any = ast.parse(ast.unparse(target), mode="eval").body
    return [copy]


def parameters(args: ast.arguments) -> list[str]:
    """List the names of a function's parameters."""
    named = [arg.arg for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    return named + [arg.arg for arg in (args.vararg, args.kwarg) if arg is not None]


def list_captured_names(pattern: ast.pattern) -> list[ast.Name]:
    """List the names that a `case` binds."""
    return [
        place(ast.Name(node.name, ast.Load()), node)
        for node in ast.walk(pattern)
        if isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name is not None
    ]
