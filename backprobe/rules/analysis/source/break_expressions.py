"""What ends a tensor's history inside an expression: the part of the source that names the cause."""

from __future__ import annotations

import ast
from typing import Final

from backprobe.rules.analysis.source.syntax import Tree

_ATTRIBUTES: Final = {
    "detach": "`.detach()`",
    "detach_": "`.detach_()`",
    "data": "`.data`",
    "item": "`.item()`",
    "numpy": "`.numpy()`",
    "tolist": "`.tolist()`",
    "argmax": "`argmax`, which has no derivative,",
    "argmin": "`argmin`, which has no derivative,",
    "argsort": "`argsort`, which has no derivative,",
    "long": "`.long()`, which has no derivative,",
    "int": "`.int()`, which has no derivative,",
    "bool": "`.bool()`, which has no derivative,",
}
"""Methods and attributes of a tensor."""

_FUNCTIONS: Final = {
    "tensor": "`torch.tensor()`",
    "argmax": "`argmax`, which has no derivative,",
    "argmin": "`argmin`, which has no derivative,",
    "argsort": "`argsort`, which has no derivative,",
    "float": "`float()`",
    "int": "`int()`",
    "bool": "`bool()`",
    "complex": "`complex()`",
}
"""Functions that take a tensor; the builtin ones make a Python number of it."""

_BUILTIN: Final = frozenset({"float", "int", "bool", "complex"})

_INTEGERS: Final = frozenset(
    {"long", "int", "short", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
)
"""dtypes without a derivative, by their name in torch."""

NO_ELEMENTS: Final = frozenset({
    "shape", "size", "dim", "ndim", "numel", "nelement", "dtype", "device", "layout", "grad", "grad_fn", "is_leaf",
    "requires_grad", "len", "type", "isinstance", "zeros_like", "ones_like", "empty_like", "full_like", "rand_like",
    "randn_like", "randint_like", "new_zeros", "new_ones", "new_empty", "new_full", "zeros", "ones", "empty", "rand",
    "randn", "randint", "eye", "arange",
})  # fmt: skip
"""What reads of a tensor, or makes from it, something that its elements do not go into."""

NUMBERS: Final = frozenset(
    {"`.item()`", "`.numpy()`", "`.tolist()`", "`float()`", "`int()`", "`bool()`", "`complex()`"}
)
"""Causes after which the value is no tensor any more."""


def cause_between(tree: Tree, part: ast.expr, top: ast.expr) -> str | None:
    """The first cause between an operand and the whole; "" if no element of it gets there, None if nothing is seen."""
    inner: ast.AST = part
    for above in () if part is top else tree.ancestors(part):
        name = name_of(above, inner)
        if (name in NO_ELEMENTS and not _is_method(above, "type")) or _is_test(above, inner):
            return ""
        how = _cause(above, inner, name)
        if how is not None:
            return how
        if above is top:
            break
        inner = above
    return None


def _cause(above: ast.AST, inner: ast.AST, name: str) -> str | None:
    if isinstance(above, ast.Compare):
        return "a comparison, which has no derivative,"
    called = above.func if isinstance(above, ast.Call) and inner is not above.func else None
    if called is not None:
        if isinstance(called, ast.Name):
            return _FUNCTIONS.get(name)
        if name == "apply":
            return f"`{ast.unparse(called.value)}`, a custom Function," if isinstance(called, ast.Attribute) else None
        return _FUNCTIONS.get(name) if name not in _BUILTIN else None
    if isinstance(above, ast.Attribute) and inner is above.value:
        return _ATTRIBUTES.get(name)
    if isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and _is_cast(above):
        return f"`.{above.func.attr}({', '.join(ast.unparse(one) for one in above.args)})`, which has no derivative,"
    return None


def _is_method(above: ast.AST, name: str) -> bool:
    return isinstance(above, ast.Attribute) and above.attr == name


def _is_test(above: ast.AST, inner: ast.AST) -> bool:
    return isinstance(above, ast.IfExp) and inner is above.test


def _is_cast(above: ast.AST) -> bool:
    """`x.to(torch.long)`, `x.type(torch.int64)`: the result has a dtype without a derivative."""
    if not isinstance(above, ast.Call) or not isinstance(above.func, ast.Attribute):
        return False
    if above.func.attr not in ("to", "type"):
        return False
    given = [*above.args, *(one.value for one in above.keywords if one.arg == "dtype")]
    return any(isinstance(one, ast.Attribute) and one.attr in _INTEGERS for one in given)


def name_of(above: ast.AST, inner: ast.AST) -> str:
    """The attribute read of what is inside, or the function that is called with it."""
    called = above.func if isinstance(above, ast.Call) else above
    if isinstance(above, ast.Call) and inner is above.func:
        return ""
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else ""
