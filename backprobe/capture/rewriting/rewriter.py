"""The rewriter: puts taps into the statements of a user's file; what it computes, raises and warns stays the same.

1. Positions are copied from the original to every added node, so tracebacks, carets and warnings point where they did.
2. A statement is followed by a tap that is handed the plain names it bound; a value that goes into an attribute or
   subscript passes through a tap on its way, since reading it back could run user code.
3. An expression that is evaluated before a block (test, iterable, context) passes through a tap, so that the autograd
   operations in it belong to its own line.
4. The taps' names are looked up in `builtins`; nothing is added to the program's namespaces.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, Final

from backprobe.capture.rewriting.ast_nodes import call, place, simple, tap_assertion
from backprobe.capture.rewriting.expression_taps import OperationTaps
from backprobe.capture.rewriting.operation_facts import FileOperations
from backprobe.capture.rewriting.read_names import call_of, chain, imported_by, is_inert, operands, reads
from backprobe.capture.rewriting.scopes import Scope
from backprobe.capture.rewriting.sites import Placed, Sites
from backprobe.capture.rewriting.targets import (
    Target,
    build_target_read,
    containers,
    is_docstring,
    is_future,
    list_captured_names,
    parameters,
    plain_names,
    target_of,
)
from backprobe.record.rows.program import SiteKind

_SILENT: Final = (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal)


class Rewriter:
    """Rewrites one module's tree in place."""

    def __init__(self, sites: Sites, filename: str) -> None:
        self._sites = sites
        self._filename = filename
        self._expressions = OperationTaps(self._grad_site, self._part_site, FileOperations(sites, filename))
        self._scope = Scope()
        self._current = 0
        self._statement: ast.stmt | None = None

    def module(self, tree: ast.Module) -> ast.Module:
        """Add the taps to the tree; the docstring and `from __future__` lines stay first."""
        self._expressions.imported = imported_by(tree)
        first = 0
        for first, statement in enumerate([*tree.body, None]):  # noqa: B007 the loop's last values are used behind it
            if not (is_docstring(statement) or is_future(statement)):
                break
        tree.body = tree.body[:first] + self._block(tree.body[first:], Scope())
        return tree

    def _block(self, statements: Sequence[ast.stmt], scope: Scope) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in statements:
            self._scope, self._statement = scope, statement
            method: Any = getattr(self, f"_rewrite_{type(statement).__name__}", self._rewrite_other)
            out.extend(method(statement, scope))
        return out

    def _site(
        self,
        node: Placed,
        kind: SiteKind,
        scope: Scope,
        targets: tuple[Target, ...] = (),
        read: Any = (),
        how: str = "",
    ) -> int:
        self._current = self._sites.add(
            self._filename, node, kind, scope, targets=targets, reads=reads(read), operands=operands(read), how=how
        )
        return self._current

    def _grad_site(self, node: ast.Attribute) -> int:
        """Add the site of a `.grad` load; it has the statement's target if the load is all that is assigned."""
        statement, targets = self._statement, ()
        if isinstance(statement, ast.Assign) and statement.value is node:
            targets = tuple(target_of(target) for target in statement.targets)
        how = "tested" if isinstance(statement, (ast.If, ast.While, ast.Assert)) else "used"
        return self._inner_site(node, "grad-read", targets, [node.value], how)

    def _part_site(self, node: Placed, kind: SiteKind, targets: tuple[Target, ...]) -> int:
        """Add the site of a walrus or a yield inside a statement."""
        return self._inner_site(node, kind, targets, [getattr(node, "value", None)])

    def _inner_site(self, node: Placed, kind: SiteKind, targets: tuple[Target, ...], read: Any, how: str = "") -> int:
        statement = self._current
        site = self._site(node, kind, self._scope, targets, read, how)
        self._current = statement
        return site

    def _tap_expression(self, node: Any) -> Any:
        """Add the taps of an expression."""
        return None if node is None else self._expressions.value(node, self._current)

    def _passing(self, node: Any, site: int) -> Any:
        """Tap an expression whose operations belong to `site`."""
        node = self._tap_expression(node)
        return node if simple(node) else call("__bp_pass__", [site, node], node)

    def _build_statement_tap(self, site: int, at: Placed, names: Sequence[ast.expr] = ()) -> ast.Expr:
        """Build the tap that follows a statement, at the statement's place."""
        loads = [place(ast.Name(name.id, ast.Load()), name) for name in names if isinstance(name, ast.Name)]
        scope = self._sites.facts[site].scope
        tap = "__bp_top__" if scope.top and scope.loop_line is None else "__bp_after__"
        return place(ast.Expr(call(tap, [site, *loads], at)), at)

    def _end_of(self, node: ast.stmt) -> Placed:
        """Return the last line of a compound statement, as a place."""
        mark = ast.Pass()
        mark.lineno = mark.end_lineno = node.end_lineno or node.lineno
        mark.col_offset = mark.end_col_offset = max((node.end_col_offset or 1) - 1, 0)
        return mark

    # ---- simple statements

    def _rewrite_other(self, node: ast.stmt, scope: Scope) -> list[ast.stmt]:
        """Statements without a rule of their own: their expressions are tapped; a moment follows."""
        site = self._site(node, "statement", scope, (), [node])
        node = self._tap_expression(node)
        if isinstance(node, (*_SILENT, ast.Raise)) or (
            isinstance(node, (ast.Import, ast.ImportFrom)) and not scope.top
        ):
            return [node]
        return [node, self._build_statement_tap(site, node)]

    def _rewrite_Expr(self, node: ast.Expr, scope: Scope) -> list[ast.stmt]:
        if isinstance(node.value, ast.Constant):
            return [node]
        site = self._site(node, "call", scope, (), [node.value], call_of(node.value))
        node.value = self._tap_expression(node.value)
        return [node, self._build_statement_tap(site, node)]

    def _rewrite_Assign(self, node: ast.Assign, scope: Scope) -> list[ast.stmt]:
        return self._store(node, node.targets, scope)

    def _rewrite_AnnAssign(self, node: ast.AnnAssign, scope: Scope) -> list[ast.stmt]:
        return [node] if node.value is None else self._store(node, [node.target], scope)

    def _store(self, node: Any, targets: Sequence[ast.expr], scope: Scope) -> list[ast.stmt]:
        how, read = call_of(node.value), [node.value, *targets]
        plain, names, stored = plain_names(targets), tuple(target_of(t) for t in targets), node.value
        if plain is not None:
            site = self._site(node, "assign", scope, tuple(name.id for name in plain), read, how)
            self._sites.facts[site].is_inert = is_inert([stored])
            node.value = self._tap_expression(stored)
            return [node, self._build_statement_tap(site, node, plain)]
        site = self._site(node, "assign", scope, names, read, how)
        node.value = call("__bp_value__", [site, self._tap_expression(stored), *containers(targets)], stored)
        for target in targets:
            self._expressions.aside(target, site)
        self._expressions.note_outer_names(site, operands(targets))
        return [node, self._build_statement_tap(site, node)]

    def _rewrite_AugAssign(self, node: ast.AugAssign, scope: Scope) -> list[ast.stmt]:
        plain = [node.target] if isinstance(node.target, ast.Name) else []
        text = chain(node.target)
        targets = (node.target.id,) if isinstance(node.target, ast.Name) else ()
        site = self._site(node, "inplace", scope, targets, [node.value, *build_target_read(node.target)], text or "")
        self._sites.facts[site].is_inert = bool(plain) and is_inert([node.value])
        node.value = self._tap_expression(node.value)
        self._expressions.note_outer_names(site, operands(build_target_read(node.target)))
        return [node, self._build_statement_tap(site, node, plain)]

    def _rewrite_Return(self, node: ast.Return, scope: Scope) -> list[ast.stmt]:
        if node.value is None or isinstance(node.value, ast.Constant):
            return [node]
        site = self._site(node, "return", scope, (), [node.value], call_of(node.value))
        self._sites.facts[site].is_inert = is_inert([node.value])
        value = node.value
        node.value = call("__bp_value__", [site, self._tap_expression(value)], value)
        return [node]

    def _rewrite_Assert(self, node: ast.Assert, scope: Scope) -> list[ast.stmt]:
        site = self._site(node, "statement", scope, (), [node.test])
        test = tap_assertion(node.test, self._tap_expression, lambda part: self._passing(part, site))
        node.test, node.msg = test, self._tap_expression(node.msg)
        return [node, self._build_statement_tap(site, node)]

    # ---- blocks

    def _rewrite_If(self, node: ast.If, scope: Scope) -> list[ast.stmt]:
        node.test = self._passing(node.test, self._head(node.test, scope))
        node.body, node.orelse = self._block(node.body, scope), self._block(node.orelse, scope)
        return self._block_end(node, scope)

    def _rewrite_While(self, node: ast.While, scope: Scope) -> list[ast.stmt]:
        inner = scope.in_loop(node.lineno)
        node.test = self._passing(node.test, self._head(node.test, inner))
        node.body, node.orelse = self._block(node.body, inner), self._block(node.orelse, scope)
        return self._loop_end(node, scope)

    def _rewrite_For(self, node: Any, scope: Scope) -> list[ast.stmt]:
        inner, plain = scope.in_loop(node.lineno), plain_names([node.target])
        node.iter = self._passing(node.iter, self._head(node.iter, scope))
        targets = tuple(name.id for name in plain or ())
        site = self._site(node.target, "for", inner, targets, [node.iter])
        self._sites.facts[site].is_inert = plain is not None
        opening = self._build_statement_tap(site, node.target, plain or ())
        node.body, node.orelse = [opening, *self._block(node.body, inner)], self._block(node.orelse, scope)
        return self._loop_end(node, scope)

    _rewrite_AsyncFor = _rewrite_For

    def _rewrite_With(self, node: Any, scope: Scope) -> list[ast.stmt]:
        named: list[ast.Name] = []
        for item in node.items:
            item.context_expr = self._passing(item.context_expr, self._head(item.context_expr, scope))
            named += plain_names([item.optional_vars]) or [] if item.optional_vars is not None else []
        opening: list[ast.stmt] = []
        if named:
            read = [item.context_expr for item in node.items]
            site = self._site(node.items[0].context_expr, "assign", scope, tuple(n.id for n in named), read)
            opening = [self._build_statement_tap(site, node.items[0].context_expr, named)]
        node.body = [*opening, *self._block(node.body, scope)]
        return self._block_end(node, scope)

    _rewrite_AsyncWith = _rewrite_With

    def _rewrite_Try(self, node: Any, scope: Scope) -> list[ast.stmt]:
        node.body, node.orelse = self._block(node.body, scope), self._block(node.orelse, scope)
        for handler in node.handlers:
            mark = place(ast.Expr(call("__bp_caught__", [], handler.body[0])), handler.body[0])
            handler.body = [mark, *self._block(handler.body, scope)]
        node.finalbody = self._block(node.finalbody, scope)
        return self._block_end(node, scope)

    _rewrite_TryStar = _rewrite_Try

    def _rewrite_Match(self, node: ast.Match, scope: Scope) -> list[ast.stmt]:
        subject = node.subject
        node.subject = self._passing(subject, self._head(subject, scope))
        for case in node.cases:
            bound = list_captured_names(case.pattern)
            case.guard = self._tap_expression(case.guard)
            body = self._block(case.body, scope)
            if bound:
                site = self._site(case.pattern, "assign", scope, tuple(name.id for name in bound), [subject])
                body.insert(0, self._build_statement_tap(site, case.body[0], bound))
            case.body = body
        return self._block_end(node, scope)

    def _head(self, node: Placed, scope: Scope) -> int:
        site = self._site(node, "statement", scope, (), [node], call_of(node))
        self._sites.facts[site].is_inert = is_inert([node])
        return site

    def _loop_end(self, node: ast.stmt, scope: Scope) -> list[ast.stmt]:
        """Put a loop between the taps before and after it."""
        before = place(ast.Expr(call("__bp_loop__", [], node)), node)
        if scope.top:
            return [before, *self._block_end(node, scope)]
        end = self._end_of(node)
        left = place(ast.Expr(call("__bp_loop_left__", [self._site(node, "statement", scope)], end)), end)
        return [before, node, left]

    def _block_end(self, node: ast.stmt, scope: Scope) -> list[ast.stmt]:
        """Return a compound statement; at the top level with the tap of a moment after it."""
        if not scope.top:
            return [node]
        end = self._end_of(node)
        return [node, self._build_statement_tap(self._site(node, "statement", scope), end)]

    # ---- definitions

    def _rewrite_FunctionDef(self, node: Any, scope: Scope) -> list[ast.stmt]:
        inner = scope.body_scope(node)
        first = 1 if is_docstring(node.body[0]) else 0
        head, anchor = node.body[:first], node.body[min(first, len(node.body) - 1)]
        params = parameters(node.args)
        site = self._site(anchor, "enter", inner, tuple(params))
        loads = [place(ast.Name(param, ast.Load()), anchor) for param in params]
        entry = place(ast.Expr(call("__bp_enter__", [site, *loads], anchor)), anchor)
        node.body = [*head, entry, *self._block(node.body[first:], inner)]
        return self._definition(node, scope)

    _rewrite_AsyncFunctionDef = _rewrite_FunctionDef

    def _rewrite_ClassDef(self, node: ast.ClassDef, scope: Scope) -> list[ast.stmt]:
        inner = scope.body_scope(node)
        first = 1 if is_docstring(node.body[0]) else 0
        node.body = node.body[:first] + self._block(node.body[first:], inner)
        return self._definition(node, scope)

    def _definition(self, node: Any, scope: Scope) -> list[ast.stmt]:
        if not scope.top:
            return [node]
        end = self._end_of(node)
        head = ast.copy_location(ast.Pass(), node)
        head.end_lineno, head.end_col_offset = node.end_lineno, node.end_col_offset
        return [node, self._build_statement_tap(self._site(head, "statement", scope), end)]
