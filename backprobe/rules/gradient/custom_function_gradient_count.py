"""BP240 custom-function-gradient-count: `backward` of a custom Function returns fewer or more gradients than inputs.

What it finds:
    A backward call raised because the `backward` of an `autograd.Function` returned another number of values than its
    `forward` takes inputs. The finding stands at that `return`.

Why it matters:
    The program stops, and the traceback ends inside torch: neither the class nor the `return` is in it.

What PyTorch does:
    Each value that `backward` returns belongs to the input of `forward` at the same place, `ctx` not counted. An input
    without a gradient, such as a number, still has its place: None. Too few values, or too many of which one is not
    None, raise "returned an incorrect number of gradients". Seen in torch 2.13.

Example:
    import torch

    class ClipThrough(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, bound):
            return values.clamp(-bound, bound)

        @staticmethod
        def backward(ctx, grad):
            return grad  # <- here

    weight = torch.ones(3, requires_grad=True)
    ClipThrough.apply(weight * 2, 1.0).sum().backward()

Use instead:
    import torch

    class ClipThrough(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, bound):
            return values.clamp(-bound, bound)

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    weight = torch.ones(3, requires_grad=True)
    ClipThrough.apply(weight * 2, 1.0).sum().backward()

Near miss: further values that are None are allowed
    import torch

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values):
            return values * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, None

    weight = torch.ones(3, requires_grad=True)
    Double.apply(weight).sum().backward()

Blind spots:
    A Function of a library is not the program's mistake, and no finding. Two classes of one name are not told apart.

Source:
    "Extending torch.autograd" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.custom_functions import (
    CustomFunction,
    failed_node,
    function_of,
    returned,
    returned_is_opaque,
    returns,
    tensor_inputs,
)
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import number_at, region_in, site_at
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="custom-function-gradient-count",
    code="BP240",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "node", "function"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(record, "custom-gradient-count"):
        node = failed_node(record, raised)
        function = None if node is None else function_of(record, node)
        if node is not None and function is not None:
            yield from _finding(record, raised, node, function)


def _finding(record: Record, raised: Raised, node: Node, function: CustomFunction) -> Iterator[Finding]:
    expected, got = int(raised.facts["expected"]), int(raised.facts["got"])
    every = [one for one in returns(function.derivative) if len(returned(one)) == got or returned_is_opaque(one)]
    site = site_at(record, every[0]) if every else None
    if site is None:
        return
    names = ", ".join(f"`{name}`" for name in function.inputs)
    named = f": {names}" if len(function.inputs) == expected else ""
    yield told(
        record,
        RULE,
        site.site,
        (
            f"`{function.name}.backward` returns {_counted(got, 'gradient')} for {_counted(expected, 'input')}{named}.",
            "Each input has its place in what `backward` returns, also one without a gradient; the program stops.",
            "Return one value per input, in their order, and None for what has no gradient.",
        ),
        binding=function.name,
        moments=[raised.moment or 0],
        related=(
            ("the inputs are these", number_at(record, function.forward)),
            ("applied here", node.site),
            ("raised here", raised.site),
        ),
        evidence={"expected": expected, "got": got, "node": node.type},
        fixes=_fixes(record, node, function, every[0], site, expected - got),
        level=level_of(record, raised),
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _fixes(
    record: Record, node: Node, function: CustomFunction, at: ast.Return, site: Site, missing: int
) -> Iterator[Fix]:
    """None for the last inputs, where none of them is a tensor."""
    tensors = tensor_inputs(record, node, function)
    if (
        len(returned(at)) + missing == len(function.inputs)
        and missing > 0
        and tensors is not None
        and max(tensors) < len(function.inputs) - missing
    ):
        region = region_in(record, function.source, at)
        edit = insertion(record, site, region.end_line, region.end_col, ", None" * missing)
        yield Fix(title="Return None for what is no tensor", safety="unsafe", edits=(edit,))
