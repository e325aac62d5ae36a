"""BP241 custom-function-gradient-shape: `backward` of a custom Function returns a gradient in another shape.

What it finds:
    A backward call raised because a gradient that the `backward` of an `autograd.Function` returned has another shape
    than the input that it belongs to. The finding stands at the value in that `return`.

Why it matters:
    The program stops, and the traceback ends inside torch: neither the class nor the `return` is in it. Most often two
    gradients are swapped, a factor is transposed, or a sum over the batch is missing.

What PyTorch does:
    A gradient has the shape of its input; one that broadcasts down to it is summed. Anything else raises "returned an
    invalid gradient at index", where only inputs that are tensors are counted. Seen in torch 2.13.

Example:
    import torch

    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight)
            return rows @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            rows, weight = ctx.saved_tensors
            return grad @ weight, rows.t() @ grad  # <- here

    weight = torch.ones(4, 3, requires_grad=True)
    Affine.apply(torch.ones(6, 3), weight).sum().backward()

Use instead:
    import torch

    class Affine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, weight):
            ctx.save_for_backward(rows, weight)
            return rows @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            rows, weight = ctx.saved_tensors
            return grad @ weight, grad.t() @ rows

    weight = torch.ones(4, 3, requires_grad=True)
    Affine.apply(torch.ones(6, 3), weight).sum().backward()

Near miss: a gradient that broadcasts to the input's shape is summed by torch
    import torch

    class Shift(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, bias):
            return rows + bias

        @staticmethod
        def backward(ctx, grad):
            return grad, grad

    bias = torch.zeros(3, requires_grad=True)
    Shift.apply(torch.ones(6, 3), bias).sum().backward()

Blind spots:
    Which input is meant is told only where the statement that applies the Function shows which arguments are tensors.

Source:
    "Extending torch.autograd" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    failed_node,
    function_of,
    returned,
    returns,
    tensor_inputs,
)
from backprobe.rules.analysis.source.syntax import region_in, site_at
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-function-gradient-shape",
    code="BP241",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "node", "function"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "custom-gradient-shape"):
        node = failed_node(record, raised)
        function = None if node is None else function_of(record, node)
        if node is not None and function is not None:
            yield from _finding(record, raised, node, function)


def _finding(record: Record, raised: Raised, node: Node, function: CustomFunction) -> Iterator[Finding]:
    tensors = tensor_inputs(record, node, function)
    index = int(raised.facts["index"])
    place = None if tensors is None else tensors[index]
    every = [one for one in returns(function.derivative) if place is None or place < len(returned(one))]
    site = site_at(record, every[-1]) if every else None
    if site is None:
        return
    name = function.inputs[place] if place is not None and place < len(function.inputs) else None
    what = f"for `{name}`" if name else f"of input {index}"
    got, wanted = (f"[{raised.facts.get(key, '')}]" for key in ("shape", "expected_shape"))
    yield told(
        record,
        RULE,
        site.site,
        (
            f"The gradient {what} that `{function.name}.backward` returns has the shape {got}, its input has {wanted}.",
            "A gradient has the shape of what it belongs to; the backward call stops here.",
            _advice(got, wanted),
        ),
        binding=name or function.name,
        moments=[raised.moment or 0],
        region=None if place is None else region_in(record, function.source, returned(every[-1])[place]),
        related=(("applied here", node.site), ("raised here", raised.site)),
        evidence={"index": index, "shape": got, "input_shape": wanted, "node": node.type},
        level=level_of(record, raised),
    )


def _advice(got: str, wanted: str) -> str:
    turned = ", ".join(reversed(got.strip("[]").split(", ")))
    if turned == wanted.strip("[]"):
        return "It is transposed: swap the factors of the product, or their order in the `return`."
    return "Sum over the dimensions that were broadcast, and check the order of the gradients in the `return`."
