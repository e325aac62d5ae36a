"""BP242 custom-function-missing-gradient: `backward` of a custom Function returns None for a trained input.

What it finds:
    The `backward` of an `autograd.Function` gave None, in every call, for an input that requires grad, and nothing that
    is trained behind that input got a gradient in any other way. The finding stands at the `return`.

Why it matters:
    Nothing raises. The parameter keeps `.grad` None, the optimizer passes it over, and it stays as it was made.

What PyTorch does:
    None from `backward` means that this input has no gradient. It is right for numbers and for tensors that require
    none; `ctx.needs_input_grad` tells which those are. Seen in torch 2.13.

Example:
    import torch

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight)
            return rows @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            rows, weight = ctx.saved_tensors
            return grad @ weight, None  # <- here

    weight = torch.nn.Parameter(torch.ones(3, 6))
    bias = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight, bias], lr=0.1)
    for _ in range(3):
        loss = (Linear.apply(torch.randn(10, 6), weight) + bias).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight)
            return rows @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            rows, weight = ctx.saved_tensors
            return grad @ weight, grad.t() @ rows

    weight = torch.nn.Parameter(torch.ones(3, 6))
    bias = torch.nn.Parameter(torch.zeros(3))
    optimizer = torch.optim.SGD([weight, bias], lr=0.1)
    for _ in range(3):
        loss = (Linear.apply(torch.randn(10, 6), weight) + bias).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the input requires no grad
    import torch

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, scale):
            ctx.save_for_backward(scale)
            return rows * scale

        @staticmethod
        def backward(ctx, grad):
            (scale,) = ctx.saved_tensors
            return grad * scale, None

    layer = torch.nn.Linear(4, 4)
    scale = torch.full((4,), 0.5)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        loss = Scaled.apply(layer(torch.randn(10, 4)), scale).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: another path brings the gradient
    import torch

    class PassThrough(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            return rows + weight.round()

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    weight = torch.nn.Parameter(torch.rand(4))
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD([weight, *layer.parameters()], lr=0.1)
    for _ in range(3):
        loss = PassThrough.apply(layer(torch.randn(10, 4)), weight).square().mean() + weight.square().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    An input that gets a gradient in some calls only. A tensor that nothing trains is not told of.

Source:
    "Extending torch.autograd" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    function_of,
    returned,
    returns,
    tensor_inputs,
)
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import number_at
from backprobe.rules.analysis.training.trained_parameters import never_reached
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Edge, Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-function-missing-gradient",
    code="BP242",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "function", "grad-life", "optimizer"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per input of a Function that something untrained lies behind."""
    found: dict[tuple[str, int], list[tuple[Node, Edge]]] = {}
    for node in record.nodes:
        if node.custom is not None:
            for edge in lookup(record).edges_of[node.node]:
                if _is_hole(record, edge):
                    found.setdefault((node.custom, edge.slot), []).append((node, edge))
    for some in found.values():
        node, edge = some[0]
        function = function_of(record, node)
        lost = [leaf for leaf in _behind(record, edge) if leaf in never_reached(record)]
        if function is not None and lost:
            yield from _finding(record, function, some, lost)


def _is_hole(record: Record, edge: Edge) -> bool:
    """No gradient came to where this edge leads."""
    rows = lookup(record).passes_of_node[-1 if edge.to_node is None else edge.to_node]
    return any(row.hole and row.output_nr == edge.input_nr for row in rows)


def _behind(record: Record, edge: Edge) -> frozenset[int]:
    return leaves_behind(record, edge.to_node) if edge.to_node is not None else frozenset()


def _finding(
    record: Record, function: CustomFunction, some: list[tuple[Node, Edge]], lost: list[int]
) -> Iterator[Finding]:
    node, edge = some[0]
    tensors = tensor_inputs(record, node, function)
    place = None if tensors is None else tensors[edge.slot]
    site = _none_at(record, function, place)
    if site is None:
        return
    name = "an input" if place is None or place >= len(function.inputs) else f"its input `{function.inputs[place]}`"
    whom = "it" if len(lost) == 1 else "them"
    yield told(
        record,
        RULE,
        site,
        (
            f"`{function.name}.backward` returns None for {name}, which requires grad.",
            f"No gradient ever comes to {together(record, lost)}: nothing trains {whom}.",
            "Return its gradient in that place.",
        ),
        binding=function.name,
        moments=[one.first_seen for one, _edge in some],
        related=(("applied here", node.site),),
        evidence={"node": node.type, "input": edge.slot, "tensors": lost[:16]},
        tensors=lost,
    )


def _none_at(record: Record, function: CustomFunction, place: int | None) -> int | None:
    """The last `return` that says None in that place; else the last one that returns something."""
    every = list(returns(function.derivative))
    said = [one for one in every if place is not None and _is_none(returned(one)[place : place + 1])]
    return number_at(record, (said or every)[-1]) if every else None


def _is_none(values: list[ast.expr]) -> bool:
    return [ast.unparse(value) for value in values] == ["None"]
