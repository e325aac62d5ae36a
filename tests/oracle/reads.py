"""Puts a read after every statement of a program, on the statement's own lines; independent of the engine's rewriter.

`__see__(kind, line)` looks around; `__gave__(line, value)` does so on the way of a `return`. Lines are those of the
program, so that tracebacks and warnings of the read program point where they would.
"""

from __future__ import annotations

import ast
from typing import Any


class Reads(ast.NodeTransformer):
    """Adds the reads to a tree in place."""

    def _see(self, kind: str, line: int, like: ast.AST) -> ast.stmt:
        call = ast.Expr(ast.Call(ast.Name("__see__", ast.Load()), [ast.Constant(kind), ast.Constant(line)], []))
        for node in ast.walk(call):
            ast.copy_location(node, like)
        return call

    def _body(self, body: list[ast.stmt], opening: ast.stmt | None = None) -> list[ast.stmt]:
        out = [] if opening is None else [opening]
        for statement in body:
            out.append(self.visit(statement))
            if isinstance(
                statement, (ast.Return, ast.Raise, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)
            ):
                continue
            compound = hasattr(statement, "body") or isinstance(statement, ast.Match)
            kind = "block" if compound else "after"
            mark = ast.Pass(
                lineno=statement.end_lineno, col_offset=0, end_lineno=statement.end_lineno, end_col_offset=0
            )
            out.append(self._see(kind, statement.end_lineno or 0, mark if compound else statement))
        return out

    def generic_visit(self, node: ast.AST) -> Any:
        """Any statement with blocks."""
        opening = self._see("for", node.target.end_lineno or 0, node.target) if isinstance(node, ast.For) else None
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                setattr(node, field, self._body(body, opening if field == "body" else None))
        for field in ("handlers", "cases"):
            for part in getattr(node, field, ()):
                self.generic_visit(part)
        if isinstance(node, ast.match_case) and any(
            isinstance(p, ast.MatchAs) and p.name for p in ast.walk(node.pattern)
        ):
            node.body.insert(0, self._see("match", node.pattern.end_lineno or 0, node.pattern))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function: a read at its entry."""
        first = node.body[0]
        node.body = self._body(node.body, self._see("enter", first.end_lineno or 0, first))
        return node

    def visit_Return(self, node: ast.Return) -> ast.Return:
        """`return value`."""
        if node.value is not None:
            arguments = [ast.Constant(node.end_lineno), node.value]
            node.value = ast.Call(ast.Name("__gave__", ast.Load()), arguments, [])
            for part in (node.value, node.value.func, arguments[0]):
                ast.copy_location(part, node)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        """A simple statement stays as it is."""
        return node


def with_reads(source: str, filename: str) -> Any:
    """The code of a program with its reads."""
    tree = ast.parse(source, filename)
    tree.body = Reads()._body(tree.body)
    return compile(ast.fix_missing_locations(tree), filename, "exec")
