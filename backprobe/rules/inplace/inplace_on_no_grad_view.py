"""BP406 inplace-on-no-grad-view: a view made under `no_grad` is changed in place while autograd is on.

What it finds:
    A statement that writes into such a view was refused. The finding stands at that statement; related are the line
    that made the view and what switched autograd off there.

Why it matters:
    The program stops. The view says "not to be tracked", the write says the opposite; only one of them can be meant.

What PyTorch does:
    `RuntimeError: A view was created in no_grad mode and is being modified inplace with grad mode enabled`. Both inside
    the mode, or both outside, is allowed. Seen in torch 2.13.

Example:
    import torch

    signal = torch.ones(6, requires_grad=True) * 2
    with torch.no_grad():
        window = signal[1:3]
    window.mul_(3)  # <- here
    signal.sum().backward()

Use instead:
    import torch

    signal = torch.ones(6, requires_grad=True) * 2
    window = signal[1:3]
    window.mul_(3)
    signal.sum().backward()

Near miss: both are inside
    import torch

    signal = torch.ones(6, requires_grad=True) * 2
    with torch.no_grad():
        window = signal[1:3]
        window.mul_(3)
    signal.sum().backward()

Near miss: a copy is changed
    import torch

    signal = torch.ones(6, requires_grad=True) * 2
    with torch.no_grad():
        window = signal[1:3].clone()
    window.mul_(3)
    signal.sum().backward()

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    torch.no_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.analysis.training.grad_modes import switches_off
from backprobe.rules.edits.out_of_place import out_of_place
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="inplace-on-no-grad-view",
    code="BP406",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "snapshot", "mode"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into a view from untracked code."""
    for one in refused(record, "view-of-no-grad-changed"):
        if one.tensor is None or _is_untracked_view(record, one):
            yield _finding(record, one)


def _is_untracked_view(record: Record, one: Refused) -> bool:
    if one.tensor is None or one.tensor.view_of is None:
        return False
    return not lookup(record).moments[one.tensor.moment].grad_mode


def _finding(record: Record, one: Refused) -> Finding:
    view = f"`{one.name}`" if one.written is not None else "a view"
    edit = out_of_place(record, one.site)
    switched = [
        row.site
        for row in record.modes
        if switches_off(row) and one.tensor is not None and (row.moment or 0) <= one.tensor.moment
    ]
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"This statement changes {view} in place with autograd on; the view was made with autograd off.",
            "Torch refuses it: it cannot know whether the change is to be tracked.",
            "Make the view and change it both inside `no_grad`, or both outside.",
        ),
        binding=one.name,
        moments=[one.raised.moment or 0],
        related=(
            ("autograd is off from here", switched[-1] if switched else None),
            (f"{view} was made here", one.tensor.site if one.tensor is not None else None),
        ),
        evidence={"tensor": None if one.tensor is None else one.tensor.tensor, "grad_mode_of_view": False},
        fixes=[] if edit is None else [Fix(title="Make a new tensor", safety="unsafe", edits=(edit,))],
        tensors=[] if one.tensor is None else [one.tensor.tensor],
        level=level_of(record, one.raised),
    )
