"""Whose a name is: the function, class body or module in which Python looks it up."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from backprobe.capture.rewriting.targets import parameters

MODULE = "<module>"
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a statement stands.

    Attributes:
        function: Qualified name of the enclosing function or class body.
        prefix: What the qualified name of a definition in here begins with.
        loop_line: First line of the innermost loop around it in this function.
        top: At a module's top level.
        bound: The names that the function or class body binds. declared: those of them it says are not its own.
        outer: The scope in which its free names are looked up; None: the module.
    """

    function: str = MODULE
    prefix: str = ""
    loop_line: int | None = None
    top: bool = True
    bound: frozenset[str] = frozenset()
    declared: Mapping[str, str] = field(default_factory=dict[str, str])
    outer: Scope | None = None

    def owner(self, text: str) -> str:
        """Return the function that the first name of a name, chain or subscript belongs to."""
        return self._owner(_first(text))

    def _owner(self, name: str) -> str:
        if name in self.declared:
            return self.declared[name]
        if name in self.bound:
            return self.function
        return MODULE if self.outer is None else self.outer._owner(name)

    def in_loop(self, line: int) -> Scope:
        """Return the scope of the body of a loop that begins at a line."""
        return replace(self, loop_line=line)

    def body_scope(self, node: Any) -> Scope:
        """Return the scope of the body of a function or class that is defined here."""
        qualified = f"{self.prefix}{node.name}"
        is_class = isinstance(node, ast.ClassDef)
        outer = None if self.top else self.outer if self._is_class else self
        bound, declared = set(() if is_class else parameters(node.args)), dict[str, str]()
        for part in _own(node.body):
            if isinstance(part, ast.Global):
                declared.update(dict.fromkeys(part.names, MODULE))
            elif isinstance(part, ast.Nonlocal):
                declared.update({name: MODULE if outer is None else outer._owner(name) for name in part.names})
            else:
                bound.update(_bound_by(part))
        prefix = f"{qualified}." if is_class else f"{qualified}.<locals>."
        return Scope(qualified, prefix, top=False, bound=frozenset(bound), declared=declared, outer=outer)

    @property
    def _is_class(self) -> bool:
        return not self.top and not self.prefix.endswith("<locals>.")


def _first(text: str) -> str:
    for index, letter in enumerate(text):
        if letter in ".[":
            return text[:index]
    return text


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Every node of a body that is not inside a definition or a lambda of it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, _DEFINITIONS):
            waiting += node.decorator_list
        elif isinstance(node, _COMPREHENSIONS):
            waiting += [part for part in ast.walk(node) if isinstance(part, ast.NamedExpr)]
        elif not isinstance(node, ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def _bound_by(node: ast.AST) -> list[str]:
    """List the names that one node binds."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, _DEFINITIONS):
        return [node.name]
    if isinstance(node, ast.alias):
        return [(node.asname or node.name).split(".")[0]]
    if isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
        return [node.name] if node.name else []
    if isinstance(node, ast.MatchMapping):
        return [node.rest] if node.rest else []
    return []
