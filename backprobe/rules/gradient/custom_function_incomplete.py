"""BP243 custom-function-incomplete: a custom Function lacks what the program asks of it.

What it finds:
    An `autograd.Function` without a `backward`, one with methods of the old style (not static), or one whose `backward`
    is marked `once_differentiable`, and a program that needs what is missing, which raises. The finding stands at the
    class; where the class is complete and only made an object of, at that call.

Why it matters:
    The program stops in torch's code, far from the class: the forward pass works without any of it.

What PyTorch does:
    `forward` and `backward` are static methods, and `Name.apply(...)` runs them. Without `backward` or `vjp` the
    backward call raises; calling an object of the class raises at once; a second derivative through a method marked
    `once_differentiable` raises too. Seen in torch 2.13.

Example:
    import torch

    class Quantise(torch.autograd.Function):  # <- here
        @staticmethod
        def forward(ctx, values, step):
            return (values / step).round() * step

    weight = torch.ones(3, requires_grad=True)
    Quantise.apply(weight, 0.25).sum().backward()

Use instead:
    import torch

    class Quantise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, step):
            return (values / step).round() * step

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    weight = torch.ones(3, requires_grad=True)
    Quantise.apply(weight, 0.25).sum().backward()

Near miss: only the forward pass is used
    import torch

    class Quantise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, step):
            return (values / step).round() * step

    weight = torch.ones(3, requires_grad=True)
    print(Quantise.apply(weight, 0.25))

Near miss: the gradient is taken once
    import torch
    from torch.autograd.function import once_differentiable

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            ctx.save_for_backward(values)
            return values * values

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (values,) = ctx.saved_tensors
            return grad * 2 * values

    weight = torch.ones(3, requires_grad=True)
    Square.apply(weight).sum().backward()

Blind spots:
    A Function of a library is not the program's mistake, and no finding. Two classes of one name are not told apart.

Source:
    "Extending torch.autograd" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    class_site,
    custom_functions,
    failed_node,
    function_of,
    header,
)
from backprobe.rules.analysis.source.named_values import names_in
from backprobe.rules.analysis.source.syntax import statement_at
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-function-incomplete",
    code="BP243",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "node", "function"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "custom-without-backward", "once-differentiable"):
        node = _marked(record) if raised.family == "once-differentiable" else failed_node(record, raised)
        function = None if node is None else function_of(record, node)
        if node is not None and function is not None:
            yield from _at_class(record, raised, function, node.site)
    for raised in raised_as(record, "legacy-function"):
        function = _instantiated(record, raised)
        if function is not None and not _is_static(function):
            yield from _at_class(record, raised, function, None)
        elif function is not None and raised.site is not None:
            yield _called(record, raised, function, raised.site)


def _marked(record: Record) -> Node | None:
    """The node of the only Function marked `once_differentiable`: the failing call meets an error in its place."""
    found = [(one, row) for row in record.nodes if (one := function_of(record, row)) is not None]
    marked = {
        one.name: row
        for one, row in found
        if one.derivative is not None and "once_differentiable" in _marks(one.derivative)
    }
    return next(iter(marked.values())) if len(marked) == 1 else None


def _marks(method: ast.FunctionDef) -> list[str]:
    return [ast.unparse(mark).rpartition(".")[2] for mark in method.decorator_list]


def _instantiated(record: Record, raised: Raised) -> CustomFunction | None:
    """The class whose object was called: named in the failing statement, or where a name in that came from."""
    site = lookup(record).sites.get(-1 if raised.site is None else raised.site)
    names = [] if site is None else names_in(statement_at(record, site.site) or ast.Pass())
    for other in record.sites:
        if set(other.targets) & set(names):
            names += other.reads
    found = [custom_functions(record)[name] for name in dict.fromkeys(names) if name in custom_functions(record)]
    return found[0] if len(found) == 1 else None


def _is_static(function: CustomFunction) -> bool:
    methods = [one for one in (function.forward, function.derivative) if one is not None]
    return all("staticmethod" in _marks(one) for one in methods)


def _at_class(record: Record, raised: Raised, function: CustomFunction, applied: int | None) -> Iterator[Finding]:
    site = class_site(record, function)
    if site is None:
        return
    if raised.family == "once-differentiable":
        said = f"`{function.name}.backward` is marked `once_differentiable`, and it is differentiated a second time."
        remedy = "Take the mark off and write `backward` with differentiable operations, or take one derivative only."
    elif raised.family == "legacy-function":
        said = f"`{function.name}` has methods of the old style: `forward` and `backward` must be static."
        remedy = f"Mark both `@staticmethod` with `ctx` first, and call `{function.name}.apply(...)`."
    else:
        said = f"`{function.name}` has no `backward`, and a backward call came through it."
        remedy = "Write a static `backward(ctx, grad)` that returns one gradient per input of `forward`."
    yield told(
        record,
        RULE,
        site,
        (said, "autograd cannot differentiate it: the program stops.", remedy),
        binding=function.name,
        moments=[raised.moment or 0],
        region=header(record, function),
        related=(("applied here", applied), ("raised here", raised.site)),
        evidence={
            "family": raised.family,
            "methods": [one.name for one in function.cls.body if isinstance(one, ast.FunctionDef)],
        },
        level=level_of(record, raised),
    )


def _called(record: Record, raised: Raised, function: CustomFunction, site: int) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            f"An object of `{function.name}` is called, as Functions of the old style were.",
            "Its static methods are run by `apply`; the call raises.",
            f"Write `{function.name}.apply(...)`, without making an object.",
        ),
        binding=function.name,
        moments=[raised.moment or 0],
        evidence={"family": raised.family},
        level=level_of(record, raised),
    )
