"""BP326 grad-output-mismatch: the gradient that a backward call is given does not fit its root.

What it finds:
    `gradient=`, `grad_outputs=` or `grad_tensors=` has another shape than the root, or is complex for a real one. The
    finding stands at the call, at that argument; related are the statements that made the two.

Why it matters:
    The program stops. The gradient to begin with has one weight for each element of the root, in the root's shape.

What PyTorch does:
    `RuntimeError: Mismatch in shape: grad_output[0] has a shape of torch.Size([2]) and output[0] has a shape of
    torch.Size([3])`; it does not broadcast. For dtypes it compares complex with real. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(3, requires_grad=True)
    both = torch.stack([x.sin(), x.cos()])
    weights = torch.ones(3, 2)
    both.backward(gradient=weights)  # <- here

Use instead:
    import torch

    x = torch.ones(3, requires_grad=True)
    both = torch.stack([x.sin(), x.cos()])
    weights = torch.ones(2, 3)
    both.backward(gradient=weights)

Near miss: the shapes agree
    import torch

    x = torch.ones(3, requires_grad=True)
    both = torch.stack([x.sin(), x.cos()])
    both.backward(torch.ones_like(both))

Blind spots:
    Shapes that agree by chance, with the meaning of the dimensions exchanged, raise nothing and are not seen.

Source:
    torch.autograd.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.roots import RaisedCall, gradient_expression, raised_calls, root_expression
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.named_values import tensor_named
from backprobe.rules.analysis.source.syntax import region_in
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.framework.finding import Edit, Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="grad-output-mismatch",
    code="BP326",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call that raised over the gradient it was given."""
    for one in raised_calls(record, "root-gradient-of-other-shape", "root-gradient-of-other-dtype"):
        if any(root.gradient_given for root in one.call.roots):
            yield _finding(record, one)


def _finding(record: Record, one: RaisedCall) -> Finding:
    facts = one.raised.facts
    given = gradient_expression(record, one.site, one.asked)
    name = "the given gradient" if given is None else f"`{ast.unparse(given)}`"
    at = int(facts["index"]) if facts.get("index", "").isdecimal() else 0
    root = one.call.roots[at] if at < len(one.call.roots) else one.call.roots[0]
    output = f"`{root.name}`" if root.name else "the root"
    if "shape" in facts:
        seen = f"{name} has the shape [{facts['shape']}], and {output} the shape [{facts.get('expected_shape', '')}]."
    else:
        seen = f"{name} is {facts.get('dtype', 'complex')}, and {output} is {facts.get('expected_dtype', 'real')}."
    held = None if given is None else tensor_named(record, ast.unparse(given), one.site, one.call.moment_before)
    region: Region | None = None if given is None else region_in(record, one.site.source, given)
    edit = _fitted(record, one, given)
    index = lookup(record)
    return told(
        record,
        RULE,
        one.site.site,
        (
            seen[:1].upper() + seen[1:],
            "The gradient to begin with has one weight for each element of the root: torch does not broadcast it.",
            f"Give one like {output}: `torch.ones_like(...)` counts each element once.",
        ),
        binding=name.strip("`"),
        moments=[one.call.moment_before],
        region=region if region is not None and region.start_line == one.site.line else None,
        related=(
            (f"{name} was made here", None if held is None else index.tensors[held].site),
            (f"{output} was made here", None if root.tensor is None else index.tensors[root.tensor].site),
        ),
        evidence={key: facts[key] for key in ("shape", "expected_shape", "dtype", "expected_dtype") if key in facts},
        fixes=[] if edit is None else [Fix(title="Bring it into the root's form", safety="unsafe", edits=(edit,))],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )


def _fitted(record: Record, one: RaisedCall, given: ast.expr | None) -> Edit | None:
    """`v.T` of a transposed gradient, `v.reshape(root.shape)` of as many elements, `v.real` of a complex one."""
    facts = one.raised.facts
    root = root_expression(record, one.site, one.asked)
    if not isinstance(given, ast.Name | ast.Attribute) or not isinstance(root, ast.Name | ast.Attribute):
        return None
    seen, wanted = _sizes(facts.get("shape")), _sizes(facts.get("expected_shape"))
    text = None
    if "dtype" in facts and facts["dtype"].startswith("torch.complex"):
        text = f"{ast.unparse(given)}.real"
    elif seen is not None and wanted is not None and len(seen) == 2 and seen == wanted[::-1]:
        text = f"{ast.unparse(given)}.T"
    elif seen is not None and wanted is not None and prod(seen) == prod(wanted):
        text = f"{ast.unparse(given)}.reshape({ast.unparse(root)}.shape)"
    return None if text is None else replacement(record, one.site, region_in(record, one.site.source, given), text)


def _sizes(text: str | None) -> list[int] | None:
    parts = [] if text is None else [part.strip() for part in text.split(",") if part.strip()]
    return [int(part) for part in parts] if text is not None and all(part.isdecimal() for part in parts) else None
