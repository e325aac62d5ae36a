"""BP320 nonscalar-root: a backward call starts from a tensor of several elements, and is given no gradient for it.

What it finds:
    `backward()` or `autograd.grad` was called on a root that is no scalar. The finding stands at that call; related is
    the statement that made the root.

Why it matters:
    The program stops. A gradient is that of one number: which sum or mean of the elements is meant decides how strongly
    each of them counts, and only the program can say so.

What PyTorch does:
    For a root of one element the gradient to begin with is 1. For any other torch raises `RuntimeError: grad can be
    implicitly created only for scalar outputs`, unless `gradient=` gives one weight per element. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    errors = (weight - torch.arange(3.0)).pow(2)
    errors.backward()  # <- here

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    errors = (weight - torch.arange(3.0)).pow(2)
    errors.mean().backward()

Near miss: a gradient for the root is given
    import torch

    weight = torch.ones(3, requires_grad=True)
    errors = (weight - torch.arange(3.0)).pow(2)
    errors.backward(gradient=torch.full((3,), 1 / 3))

Near miss: one element in any number of dimensions
    import torch

    weight = torch.ones(3, requires_grad=True)
    error = (weight @ torch.arange(3.0)).reshape(1, 1)
    error.backward()

Blind spots:
    An element of a list of roots is told by its shape alone.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.roots import RaisedCall, raised_calls, root_expression
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import insertion, replacement
from backprobe.rules.analysis.source.syntax import region_in, text_in
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Root

RULE = Rule(
    name="nonscalar-root",
    code="BP320",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that raised over a root of several elements."""
    for one in raised_calls(record, "not-scalar"):
        root = next((row for row in one.call.roots if row.shape is not None and prod(row.shape) != 1), None)
        if root is not None:
            yield _finding(record, one, root)


def _finding(record: Record, one: RaisedCall, root: Root) -> Finding:
    expression = root_expression(record, one.site, one.asked)
    written = None if expression is None else ast.unparse(expression)
    name = written if written is not None and len(written) <= 40 else root.name or "the root"
    shape = list(root.shape or ())
    made = None if root.tensor is None else lookup(record).tensors[root.tensor].site
    edit = reduced(record, one, expression, "mean")
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"`{name}` has the shape {shape}: a backward call needs one number to start from.",
            "Torch cannot know how much each element is to count.",
            f"Reduce it, `{name}.mean()` or `{name}.sum()`; or give a weight for each element with `gradient=`.",
        ),
        binding=root.name or name,
        moments=[one.call.moment_before],
        related=((f"`{root.name or name}` was made here", None if made == one.site.site else made),),
        evidence={"shape": shape, "gradient_given": root.gradient_given, "call": one.call.call},
        fixes=[] if edit is None else [Fix(title="Average the elements", safety="unsafe", edits=(edit,))],
        tensors=[] if root.tensor is None else [root.tensor],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )


def reduced(record: Record, one: RaisedCall, expression: ast.expr | None, method: str) -> Edit | None:
    """`errors` as `errors.mean()`; None where the root is no single expression."""
    if expression is None or isinstance(expression, ast.Tuple | ast.List) or len(one.call.roots) != 1:
        return None
    region = region_in(record, one.site.source, expression)
    if isinstance(expression, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return insertion(record, one.site, region.end_line, region.end_col, f".{method}()")
    text = text_in(record, one.site.source, region)
    return replacement(record, one.site, region, f"({text}).{method}()")
