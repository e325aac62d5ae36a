"""Taps around the operations of an expression: calls, operators, subscripts, attributes, and names that are handed on.

`(a.detach() * b).sum()` becomes `__bp_op__(2, __bp_op__(1, __bp_op__(0, a.detach()) * b).sum())`: what went into each
is known from the names and operations right below it. Left alone: what is imported, metadata such as `.shape`, lambdas
and f-strings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from backprobe.capture.rewriting.ast_nodes import ExpressionTaps, call, place
from backprobe.capture.rewriting.operation_facts import FileOperations, Operand
from backprobe.capture.rewriting.read_names import OPERATORS, asks, call_of, chain, is_metadata

_PASSED_OVER: Final = frozenset({
    "super", "locals", "globals", "vars", "dir", "eval", "exec", "print", "range", "enumerate", "zip", "reversed",
    "isinstance", "issubclass", "callable", "hasattr", "repr", "str", "open", "breakpoint",
})  # fmt: skip
"""Built-ins that make no number or tensor of a tensor, or look at the frame that calls them."""

_COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_VIEWS: Final = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
"""Attributes that make a tensor of a tensor."""

_UNARY: Final = {ast.USub: "-", ast.UAdd: "+", ast.Invert: "~"}
_COMPARE: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}


class OperationTaps(ExpressionTaps):
    """Taps the operations of expressions, with all that `ExpressionTaps` taps.

    Attributes:
        imported: Names that imports of the file bind: what they hold is no tensor.
    """

    def __init__(self, grad_site: Any, part_site: Any, operations: FileOperations) -> None:
        super().__init__(grad_site, part_site)
        self.imported: frozenset[str] = frozenset()
        self._operations = operations
        self._statement = 0
        self._below: Operand | None = None
        self._may_skip = self._repeats = False

    def aside(self, node: Any, statement: int) -> Any:
        """Tap an expression of a statement that does not go into its value: the place it is stored in."""
        outer = self._statement
        self._statement = statement
        with self._apart():
            node = self.visit(node)
        self._statement = outer
        return node

    def value(self, node: Any, statement: int) -> Any:
        """Tap an expression of a statement."""
        outer = self._statement, self._below
        self._statement, self._below = statement, Operand()
        try:
            node = self.visit(node)
            self._operations.settle(statement, self._below)
        finally:
            self._statement, self._below = outer
        return node

    def note_outer_names(self, statement: int, names: Sequence[str]) -> None:
        """Names outside of its value that go into what a statement binds: the index of a store, `x` of `x += 1`."""
        self._operations.settle(statement, Operand(names=dict.fromkeys(names)))

    # ---- what is an operation

    def visit_Call(self, node: ast.Call) -> Any:
        """Tap a call."""
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in _PASSED_OVER:
            node.args, node.keywords = [self.visit(a) for a in node.args], [self.visit(k) for k in node.keywords]
            return node
        function = call_of(node)
        with self._operation() as below:
            asked = asks(node)
            self._function(node)
            for index, argument in enumerate(node.args):
                if index == 0 and asked:
                    with self._apart():
                        node.args[0] = self.visit(argument)
                else:
                    node.args[index] = self._tap_argument(argument)
            for keyword in node.keywords:
                keyword.value = self._tap_argument(keyword.value)
        return self._tap_operation(node, function, below)

    def _function(self, node: ast.Call) -> None:
        """Visit what is called; the tensor whose method it is goes into the call."""
        function = node.func
        if isinstance(function, ast.Attribute):
            if is_metadata(function):
                with self._apart():
                    function.value = self.visit(function.value)
            elif not self._is_imported(function):
                function.value = self.visit(function.value)
        elif not isinstance(function, ast.Name):
            node.func = self.visit(function)

    def _tap_argument(self, node: Any) -> Any:
        """Visit an argument. A name is looked at, since it may hold a list of tensors."""
        if isinstance(node, ast.Starred):
            node.value = self._tap_argument(node.value)
            return node
        if not isinstance(node, ast.Name) or node.id in self.imported:
            return self.visit(node)
        with self._operation() as below:
            below.names[node.id] = None
        return self._tap_operation(node, node.id, below, is_load=True)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Tap `a * b`."""
        if all(
            isinstance(part, (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop))
            for part in ast.walk(node)
        ):
            return node  # numbers: the compiler makes one of them
        with self._operation() as below:
            node.left, node.right = self.visit(node.left), self.visit(node.right)
        return self._tap_operation(node, OPERATORS.get(type(node.op), "operator"), below)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Tap `-a`."""
        if isinstance(node.operand, ast.Constant) or type(node.op) not in _UNARY:
            node.operand = self.visit(node.operand)
            return node
        with self._operation() as below:
            node.operand = self.visit(node.operand)
        return self._tap_operation(node, _UNARY[type(node.op)], below)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Tap `a > b`."""
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            return self.generic_visit(node)
        with self._operation() as below:
            node.left, node.comparators = self.visit(node.left), [self.visit(node.comparators[0])]
        return self._tap_operation(node, _COMPARE[type(node.ops[0])], below)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """`a[i]`."""
        text = chain(node)
        if not isinstance(node.ctx, ast.Load):
            return self.generic_visit(node)
        with self._operation() as below:
            if text is not None:
                below.names[text] = None
            node.value, node.slice = self.visit(node.value), self.visit(node.slice)
        return self._tap_operation(node, "[]", below, is_load=True)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """`a.T`; `self.h`."""
        if not isinstance(node.ctx, ast.Load):
            node.value = self.visit(node.value)
            return node
        if is_metadata(node):
            with self._apart():
                node.value = self.visit(node.value)
            return node
        imported = self._is_imported(node)
        if imported:
            self._note_bases(node)
            return node
        if node.attr == "grad":
            with self._operation() as below, self._apart():
                tapped = super().visit_Attribute(node)
            return self._tap_operation(tapped, ".grad", below, is_load=True)
        with self._operation() as below:
            text = chain(node)
            if text is not None:
                below.names[text] = None
            if imported is None or node.attr in _VIEWS:
                node.value = self.visit(node.value)
            else:
                self._note_bases(node.value)
        return self._tap_operation(node, f".{node.attr}", below, is_load=True)

    def visit_Name(self, node: ast.Name) -> Any:
        """Note a name that is read. In a comprehension it may be one that no statement bound."""
        if self._repeats and isinstance(node.ctx, ast.Load) and node.id not in self.imported:
            with self._operation() as below:
                below.names[node.id] = None
            return self._tap_operation(node, node.id, below, is_load=True)
        if self._below is not None and isinstance(node.ctx, ast.Load):
            self._below.names[node.id] = None
        return node

    # ---- what is none

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        """Tap `(y := value)` as a statement."""
        site = self._part_site(node, "assign", (node.target.id,))
        node.value = call("__bp_value__", [site, self.value(node.value, site)], node.value)
        if self._below is not None:
            self._below.names[node.target.id] = None
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.IfExp:
        """Visit `a if test else b`."""
        with self._apart():
            node.test = self.visit(node.test)
        with self._optional():
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.BoolOp:
        """Visit `a or b`."""
        with self._optional():
            node.values = [self.visit(value) for value in node.values]
        return node

    def _comprehension(self, node: Any) -> Any:
        with self._optional(repeats=True):
            with self._apart():
                node.generators = [self.visit(part) for part in node.generators]
            for part in ("elt", "key", "value"):
                if hasattr(node, part):
                    setattr(node, part, self.visit(getattr(node, part)))
        return node

    def visit(self, node: ast.AST) -> Any:
        """Any expression."""
        return self._comprehension(node) if isinstance(node, _COMPREHENSIONS) else super().visit(node)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        """Visit a text; what is in it is not followed."""
        return node if not _reads_grad(node) else ExpressionTaps.generic_visit(self, node)

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        """Visit a value in a text."""
        with self._apart():
            return self.generic_visit(node)

    def visit_Yield(self, node: ast.Yield) -> ast.Yield:
        """`yield value` gives back what is sent."""
        with self._apart():
            return super().visit_Yield(node)

    # ---- the parts of both

    def _is_imported(self, node: ast.Attribute) -> bool | None:
        """Of a chain of attributes: an import bound its first name. None: it is no such chain."""
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            if base.attr == "grad":
                return None
            base = base.value
        return base.id in self.imported if isinstance(base, ast.Name) else None

    def _note_bases(self, node: ast.expr) -> None:
        """Note `a` and `a.b` of `a.b.c`: the first of them that is a tensor is what went in."""
        while isinstance(node, ast.Attribute):
            self._name(chain(node))
            node = node.value
        self._name(chain(node))

    def _name(self, text: str | None) -> None:
        if text is not None and self._below is not None:
            self._below.names[text] = None

    def _tap_operation(self, node: Any, function: str, below: Operand, *, is_load: bool = False) -> ast.expr:
        number = self._operations.add(node, function, below, self._statement, is_load=is_load, repeats=self._repeats)
        if self._below is not None:
            self._below.operations.append((number, self._may_skip))
        return place(call("__bp_op__", [number, node], node), node)

    @contextmanager
    def _operation(self) -> Iterator[Operand]:
        outer, skips, below = self._below, self._may_skip, Operand()
        self._below, self._may_skip = below, False
        yield below
        self._below, self._may_skip = outer, skips

    @contextmanager
    def _apart(self) -> Iterator[None]:
        """Keep what is visited in the context out of the operation around it."""
        outer = self._below
        self._below = Operand()
        yield
        self._below = outer

    @contextmanager
    def _optional(self, *, repeats: bool = False) -> Iterator[None]:
        before = self._may_skip, self._repeats
        self._may_skip, self._repeats = True, repeats or self._repeats
        yield
        self._may_skip, self._repeats = before


def _reads_grad(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in ast.walk(node))
