"""BP404 inplace-on-leaf-view: a part of a leaf that requires grad is changed in place while autograd is on.

What it finds:
    A statement that writes into a view of a leaf (`weight[0] = 0`, `weight.view(-1).add_(1)`) was refused. The finding
    stands at that statement; related is where the view was made, if elsewhere.

Why it matters:
    The program stops. What people mean is an initialisation (the row of a padding token) or a constraint after a step:
    it is no part of the model's function, and autograd has to be told so.

What PyTorch does:
    A view shares the memory of its base. A write into it under autograd would make a result of the leaf: torch raises
    `RuntimeError: a view of a leaf Variable that requires grad is being used in an in-place operation`. Under
    `torch.no_grad()` it is allowed. Seen in torch 2.13.

Example:
    import torch

    table = torch.nn.Embedding(5, 2)
    table.weight[0] = 0.0  # <- here
    table(torch.tensor([1, 2])).sum().backward()

Use instead:
    import torch

    table = torch.nn.Embedding(5, 2)
    with torch.no_grad():
        table.weight[0] = 0.0
    table(torch.tensor([1, 2])).sum().backward()

Near miss: a part of a result is written
    import torch

    table = torch.nn.Embedding(5, 2)
    rows = table(torch.tensor([1, 2]))
    rows[0] = 0.0
    rows.sum().backward()

Near miss: a part of a copy is written
    import torch

    weight = torch.ones(3, requires_grad=True)
    masked = weight.clone()
    masked[0] = 0.0
    masked.sum().backward()

Blind spots:
    An exception that the program catches itself outside a backward call is not recorded.

Source:
    "In-place operations with autograd" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.tensors.refused_writes import Refused, refused
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.edits.out_of_place import untracked_run
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Tensor

RULE = Rule(
    name="inplace-on-leaf-view",
    code="BP404",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per refused write into a part of a leaf."""
    for one in refused(record, "view-of-leaf-changed"):
        leaf = _leaf(record, one)
        if one.tensor is None or leaf is not None:
            yield _finding(record, one, leaf)


def _leaf(record: Record, one: Refused) -> Tensor | None:
    """The leaf itself, or the base of the view, if it requires grad."""
    if one.tensor is None or one.raised.moment is None:
        return None
    base = one.tensor if one.tensor.view_of is None else lookup(record).tensors.get(one.tensor.view_of)
    state = None if base is None else state_at(record, base.tensor, one.raised.moment)
    return base if state is not None and state.is_leaf and state.requires_grad else None


def _finding(record: Record, one: Refused, leaf: Tensor | None) -> Finding:
    bound = lookup(record).bindings_of[leaf.tensor] if leaf is not None else []
    base = leaf.fqn if leaf is not None and leaf.fqn else bound[-1].name if bound else one.name
    is_view = leaf is not None and one.tensor is not None and one.tensor.tensor != leaf.tensor
    part = f"`{one.name}`, a view of the leaf `{base}`," if is_view else f"a part of the leaf `{base}`"
    edit = untracked_run(record, one.site) if one.written is not None else None
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"This statement changes {part} in place, while autograd is on and `{base}` requires grad.",
            "Torch refuses it: the leaf would become a result, and no gradient would arrive at it any more.",
            "Write it under `torch.no_grad()`; where it is part of the model, change a `clone()` instead.",
        ),
        binding=base,
        moments=[one.raised.moment or 0],
        related=((f"`{one.name}` was made here", one.tensor.site if is_view and one.tensor is not None else None),),
        evidence={"tensor": None if leaf is None else leaf.tensor, "requires_grad": True, "written": one.name},
        fixes=[] if edit is None else [Fix(title="Keep it out of the graph", safety="unsafe", edits=(edit,))],
        tensors=[] if leaf is None else [leaf.tensor],
        level=level_of(record, one.raised),
    )
