"""BP230 grad-assigned-mismatch: `.grad` is set to something that is no gradient of this tensor.

What it finds:
    An assignment to `.grad` raised because the value has another shape, dtype or device than the tensor, or is none.
    The finding stands at the assignment.

Why it matters:
    The program stops. Most often a gradient was reduced by one dimension too many, or comes from another parameter.

What PyTorch does:
    `.grad` takes a tensor of the same shape, dtype and device as its owner, or None, and checks that when it is set.
    Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    smoothed = torch.full((3,), 0.5, dtype=torch.float64)
    weight.grad = smoothed  # <- here

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    smoothed = torch.full((3,), 0.5, dtype=torch.float64)
    weight.grad = smoothed.to(weight.dtype)

Near miss: a gradient of the right kind is set by hand
    import torch

    weight = torch.ones(3, requires_grad=True)
    parts = [torch.ones(3), torch.zeros(3)]
    weight.grad = torch.stack(parts).mean(0)

Near miss: it is cleared
    import torch

    weight = torch.ones(3, requires_grad=True)
    weight.sum().backward()
    weight.grad = None

Blind spots:
    An exception that the program catches is its own decision and is not recorded.

Source:
    torch.Tensor.grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, text_in
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="grad-assigned-mismatch",
    code="BP230",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "site"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception."""
    for raised in raised_as(
        record, "grad-of-other-dtype", "grad-of-other-shape", "grad-on-other-device", "grad-is-no-tensor"
    ):
        if raised.site is not None:
            yield _finding(record, raised, site_of(record, raised.site))


def _finding(record: Record, raised: Raised, site: Site) -> Finding:
    node = statement(record, site)
    value = node.value if isinstance(node, ast.Assign) else None
    target = next((name for name in site.targets if name.endswith(".grad")), ".grad")
    owner = target.removesuffix(".grad") or "this tensor"
    given = f"`{ast.unparse(value)}`" if isinstance(value, ast.Name | ast.Attribute) else "the value"
    return told(
        record,
        RULE,
        site.site,
        (
            f"`{target}` is set to what is no gradient of `{owner}`: {_wrong(raised, given, owner)}.",
            "A gradient has the shape, dtype and device of its tensor; the assignment raises.",
            _advice(raised),
        ),
        binding=owner,
        moments=[raised.moment or 0],
        evidence={"family": raised.family, **raised.facts},
        fixes=tuple(_fixes(record, raised, site, value, owner)),
        level=level_of(record, raised),
    )


def _wrong(raised: Raised, given: str, owner: str) -> str:
    if raised.family == "grad-of-other-shape" and "shape" in raised.facts:
        got, wanted = raised.facts["shape"], raised.facts.get("expected_shape", "")
        return f"{given} has the shape [{got}], `{owner}` has [{wanted}]"
    if raised.family == "grad-is-no-tensor":
        return f"{given} is no tensor"
    if raised.family == "grad-of-other-dtype":
        return f"{given} has another dtype"
    return f"{given} has another {'shape' if raised.family == 'grad-of-other-shape' else 'device'}"


def _advice(raised: Raised) -> str:
    if raised.family == "grad-of-other-shape":
        return "Reduce over the dimension of the parts only, and take the gradient of the same parameter."
    if raised.family == "grad-is-no-tensor":
        return "Set a tensor, as by `torch.full_like`, or None."
    return "Convert it first: `.to(...)` takes a dtype, a device, or another tensor."


def _fixes(record: Record, raised: Raised, site: Site, value: ast.expr | None, owner: str) -> Iterator[Fix]:
    """`.to(owner.dtype)` behind the value."""
    if raised.family == "grad-of-other-dtype" and value is not None:
        region = region_in(record, site.source, value)
        text = text_in(record, site.source, region)
        text = text if isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"
        edit = replacement(record, site, region, f"{text}.to({owner}.dtype)")
        yield Fix(title="Convert it to the tensor's dtype", safety="unsafe", edits=(edit,))
