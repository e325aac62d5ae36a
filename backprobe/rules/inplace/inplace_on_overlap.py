"""BP407 inplace-on-overlap: a tensor whose elements share memory, as `expand` gives it, is changed in place.

What it finds:
    A write into a tensor with several elements at one address was refused. The finding stands at the statement that
    writes; related is where the tensor was expanded.

Why it matters:
    The program stops. One memory cell would have to hold several values.

What PyTorch does:
    `expand` repeats a dimension with stride 0: no memory is copied. In-place operations check for that and raise
    `RuntimeError: unsupported operation: more than one element of the written-to tensor refers to a single memory
    location`. Seen in torch 2.13.

Example:
    import torch

    bias = torch.zeros(1, 4)
    rows = bias.expand(3, 4)
    rows.add_(torch.ones(3, 4))  # <- here

Use instead:
    import torch

    bias = torch.zeros(1, 4)
    rows = bias.expand(3, 4).clone()
    rows.add_(torch.ones(3, 4))

Near miss: an expanded tensor is read
    import torch

    bias = torch.zeros(1, 4)
    rows = bias.expand(3, 4)
    total = torch.ones(3, 4)
    total.add_(rows)

Near miss: repeat copies
    import torch

    rows = torch.zeros(1, 4).repeat(3, 1)
    rows.add_(torch.ones(3, 4))

Blind spots:
    Overlap that has no dimension of stride 0, as `as_strided` and `unfold` can make it, is told without its origin.

Source:
    torch.Tensor.expand in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Tensor

RULE = Rule(
    name="inplace-on-overlap",
    code="BP407",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into overlapping memory."""
    for one in refused(record, "overlapping-memory-changed"):
        yield _finding(record, one)


def _overlaps(tensor: Tensor | None) -> bool:
    """Some dimension of more than one element has stride 0."""
    if tensor is None or tensor.stride is None or tensor.shape is None:
        return False
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride, tensor.shape, strict=False))


def _finding(record: Record, one: Refused) -> Finding:
    name = f"`{one.name}`" if one.written is not None else "a tensor"
    known = one.tensor if _overlaps(one.tensor) else None
    edit = _clone(record, known)
    shape = "" if known is None else f" of shape {list(known.shape or ())} and stride {list(known.stride or ())}"
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"This statement writes into {name}{shape}: several of its elements lie at one place in memory.",
            "Torch refuses it: one memory cell cannot hold several values.",
            f"Give {name} memory of its own with `.clone()` where it is made.",
        ),
        binding=one.name,
        moments=[one.raised.moment or 0],
        related=((f"{name} was made here", None if known is None else known.site),),
        evidence={
            "tensor": None if one.tensor is None else one.tensor.tensor,
            "shape": [] if known is None else list(known.shape or ()),
            "stride": [] if known is None else list(known.stride or ()),
        },
        fixes=[] if edit is None else [Fix(title="Copy it where it is made", safety="safe", edits=(edit,))],
        tensors=[] if one.tensor is None else [one.tensor.tensor],
        level=level_of(record, one.raised),
    )


def _clone(record: Record, tensor: Tensor | None) -> Edit | None:
    """`.clone()` behind the call that gives the tensor its value; None where its statement is no such assignment."""
    if tensor is None or tensor.site is None:
        return None
    site = site_of(record, tensor.site)
    node = statement(record, site)
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) != 1:
        return None
    if not isinstance(node.targets[0], ast.Name | ast.Attribute):
        return None
    region = region_in(record, site.source, node.value)
    return insertion(record, site, region.end_line, region.end_col, ".clone()")
