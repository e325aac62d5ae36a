"""What ends a tensor's history, by kind: one node of the syntax tree, seen from the value that goes into it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final, Literal

from backprobe.rules.analysis.source.break_expressions import NO_ELEMENTS, name_of

Kind = Literal["no-grad", "detach", "numpy", "item", "rebuild", "parameter", "sample", "non-differentiable"]
"""In the order in which a reader would blame them, where a value goes through several."""

KINDS: Final[tuple[Kind, ...]] = (
    "no-grad",
    "detach",
    "numpy",
    "item",
    "rebuild",
    "parameter",
    "sample",
    "non-differentiable",
)

_METHODS: Final[dict[str, Kind]] = {
    "detach": "detach",
    "detach_": "detach",
    "data": "detach",
    "item": "item",
    "tolist": "item",
    "numpy": "numpy",
    "__array__": "numpy",
    "sample": "sample",
    "sample_n": "sample",
}
"""Attributes and methods of a value that end its history."""

_INDICES: Final = frozenset(
    {
        "argmax", "argmin", "argsort", "argwhere", "nonzero", "bincount", "bucketize", "searchsorted", "one_hot",
        "isnan", "isfinite", "isinf", "isclose", "allclose", "equal", "eq", "ne", "gt", "ge", "lt", "le", "greater",
        "greater_equal", "less", "less_equal", "logical_and", "logical_or", "logical_not", "logical_xor", "histc",
        "multinomial", "indices", "long", "int", "short", "bool", "byte", "signbit", "count_nonzero",
    }
)  # fmt: skip
"""Methods, functions and fields whose result has no derivative: truth values, counts and places."""

_REBUILDING: Final = frozenset(
    {"tensor", "Tensor", "FloatTensor", "DoubleTensor", "HalfTensor", "LongTensor", "IntTensor", "new_tensor"}
)
"""What makes a new tensor of the values that it is given."""

_NUMBERS: Final = frozenset({"float", "int", "bool", "complex", "round"})
_INTEGERS: Final = frozenset(
    {"long", "int", "short", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
)
"""dtypes without a derivative, by their name in torch."""

_ARRAYS: Final = frozenset({"np", "numpy", "scipy", "sp", "jnp"})
"""What arrays' functions are called through, as everyone imports them; only what they are given matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One place in an expression where a history ends.

    Attributes:
        node: The call, attribute or comparison.
        how: It in words: `` `.detach()` ``.
    """

    kind: Kind
    node: ast.expr
    how: str


def ending_at(above: ast.AST, inner: ast.AST) -> Ending | None:
    """What one node does to the history of the value inside it; None: it goes on, as far as is known."""
    if isinstance(above, ast.Compare):
        return Ending(kind="non-differentiable", node=above, how="a comparison")
    if isinstance(above, ast.Attribute) and inner is above.value:
        return _attribute(above)
    if isinstance(above, ast.Call) and inner is not above.func:
        return _call(above)
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and _is_cast(above):
        text = ", ".join(ast.unparse(one) for one in (*above.args, *(one.value for one in above.keywords)))
        return Ending(kind="non-differentiable", node=above, how=f"`.{above.func.attr}({text})`")
    return None


def _attribute(node: ast.Attribute) -> Ending | None:
    kind = _METHODS.get(node.attr)
    if kind is not None:
        return Ending(kind=kind, node=node, how=f"`.{node.attr}`" if node.attr == "data" else f"`.{node.attr}()`")
    if node.attr in _INDICES:
        how = f"`.{node.attr}`" if node.attr == "indices" else f"`.{node.attr}()`"
        return Ending(kind="non-differentiable", node=node, how=how)
    return None


def _call(call: ast.Call) -> Ending | None:
    """A call that is given the value."""
    written = ast.unparse(call.func)
    first, _, last = written.rpartition(".")
    if not first and last in _NUMBERS - {"round"}:
        return Ending(kind="item", node=call, how=f"`{last}()`")
    if first == "math":
        return Ending(kind="item", node=call, how=f"`{written}()`")
    if first.partition(".")[0] in _ARRAYS:
        return Ending(kind="numpy", node=call, how=f"`{written}()`")
    if (first or last != "tensor") and last in _REBUILDING and (first in ("", "torch") or last == "new_tensor"):
        return Ending(kind="rebuild", node=call, how=f"`{written}()`")
    if last == "Parameter":
        return Ending(kind="parameter", node=call, how=f"`{written}()`")
    if last == "tensor":
        return Ending(kind="rebuild", node=call, how="`tensor()`")
    if last == "as_tensor" and call.args and isinstance(call.args[0], ast.List | ast.ListComp | ast.Tuple):
        return Ending(kind="rebuild", node=call, how=f"`{written}()`")
    if first and last in _INDICES - _INTEGERS:
        return Ending(kind="non-differentiable", node=call, how=f"`{written}()`")
    return None


def _is_cast(call: ast.Call) -> bool:
    """`x.to(torch.long)`, `x.type(torch.int64)`: the result has a dtype without a derivative."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("to", "type"):
        return False
    given = [*call.args, *(one.value for one in call.keywords if one.arg == "dtype")]
    return any(isinstance(one, ast.Attribute) and one.attr in _INTEGERS for one in given)


def takes_no_elements(above: ast.AST, inner: ast.AST) -> bool:
    """Only a shape, a dtype or a truth value is asked of it: no element goes on."""
    if isinstance(above, ast.IfExp):
        return inner is above.test
    name = name_of(above, inner)
    if name == "type":
        return isinstance(above, ast.Call)
    return name in NO_ELEMENTS


def ending_region(node: ast.expr) -> tuple[int, int, int, int]:
    """What to mark of an ending: `(line, byte offset, end line, end byte offset)`.

    Of a chain of calls over several lines it is the last link only: there the cursor belongs.
    """
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
    attribute = node.func if isinstance(node, ast.Call) else node
    if isinstance(attribute, ast.Attribute) and node.lineno != end_line:
        line = attribute.end_lineno or end_line
        start = (attribute.end_col_offset or 0) - len(attribute.attr.encode())
        return line, max(start, 0), end_line, end
    return node.lineno, node.col_offset, end_line, end
