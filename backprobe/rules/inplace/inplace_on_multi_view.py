"""BP405 inplace-on-multi-view: one of several views that an operation returned together is changed in place.

What it finds:
    A statement that writes into an output of `chunk`, `split`, `unbind` and the like was refused. The finding stands at
    that statement; related is where the views were made.

Why it matters:
    The program stops. The parts share their memory with the whole, and autograd has no way to write the history of one
    of several parts that one node returned.

What PyTorch does:
    `RuntimeError: Output 0 of Split is a view and is being modified inplace. This view is the output of a function that
    returns multiple views`. A part that was taken alone, by indexing or `narrow`, may be changed. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(2, 4, requires_grad=True)
    gate, value = (x * 2).chunk(2, dim=1)
    gate.sigmoid_()  # <- here
    (gate * value).sum().backward()

Use instead:
    import torch

    x = torch.ones(2, 4, requires_grad=True)
    gate, value = (x * 2).chunk(2, dim=1)
    gate = gate.sigmoid()
    (gate * value).sum().backward()

Near miss: the part was taken by indexing
    import torch

    x = torch.ones(2, 4, requires_grad=True)
    whole = x * 2
    part = whole[:, :2]
    part.mul_(3)
    whole.sum().backward()

Near miss: nothing of it is tracked
    import torch

    first, second = torch.ones(2, 4).chunk(2, dim=1)
    first.add_(1)
    print(second)

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    torch.split in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.edits.out_of_place import out_of_place
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="inplace-on-multi-view",
    code="BP405",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into one of several views."""
    for one in refused(record, "view-of-several-changed"):
        if one.tensor is None or one.tensor.view_of is not None:
            yield _finding(record, one)


def _finding(record: Record, one: Refused) -> Finding:
    operation = one.raised.facts.get("op", "an operation")
    part = f"`{one.name}`" if one.written is not None else "a tensor"
    edit = out_of_place(record, one.site)
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"This statement changes {part} in place, one of several views that `{operation}` made together.",
            "Torch refuses it: it cannot track a change of one of them in the memory that they share.",
            f"Make a new tensor of {part}, or `clone()` the part first.",
        ),
        binding=one.name,
        moments=[one.raised.moment or 0],
        related=((f"`{operation}` made {part} here", one.tensor.site if one.tensor is not None else None),),
        evidence={"tensor": None if one.tensor is None else one.tensor.tensor, "made_by": operation},
        fixes=[] if edit is None else [Fix(title="Make a new tensor", safety="unsafe", edits=(edit,))],
        tensors=[] if one.tensor is None else [one.tensor.tensor],
        level=level_of(record, one.raised),
    )
