"""BP403 inplace-on-leaf: a leaf that requires grad is changed in place while autograd is on.

What it finds:
    A statement that writes into a leaf was refused. The finding stands at that statement.

Why it matters:
    The program stops. The change was meant either as an update, which is no part of the model's function, or as an
    initialisation: neither is to be differentiated, and autograd has to be told so.

What PyTorch does:
    A leaf that was written under autograd would be the result of an operation, and no longer a leaf: torch raises
    `RuntimeError: a leaf Variable that requires grad is being used in an in-place operation`. Under `torch.no_grad()`
    the write is allowed. The functions of `torch.nn.init` use that mode themselves. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(4, 3)
    weight = torch.zeros(3, requires_grad=True)
    loss = (x @ weight - 1).pow(2).mean()
    loss.backward()
    weight -= 0.1 * weight.grad  # <- here

Use instead:
    import torch

    x = torch.ones(4, 3)
    weight = torch.zeros(3, requires_grad=True)
    loss = (x @ weight - 1).pow(2).mean()
    loss.backward()
    with torch.no_grad():
        weight -= 0.1 * weight.grad

Near miss: the functions of torch.nn.init
    import torch

    weight = torch.zeros(3, 2, requires_grad=True)
    torch.nn.init.xavier_uniform_(weight)
    weight.sum().backward()

Near miss: the leaf does not require grad yet
    import torch

    weight = torch.zeros(3)
    weight += 1
    weight.requires_grad_()
    weight.sum().backward()

Near miss: a result is changed, not the leaf
    import torch

    weight = torch.zeros(3, requires_grad=True)
    shifted = weight + 1
    shifted *= 2
    shifted.sum().backward()

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    "In-place operations with autograd" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.edits.out_of_place import untracked
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="inplace-on-leaf",
    code="BP403",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into a leaf."""
    for one in refused(record, "leaf-changed"):
        if one.tensor is None or _is_tracked_leaf(record, one):
            yield _finding(record, one)


def _is_tracked_leaf(record: Record, one: Refused) -> bool:
    if one.tensor is None or one.raised.moment is None:
        return False
    state = state_at(record, one.tensor.tensor, one.raised.moment)
    return state is not None and state.is_leaf and state.requires_grad


def _finding(record: Record, one: Refused) -> Finding:
    name = one.name
    named = one.tensor is not None or one.written is not None
    leaf = f"`{name}`" if named else "a leaf"
    edit = untracked(record, one.site) if one.written is not None else None
    advice = "Write this statement under `torch.no_grad()`; where the change is part of the model, make a new tensor."
    if one.written is None:
        advice = "Give what runs here a copy, or switch its `inplace=True` off."
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"This statement changes {leaf} in place: a leaf that requires grad, while autograd is on.",
            "Torch refuses it: the leaf would become a result, and no gradient would arrive at it any more.",
            advice,
        ),
        binding=name,
        moments=[one.raised.moment or 0],
        related=((f"{leaf} was made here", one.tensor.site if one.tensor is not None else None),),
        evidence={"tensor": None if one.tensor is None else one.tensor.tensor, "is_leaf": True, "requires_grad": True},
        fixes=[] if edit is None else [Fix(title="Keep it out of the graph", safety="safe", edits=(edit,))],
        tensors=[] if one.tensor is None else [one.tensor.tensor],
        level=level_of(record, one.raised),
    )
