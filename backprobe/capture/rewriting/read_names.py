"""What a piece of source reads: names, dotted names, constant subscripts; and the call its value comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterable

_MOST = 256
"""Names of one statement that are kept."""

_TAPS = "__bp_"
"""How the names of taps begin: an iterable, context or subject has its taps when the names that it gives are noted."""


def chain(node: ast.AST) -> str | None:
    """`a.b[0].c` as text, where every link is a name, an attribute or a constant subscript; else None."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = chain(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    if isinstance(node, ast.Subscript):
        inner, index = chain(node.value), _constant(node.slice)
        return None if inner is None or index is None else f"{inner}[{index}]"
    return None


def _constant(node: ast.AST) -> str | None:
    if isinstance(node, (ast.Constant, ast.Name)):
        return ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        return ast.unparse(node)
    return None


def reads(nodes: Iterable[ast.AST | None]) -> tuple[str, ...]:
    """Every name and chain that expressions read, in source order, once; lambda and comprehension bodies included."""
    found: dict[str, None] = {}
    for root in nodes:
        if root is None:
            continue
        for node in ast.walk(root):
            if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Del):
                text = chain(node)
                if text is not None and isinstance(node.ctx, ast.Load) and not text.startswith(_TAPS):
                    found[text] = None
                    if len(found) >= _MOST:
                        return tuple(found)
    return tuple(found)


def operands(nodes: Iterable[ast.AST | None]) -> tuple[str, ...]:
    """List the names and chains among `reads` whose elements can get into the value, not just the shape.

    Left out besides: the object that an attribute or subscript is stored into.
    """
    found: dict[str, None] = {}
    waiting: list[ast.AST] = [node for node in nodes if node is not None][::-1]
    while waiting and len(found) < _MOST:
        node = waiting.pop()
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Load):
            text = None if is_metadata(node) else chain(node)
            if text is not None and not text.startswith(_TAPS):
                found[text] = None
        waiting += _operands_in(node)[::-1]
    return tuple(found)


def _operands_in(node: ast.AST) -> list[ast.AST]:
    """List the parts of a node whose elements can get into its value."""
    if isinstance(node, ast.Attribute):
        return [] if is_metadata(node) or isinstance(node.ctx, ast.Store) else [node.value]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return [node.slice]
    if isinstance(node, ast.Call):
        return [node.func, *(node.args[1:] if asks(node) else node.args), *node.keywords]
    return list(ast.iter_child_nodes(node))


def asks(node: ast.Call) -> bool:
    """Return whether the call asks its first argument for no element: `len(x)`, `torch.zeros_like(x)`."""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    is_method = isinstance(node.func, ast.Attribute) and not called.endswith("_like")
    return called in _ASKS and not is_method


def is_metadata(node: ast.AST) -> bool:
    """Return whether an attribute holds no element of its object: `.shape`."""
    return isinstance(node, ast.Attribute) and node.attr in _METADATA


def call_of(node: ast.AST | None) -> str:
    """Name the call or operator whose result an expression is: `torch.randn`, `.detach`, `*`; "" for anything else."""
    if isinstance(node, ast.Await):
        return call_of(node.value)
    if isinstance(node, ast.Call):
        function = node.func
        text = chain(function)
        if text is not None:
            return text
        return f".{function.attr}" if isinstance(function, ast.Attribute) else ""
    if isinstance(node, ast.BinOp):
        return OPERATORS.get(type(node.op), "")
    return ""


def imported_by(tree: ast.AST) -> frozenset[str]:
    """Collect the names that imports anywhere in a file bind."""
    return frozenset(
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    )


def is_inert(nodes: Iterable[ast.AST | None]) -> bool:
    """Expressions that call nothing, await nothing and bind nothing: names, attributes, constants and operators."""
    return all(isinstance(part, _INERT) for node in nodes if node is not None for part in ast.walk(node))


_INERT: tuple[type[ast.AST], ...] = (
    ast.Name, ast.Constant, ast.Attribute, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Tuple, ast.List,
    ast.IfExp, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context,
)  # fmt: skip
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.MatMult: "@",
    ast.Pow: "**",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_ASKS = frozenset({
    "len", "id", "type", "isinstance", "hasattr", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like",
    "randn_like", "randint_like",
})  # fmt: skip
"""Functions that ask their first argument for no element."""
_METADATA = frozenset({
    "shape", "size", "numel", "nelement", "dtype", "dim", "ndim", "ndimension", "device", "layout", "stride",
    "storage_offset", "element_size", "itemsize", "nbytes", "is_leaf", "requires_grad", "is_contiguous", "is_cuda",
    "is_floating_point", "new_ones", "new_zeros", "new_full", "new_empty", "new_tensor", "new_empty_strided",
    "data_ptr",
})  # fmt: skip
"""Attributes and methods whose answer holds no element of the tensor they are asked of."""
