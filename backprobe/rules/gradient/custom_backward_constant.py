"""BP244 custom-backward-constant: `backward` of a custom Function does not use the gradient that it is given.

What it finds:
    What `backward` returns, or what it returns for one input that `forward` computes with, depends on no gradient that
    came in, although that gradient is not 1 throughout: the chain rule ends there. Or a module defines
    `backward(self, gradient)`, which torch never calls: a note, where it may be the inverse of `forward`.

Why it matters:
    All that stands behind the Function, the weight of a loss, a mean, a mask, other layers, changes no gradient before
    it. A module's `backward` has no effect at all: the gradient is that of its `forward`.

What PyTorch does:
    `Function.backward` is handed the gradient of the output and must return its product with the derivative. Modules
    have no `backward`: their operations are recorded one by one. Seen in torch 2.13.

Example:
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x  # <- here

    weight = torch.ones(3, requires_grad=True)
    for scale in (1.0, 2.0, 3.0):
        Square.apply(weight).mul(scale).mean().backward()

Use instead:
    import torch

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    weight = torch.ones(3, requires_grad=True)
    for scale in (1.0, 2.0, 3.0):
        Square.apply(weight).mul(scale).mean().backward()

Near miss: the Function is the loss itself, its gradient is 1
    import torch

    class Loss(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * x).sum()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x

    weight = torch.ones(3, requires_grad=True)
    for _ in range(3):
        Loss.apply(weight).backward()

Near miss: a module that calls a Function
    import torch
    from torch import nn

    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -grad

    class Layer(nn.Module):
        def forward(self, x):
            return Reverse.apply(x)

    x = torch.ones(3, requires_grad=True)
    Layer()(x).pow(2).sum().backward()

Near miss: the inverse of a flow
    import torch
    from torch import nn

    class Affine(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.shift = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return x * self.scale.exp() + self.shift, self.scale.sum()

        def backward(self, z):
            return (z - self.shift) * (-self.scale).exp(), -self.scale.sum()

    flow = Affine()
    optimizer = torch.optim.SGD(flow.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 2) * 2 + 1:
        z, volume = flow(x)
        loss = z.square().sum(1).mean() / 2 - volume
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A gradient that is used in a test only counts as used.

Source:
    Extending PyTorch, on `torch.autograd.Function`; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from backprobe.rules.analysis.calls.method_flow import arriving, inputs_made_without, is_zero, made_last
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    class_site,
    custom_functions,
    returned,
    returned_is_opaque,
    returns,
    tensor_inputs,
)
from backprobe.rules.analysis.source.syntax import (
    method_called,
    number_at,
    parts_of,
    region_in,
    site_at,
    site_of,
    trees,
)
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Module, Node, NodePass, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-backward-constant",
    code="BP244",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "backward", "stats", "site", "module"),
)

_ONE: Final = 1e-6
"""How far the elements of a gradient may be from 1."""

_WITH_BACKWARD: Final = ("Function", "LightningModule")
"""Ends of the names of base classes whose `backward` is called."""

_SAME: Final = frozenset({"view_as", "clone", "contiguous"})
"""Methods of a tensor that return the same values."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per Function, and per module class."""
    for name, function in custom_functions(record).items():
        whole = _ignores_its_gradient(function)
        inputs = [] if whole else inputs_made_without(function)
        site = class_site(record, function) if whole or inputs else None
        if site is None:
            continue
        nodes = [row for row in record.nodes if (row.custom or "").rpartition(".")[2] == name]
        at = next((one for one in inputs if any(_wants(record, function, node, one) for node in nodes)), None)
        passed = next((one for node in nodes for one in _passes(record, node)), None)
        if passed is not None and (whole or at is not None):
            yield _of_function(record, function, site, passed, at)
    yield from _of_modules(record)


def _ignores_its_gradient(function: CustomFunction) -> bool:
    """No expression of `backward` reads what it is given behind its `ctx`, and it returns something but zeros."""
    method = function.derivative
    if method is None:
        return False
    names = arriving(method)
    if not names or any(
        isinstance(part, ast.Name) and part.id in names for part in parts_of(method) if part is not method
    ):
        return False
    return any(not is_zero(value) for one in returns(method) for value in returned(one))


def _wants(record: Record, function: CustomFunction, node: Node, at: int) -> bool:
    """The input was a tensor whose gradient goes on to something."""
    places = tensor_inputs(record, node, function)
    edges = lookup(record).edges_of[node.node]
    return places is not None and any(
        edge.to_node is not None and edge.slot < len(places) and places[edge.slot] == at for edge in edges
    )


def _passes(record: Record, node: Node) -> Iterator[NodePass]:
    """The passes in which the gradient that arrived was not 1 throughout."""
    for row in lookup(record).passes_of_node[node.node]:
        seen = row.grad_output
        if row.position is None or seen is None or seen.min is None or seen.max is None:
            continue
        if abs(seen.min - 1) > _ONE or abs(seen.max - 1) > _ONE:
            yield row


