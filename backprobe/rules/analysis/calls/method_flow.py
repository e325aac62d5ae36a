"""Which inputs of a custom Function get a gradient that is made without the one that came in, as its source tells.

@staticmethod
def backward(ctx, grad):
    x, scale = ctx.saved_tensors
    grad_scale = (x > scale).float().sum()   # made without `grad`
    return grad * (x < scale), grad_scale
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.custom_functions import CustomFunction, returned, returns
from backprobe.rules.analysis.source.scopes import Function, last_name, root_name
from backprobe.rules.analysis.source.syntax import method_called

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

_ZEROS: Final = frozenset({"zeros", "zeros_like", "new_zeros"})
_BLOCKS: Final = (ast.If, ast.While, ast.For, ast.With)


def arriving(method: ast.FunctionDef) -> set[str]:
    """What `backward` is given behind its `ctx`, by name."""
    given = method.args
    names = {one.arg for one in (*given.posonlyargs, *given.args)[1:]}
    return names | ({given.vararg.arg} if given.vararg is not None else set())


def inputs_made_without(function: CustomFunction) -> list[int]:
    """The places of inputs that `forward` computes with, and whose gradient depends on nothing that came in.

    A gradient that is zero or None says that there is none. An input that `forward` only looks at, as the loss that a
    layer hands on beside its output, may be given what the program likes.
    """
    method, forward = function.derivative, function.forward
    if method is None or forward is None or function.takes_any_number:
        return []
    known = _made_of(method, arriving(method))
    rows = [returned(one) for one in returns(method)]
    count = len(function.inputs)
    if not rows or any(len(row) != count or any(isinstance(one, ast.Starred) for one in row) for row in rows):
        return []
    found: list[int] = []
    for at, name in enumerate(function.inputs):
        values = [one for row in rows for one in _values(method, row[at])]
        free = not any(_reads(row[at], known) for row in rows) and not all(map(is_zero, values))
        if free and _is_computed_with(forward, name):
            found.append(at)
    return found


def is_zero(value: ast.expr) -> bool:
    """`None`, `0.0` or `torch.zeros_like(x)`: the derivative is zero, and so is its product with any gradient."""
    if isinstance(value, ast.Constant):
        return True
    return isinstance(value, ast.Call) and last_name(value.func) in _ZEROS


def made_last(method: ast.FunctionDef, at: int) -> ast.stmt:
    """Where a gradient is made: the statement that gives it its name last, else the last `return`."""
    last = list(returns(method))[-1]
    values = returned(last)
    value = values[at] if at < len(values) else values[0]
    if isinstance(value, ast.Name):
        made = [
            one
            for one in ast.walk(method)
            if isinstance(one, ast.Assign | ast.AugAssign) and value.id in map(ast.unparse, _targets(one))
        ]
        if made:
            return max(made, key=lambda one: one.lineno)
    return last


def _values(method: ast.FunctionDef, value: ast.expr) -> list[ast.expr]:
    """What a name was given in the method; an expression is its own value."""
    if not isinstance(value, ast.Name):
        return [value]
    given = [
        one.value
        for one in ast.walk(method)
        if isinstance(one, ast.Assign) and value.id in map(ast.unparse, _targets(one))
    ]
    return given or [value]


def _targets(one: ast.AST) -> list[ast.expr]:
    """What a statement binds, the elements of a tuple one by one."""
    targets: list[ast.expr] = []
    if isinstance(one, ast.Assign):
        targets = one.targets
    elif isinstance(one, ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension):
        targets = [one.target]
    elif isinstance(one, ast.withitem) and one.optional_vars is not None:
        targets = [one.optional_vars]
    return [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]


def _made_of(method: ast.FunctionDef, names: set[str]) -> set[str]:
    """The names that anything of these goes into, by value or by a test; rather one too many than one too few."""
    known, parts = set(names), list(ast.walk(method))
    while True:
        found = set(known)
        for part in parts:
            if isinstance(part, Function | ast.Lambda) and part is not method:
                found |= {part.name} if isinstance(part, Function) and _reads(part, known) else set()
            elif isinstance(part, ast.Expr) and _reads(part.value, known):
                found |= {one.id for one in ast.walk(part.value) if isinstance(one, ast.Name)}
            elif _targets(part) and any(_reads(one, known) for one in _given(part)):
                found |= {root_name(one) for one in _targets(part)}
            elif isinstance(part, _BLOCKS) and any(_reads(one, known) for one in _heads(part)):
                found |= {root_name(one) for inner in ast.walk(part) for one in _targets(inner)}
        found -= {"torch", ""}
        if found == known:
            return known
        known = found


def _given(part: ast.AST) -> Iterator[ast.expr]:
    """What a statement that binds takes in."""
    for field in ("value", "iter", "context_expr"):
        value = getattr(part, field, None)
        if isinstance(value, ast.expr):
            yield value


def _heads(part: ast.AST) -> Iterator[ast.expr]:
    if isinstance(part, ast.If | ast.While):
        yield part.test


def _is_computed_with(forward: ast.FunctionDef, name: str) -> bool:
    """What `forward` returns takes the values of an input in: rather one too few than one too many."""
    known, parts = {name}, list(ast.walk(forward))
    while True:
        found = set(known)
        for part in parts:
            if any(_reads(one, known) for one in _given(part)):
                found |= {one.id for one in _targets(part) if isinstance(one, ast.Name)}
            call = part.value if isinstance(part, ast.Expr) else None
            if isinstance(call, ast.Call) and (method_called(call) or "").endswith("_") and _reads(call, known):
                found |= {root_name(call.func)} - {"ctx", "torch", ""}
        if found == known:
            break
        known = found
    return any(_reads(one.value, known) for one in returns(forward) if one.value is not None)


def _reads(value: ast.AST, names: AbstractSet[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(value))
