"""Taps inside expressions: loads of `.grad`, walrus targets, yields; and the parts that taps are built from."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

_SIMPLE = (ast.Constant, ast.Name, ast.Lambda)


def place(node: Any, at: ast.AST) -> Any:
    """Put a node at the position of another one."""
    return ast.copy_location(node, at)


def call(function: str, args: Sequence[Any], at: ast.AST) -> ast.Call:
    """Build a call of a tap. Integers among the arguments become constants; every added node stands at `at`."""
    built = [place(ast.Constant(arg), at) if isinstance(arg, int) else arg for arg in args]
    return place(ast.Call(place(ast.Name(function, ast.Load()), at), built, []), at)


def simple(node: ast.AST) -> bool:
    """Return whether an expression runs no autograd operation."""
    if isinstance(node, ast.Attribute):
        return simple(node.value)
    if isinstance(node, ast.Compare):  # a comparison has no derivative
        return simple(node.left) and all(simple(part) for part in node.comparators)
    if isinstance(node, ast.BoolOp):
        return all(simple(part) for part in node.values)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return simple(node.operand)
    return isinstance(node, _SIMPLE)


def tap_assertion(node: Any, inside: Callable[[Any], Any], passing: Callable[[Any], Any]) -> Any:
    """Tap the test of an `assert` inside: its outer form decides what the compiler warns of and where it raises."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = tap_assertion(node.operand, inside, passing)
    elif isinstance(node, ast.BoolOp):
        node.values = [tap_assertion(value, inside, passing) for value in node.values]
    elif isinstance(node, ast.Compare):
        node.left, node.comparators = passing(node.left), [passing(part) for part in node.comparators]
    else:
        node = inside(node) if isinstance(node, ast.Tuple) else passing(node)
    return node


class ExpressionTaps(ast.NodeTransformer):
    """Taps the `.grad` loads, walrus targets and yields of an expression; lambda bodies are left alone.

    `x.grad` becomes `__bp_grad__(site, __bp_base__(x).grad)`: the attribute is still read in the user's frame, so that
    torch's warning points at the user's line.
    """

    def __init__(
        self, grad_site: Callable[[ast.Attribute], int], part_site: Callable[[ast.AST, Any, tuple[Any, ...]], int]
    ) -> None:
        self._site = grad_site
        self._part_site = part_site

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.NamedExpr:
        """`(y := value)`: the value passes through a tap that names it."""
        site = self._part_site(node, "assign", (node.target.id,))
        node.value = call("__bp_value__", [site, self.visit(node.value)], node.value)
        return node

    def visit_Yield(self, node: ast.Yield) -> ast.Yield:
        """`yield value`: the operations of `value` belong to this line, not to the consumer's."""
        if node.value is not None and not simple(node.value):
            node.value = call(
                "__bp_pass__", [self._part_site(node, "statement", ()), self.visit(node.value)], node.value
            )
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        """Nothing: a lambda may be pickled by value or inspected."""
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """`torch.autograd.grad(...)` reads no gradient: the called attribute itself is not tapped."""
        if isinstance(node.func, ast.Attribute) and node.func.attr == "grad":
            node.func.value = self.visit(node.func.value)
        else:
            node.func = self.visit(node.func)
        node.args = [self.visit(arg) for arg in node.args]
        node.keywords = [self.visit(keyword) for keyword in node.keywords]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Tap a load of `.grad`; visit the object of any other attribute."""
        if node.attr != "grad" or not isinstance(node.ctx, ast.Load):
            node.value = self.visit(node.value)
            return node
        site = self._site(node)
        base = self.visit(node.value)
        node.value = call("__bp_base__", [site, base], base)
        return call("__bp_grad__", [site, node], node)