def _of_function(record: Record, function: CustomFunction, site: int, passed: NodePass, at: int | None) -> Finding:
    method = function.derivative
    last = next(iter(returns(method))) if method is None or at is None else made_last(method, at)
    whose = "" if at is None else f" for `{function.inputs[at]}`"
    call = lookup(record).calls[passed.call]
    inner = site_at(record, last)
    return told(
        record,
        RULE,
        site if inner is None else inner.site,
        (
            f"`{function.name}.backward` returns a gradient{whose} that does not depend on the one that it is given.",
            "The chain rule ends here: what comes after the Function does not count for what comes before it.",
            "Multiply by the gradient that came in.",
        ),
        binding=function.name,
        moments=[call.moment_before],
        region=region_in(record, function.source, last),
        related=(("this backward call came through it", call.site),),
        evidence={"function": function.name, "arrived": passed.grad_output.norm if passed.grad_output else None},
        calls=[call.call],
    )


def _of_modules(record: Record) -> Iterator[Finding]:
    """Modules of the program whose class has a `backward` that takes a gradient, and whose calls recorded a graph."""
    called = {row.module for row in record.module_calls if row.grad_mode}
    modules: dict[str, Module] = {}
    for row in record.modules:
        if row.user_code and row.module in called and record.backward_calls:
            modules.setdefault(row.cls.rpartition(".")[2], row)
    ran = {lookup(record).sites[row.site].function for row in record.moments if row.site is not None}
    for source, tree in trees(record).items():
        for cls in tree.nodes:
            if not isinstance(cls, ast.ClassDef) or cls.name not in modules:
                continue
            if any(ast.unparse(base).endswith(_WITH_BACKWARD) for base in cls.bases):
                continue
            method, forward = _method(cls, "backward"), _method(cls, "forward")
            site = modules[cls.name].site
            if method is None or site is None or forward is None or not _may_take_gradients(method, forward):
                continue
            if not _goes_back(method) and not any(name.endswith(f"{cls.name}.backward") for name in ran):
                finding = _of_module(record, source, cls, method, site)
                is_derivative = _hands_on(forward) != _hands_on(method)  # an inverse does neither or both
                doubt = {} if is_derivative else {"level": "note", "confidence": "likely"}
                yield msgspec.structs.replace(finding, **doubt)


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == name), None)


def _may_take_gradients(method: ast.FunctionDef, forward: ast.FunctionDef) -> bool:
    """It takes a value for each that `forward` returns: a flow's inverse takes none for the log-determinant."""
    taken = len(method.args.args) - 1
    return taken > 0 and any(returned_is_opaque(node) or len(returned(node)) == taken for node in returns(forward))


def _hands_on(method: ast.FunctionDef) -> bool:
    """It returns what it is given as it is, a view or a copy of it, or 1 times it: the inverse does so too."""
    given = {parameter.arg for parameter in method.args.args[1:]}
    values = [value for node in returns(method) for value in returned(node)]
    return bool(values) and all(_as_given(value) in given for value in values)


def _as_given(value: ast.expr) -> str | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and isinstance(value.right, ast.Constant):
        value = value.left if value.right.value == 1 else value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _SAME:
        value = value.func.value
    return value.id if isinstance(value, ast.Name) else None


def _goes_back(method: ast.FunctionDef) -> bool:
    """It calls torch's own backward pass, so it is a step of training that other code calls, not a derivative."""
    return any(
        method_called(part) == "backward"
        or (isinstance(part, ast.Call) and ast.unparse(part.func).endswith("autograd.grad"))
        for part in ast.walk(method)
    )


def _head(record: Record, source: int, method: ast.FunctionDef) -> Region:
    """`def backward(self, gradient)` up to its body."""
    whole = region_in(record, source, method)
    last = region_in(record, source, method.body[0])
    return Region(
        start_line=whole.start_line, start_col=whole.start_col, end_line=whole.start_line,
        end_col=last.start_col if last.start_line == whole.start_line else whole.start_col + len(f"def {method.name}"),
    )  # fmt: skip


def _of_module(record: Record, source: int, cls: ast.ClassDef, method: ast.FunctionDef, site: int) -> Finding:
    call = record.backward_calls[0]
    defined = number_at(record, method) or number_at(record, cls)
    if defined is None and site_of(record, site).source == source:
        defined = site
    return told(
        record,
        RULE,
        site if defined is None else defined,
        (
            f"`{cls.name}` is a module: torch never calls its `backward`.",
            "The gradient is that of the operations in `forward`.",
            "If it is the derivative, make it a `torch.autograd.Function`, and call its `apply` in `forward`.",
        ),
        binding=cls.name,
        moments=[call.moment_before],
        region=None if defined is None else _head(record, source, method),
        evidence={"class": cls.name},
        calls=[call.call],
    )
