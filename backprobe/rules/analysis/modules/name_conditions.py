"""Conditions on a parameter's name that are written with constants: `"bn" in name or name.startswith("head.")`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

Condition = Callable[[str], bool]


def name_condition(test: ast.expr, variable: str) -> Condition | None:
    """The condition as a function of the name that a variable holds; None where it asks for anything else as well."""
    return _condition(test, variable, {})


def _condition(test: ast.expr, variable: str, known: Mapping[str, str]) -> Condition | None:
    match test:
        case ast.BoolOp(op=op, values=values):
            parts = [_condition(one, variable, known) for one in values]
            told = [one for one in parts if one is not None]
            every = all if isinstance(op, ast.And) else any
            return (lambda name: every(one(name) for one in told)) if len(told) == len(parts) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = _condition(operand, variable, known)
            return None if inner is None else lambda name: not inner(name)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _comparison(left, op, right, variable, known)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=held), attr=method), args=[given], keywords=[]):
            texts = _texts(given, known)
            if held != variable or texts is None or method not in ("startswith", "endswith"):
                return None
            return lambda name: any(getattr(name, method)(text) for text in texts)
        case ast.Call(func=ast.Name(id="any" | "all" as every), args=[ast.GeneratorExp() as parts], keywords=[]):
            return _of_each(parts, any if every == "any" else all, variable, known)
        case _:
            return None


def _comparison(
    left: ast.expr, op: ast.cmpop, right: ast.expr, variable: str, known: Mapping[str, str]
) -> Condition | None:
    """`"bn" in name`, `name == "head.weight"`, `name in ("a", "b")`, and their opposites."""
    holds = not isinstance(op, ast.NotIn | ast.NotEq)
    if isinstance(op, ast.In | ast.NotIn) and _is_variable(right, variable):
        texts = _texts(left, known)
        return None if texts is None else lambda name: (texts[0] in name) is holds
    is_listed = isinstance(op, ast.In | ast.NotIn) and isinstance(right, ast.Tuple | ast.List | ast.Set)
    if not _is_variable(left, variable) or not (is_listed or isinstance(op, ast.Eq | ast.NotEq)):
        return None
    texts = _texts(right, known)
    return None if texts is None else lambda name: (name in texts) is holds


def _of_each(
    parts: ast.GeneratorExp, every: Callable[[list[bool]], bool], variable: str, known: Mapping[str, str]
) -> Condition | None:
    """`any(part in name for part in ("fc", "cls"))`."""
    match parts.generators:
        case [ast.comprehension(target=ast.Name(id=each), iter=texts, ifs=[])]:
            given = _texts(texts, known) if isinstance(texts, ast.Tuple | ast.List | ast.Set) else None
        case _:
            return None
    conditions = [_condition(parts.elt, variable, {**known, each: text}) for text in given or ()]
    told = [one for one in conditions if one is not None]
    return (lambda name: every([one(name) for one in told])) if told and len(told) == len(conditions) else None


def _is_variable(node: ast.expr, variable: str) -> bool:
    return isinstance(node, ast.Name) and node.id == variable


def _texts(node: ast.expr, known: Mapping[str, str]) -> list[str] | None:
    """The constant strings that an expression gives; None where it gives others."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.Name(id=name) if name in known:
            return [known[name]]
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            parts = [_texts(one, known) for one in elements]
            return None if not parts or None in parts else [text for part in parts if part for text in part]
        case _:
            return None
