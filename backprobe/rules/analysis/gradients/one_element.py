"""The methods of a custom Function, evaluated as they stand in the source over tensors of one element.

What holds for tensors of any shape holds for one element too, and there a product of matrices is a product, a sum over
some dimension is its only summand, and a shape is 1. So plain numbers stand for tensors, and no code of the program
runs. What the evaluation does not know, it gives up: a branch, a loop, a comparison, an operation with a kink or a
step, an index, a call of another function of the program.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final


class Unknown(Exception):
    """The source does something whose value for one element is not known here."""


Value = float | tuple["Value", ...] | None

_ONE: Final[dict[str, Callable[[float], float]]] = {
    "exp": math.exp, "log": math.log, "sin": math.sin, "cos": math.cos, "tan": math.tan, "tanh": math.tanh,
    "sqrt": math.sqrt, "log1p": math.log1p, "expm1": math.expm1, "erf": math.erf, "atan": math.atan,
    "sinh": math.sinh, "cosh": math.cosh, "square": lambda x: x * x, "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / math.sqrt(x), "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "neg": lambda x: -x,
    "softplus": lambda x: math.log1p(math.exp(x)), "silu": lambda x: x / (1 + math.exp(-x)),
    "logsigmoid": lambda x: -math.log1p(math.exp(-x)), "ones_like": lambda _x: 1.0, "zeros_like": lambda _x: 0.0,
    "pi": lambda _x: math.pi,
}  # fmt: skip
_TWO: Final[dict[str, Callable[[float, float], float]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "subtract": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "multiply": lambda a, b: a * b, "div": lambda a, b: a / b, "divide": lambda a, b: a / b, "pow": lambda a, b: a**b,
    "mm": lambda a, b: a * b, "matmul": lambda a, b: a * b, "bmm": lambda a, b: a * b, "dot": lambda a, b: a * b,
    "outer": lambda a, b: a * b, "mv": lambda a, b: a * b,
}  # fmt: skip
_SAME: Final = frozenset({
    "clone", "contiguous", "detach", "float", "double", "to", "type_as", "view", "view_as", "reshape", "t",
    "transpose", "permute", "flatten", "unsqueeze", "squeeze", "expand", "expand_as", "sum", "mean", "item",
    "requires_grad_", "mT", "T", "data",
})  # fmt: skip
"""Operations that leave one element as it is."""

_SIZES: Final = frozenset({"numel", "size", "dim", "shape", "ndim"})
_CONSTANTS: Final = {"math.pi": math.pi, "torch.pi": math.pi, "np.pi": math.pi, "numpy.pi": math.pi, "math.e": math.e}
_OPERATORS: Final[dict[type[ast.operator], str]] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.MatMult: "mm",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Context:
    """What `ctx` holds: the saved tensors, and attributes by name."""

    saved: tuple[Value, ...] = ()
    kept: dict[str, Value] = field(default_factory=dict[str, Value])


def value_returned(method: ast.FunctionDef, given: dict[str, Value], context: Context) -> Value:
    """What the method returns for these arguments; it may change the context.

    Raises:
        Unknown: It does what is not known here.
    """
    names, ctx = dict(given), method.args.args[0].arg
    try:
        for one in method.body:
            if isinstance(one, ast.Return):
                return None if one.value is None else _value(one.value, names, context, ctx)
            _run(one, names, context, ctx)
    except (ArithmeticError, ValueError) as error:
        raise Unknown from error
    raise Unknown


def _run(one: ast.stmt, names: dict[str, Value], context: Context, ctx: str) -> None:
    if isinstance(one, ast.Assign):
        value = _value(one.value, names, context, ctx)
        for target in one.targets:
            _bind(target, value, names, context, ctx)
    elif isinstance(one, ast.AnnAssign) and one.value is not None:
        _bind(one.target, _value(one.value, names, context, ctx), names, context, ctx)
    elif isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name) and one.target.id not in context.kept:
        whole = ast.BinOp(left=ast.Name(id=one.target.id, ctx=ast.Load()), op=one.op, right=one.value)
        names[one.target.id] = _value(whole, names, context, ctx)
    elif isinstance(one, ast.Expr):
        _called(one.value, names, context, ctx)
    elif isinstance(one, ast.If) and not one.orelse and f"{ctx}.needs_input_grad" in ast.unparse(one.test):
        for inner in one.body:
            _run(inner, names, context, ctx)
    elif not isinstance(one, ast.Pass):
        raise Unknown


def _called(call: ast.expr, names: dict[str, Value], context: Context, ctx: str) -> None:
    """A statement that is a call: `ctx.save_for_backward(...)`, or a text."""
    if isinstance(call, ast.Constant):
        return
    called = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    if isinstance(call, ast.Call) and called == f"{ctx}.save_for_backward":
        context.saved = tuple(_value(part, names, context, ctx) for part in call.args)
    elif called not in {f"{ctx}.set_materialize_grads", f"{ctx}.mark_non_differentiable"}:
        raise Unknown


def _bind(target: ast.expr, value: Value, names: dict[str, Value], context: Context, ctx: str) -> None:
    if isinstance(target, ast.Name):
        names[target.id] = value
    elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == ctx:
        context.kept[target.attr] = value
    elif isinstance(target, ast.Tuple | ast.List) and isinstance(value, tuple) and len(value) == len(target.elts):
        for part, single in zip(target.elts, value, strict=True):
            _bind(part, single, names, context, ctx)
    else:
        raise Unknown


def _value(node: ast.expr, names: dict[str, Value], context: Context, ctx: str) -> Value:
    if isinstance(node, ast.Constant):
        return float(node.value) if isinstance(node.value, int | float) else None
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise Unknown
        return names[node.id]
    if isinstance(node, ast.Tuple | ast.List):
        return tuple(_value(part, names, context, ctx) for part in node.elts)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = (_number(part, names, context, ctx) for part in (node.left, node.right))
        return _real(_TWO[_OPERATORS[type(node.op)]](left, right))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand, names, context, ctx)
    if isinstance(node, ast.Attribute):
        return _attribute(node, names, context, ctx)
    if isinstance(node, ast.Subscript):
        return _part(node, names, context, ctx)
    if isinstance(node, ast.Call):
        return _call(node, names, context, ctx)
    raise Unknown


def _real(value: complex) -> float:
    """A root of a negative number is a complex one in Python."""
    if isinstance(value, complex):
        raise Unknown
    return value


def _number(node: ast.expr, names: dict[str, Value], context: Context, ctx: str) -> float:
    value = _value(node, names, context, ctx)
    if not isinstance(value, float):
        raise Unknown
    return value


def _attribute(node: ast.Attribute, names: dict[str, Value], context: Context, ctx: str) -> Value:
    text = ast.unparse(node)
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if ast.unparse(node.value) == ctx:
        if node.attr in {"saved_tensors", "saved_variables"}:
            return context.saved
        if node.attr in context.kept:
            return context.kept[node.attr]
        raise Unknown
    if node.attr in _SIZES or node.attr in _SAME:
        of = _number(node.value, names, context, ctx)
        return of if node.attr in _SAME else 1.0
    raise Unknown


def _part(node: ast.Subscript, names: dict[str, Value], context: Context, ctx: str) -> Value:
    """`ctx.saved_tensors[0]`, `x.shape[0]`."""
    if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
        return 1.0
    value = _value(node.value, names, context, ctx)
    at = node.slice.value if isinstance(node.slice, ast.Constant) else None
    if not isinstance(value, tuple) or not isinstance(at, int) or not 0 <= at < len(value):
        raise Unknown
    return value[at]


def _call(node: ast.Call, names: dict[str, Value], context: Context, ctx: str) -> Value:
    """`torch.exp(x)`, `x.exp()`, `math.sqrt(d)`, `F.softplus(x)`: of one element each."""
    if not isinstance(node.func, ast.Attribute):
        raise Unknown
    name = node.func.attr.removesuffix("_") if node.func.attr != "requires_grad_" else node.func.attr
    if node.func.attr.endswith("_") and name in (*_ONE, *_TWO):
        raise Unknown  # in place: what else holds that tensor would have to change as well
    root = ast.unparse(node.func.value)
    free = root in {"torch", "math", "np", "numpy", "F", "functional"} or root.endswith((".functional", ".special"))
    given: Iterable[ast.expr] = node.args if free else (node.func.value, *node.args)
    given = list(given)
    if name in _SIZES and given:
        return 1.0
    if name in _SAME and given:
        return _number(given[0], names, context, ctx)
    if name in _ONE and len(given) == 1 and not any(one.arg in {"beta", "threshold"} for one in node.keywords):
        return _ONE[name](_number(given[0], names, context, ctx))
    if name in _TWO and len(given) == len(("left", "right")) and not node.keywords:
        left, right = (_number(part, names, context, ctx) for part in given)
        return _real(_TWO[name](left, right))
    raise Unknown
