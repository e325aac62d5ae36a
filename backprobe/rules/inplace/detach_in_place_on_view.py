"""BP409 detach-in-place-on-view: `detach_()` is called on a view.

What it finds:
    A `detach_()` was refused because the tensor is a view. The finding stands at the call; related is where the view
    was made.

Why it matters:
    The program stops. A view has the history of its base, and it cannot be taken off one of the two alone.

What PyTorch does:
    `RuntimeError: Can't detach views in-place. Use detach() instead`. `detach()` gives a new tensor on the same memory.
    Seen in torch 2.13.

Example:
    import torch

    states = torch.ones(3, 2, requires_grad=True) * 2
    last = states[-1]
    last.detach_()  # <- here

Use instead:
    import torch

    states = torch.ones(3, 2, requires_grad=True) * 2
    last = states[-1]
    last = last.detach()

Near miss: it is no view
    import torch

    state = torch.ones(3, 2, requires_grad=True) * 2
    state.detach_()
    print(state)

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    torch.Tensor.detach_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="detach-in-place-on-view",
    code="BP409",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused `detach_()`."""
    for one in refused(record, "detach-view-in-place"):
        if one.tensor is None or one.tensor.view_of is not None:
            yield _finding(record, one)


def _finding(record: Record, one: Refused) -> Finding:
    fix = _fix(record, one)
    view = f"`{one.name}`" if one.written is not None else "a tensor"
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"`detach_()` is called on {view}, which is a view.",
            "Torch refuses it: the history belongs to the base, and other views share it.",
            f"Bind the result of `detach()` instead: `{one.name} = {one.name}.detach()`.",
        ),
        binding=one.name,
        moments=[one.raised.moment or 0],
        related=((f"{view} was made here", one.tensor.site if one.tensor is not None else None),),
        evidence={"tensor": None if one.tensor is None else one.tensor.tensor, "is_view": True},
        fixes=[] if fix is None else [fix],
        tensors=[] if one.tensor is None else [one.tensor.tensor],
        level=level_of(record, one.raised),
    )


def _fix(record: Record, one: Refused) -> Fix | None:
    """`x.detach_()` as `x = x.detach()`, where it is a whole statement on a name."""
    node = statement(record, one.site)
    if not isinstance(node, ast.Expr) or not isinstance(one.written, ast.Name | ast.Attribute):
        return None
    name = ast.unparse(one.written)
    edit = replacement(record, one.site, region_in(record, one.site.source, node), f"{name} = {name}.detach()")
    return Fix(title="Bind the detached tensor", safety="safe", edits=(edit,))
