"""BP324 grad-of-untracked-input: a gradient is asked for by a tensor that does not require grad.

What it finds:
    `autograd.grad` raised because one of its inputs does not require grad. The finding stands at the call; related is
    the statement that made the input.

Why it matters:
    The program stops. What a tensor does to a result is recorded only while it requires grad, so the gradient cannot
    be had afterwards.

What PyTorch does:
    `RuntimeError: One of the differentiated Tensors does not require grad`, without a word on which one. Setting the
    flag after the forward pass changes the message only. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    condition = torch.ones(3)
    energy = (weight * condition).sum()
    pulls = torch.autograd.grad(energy, [weight, condition])  # <- here

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    condition = torch.ones(3, requires_grad=True)
    energy = (weight * condition).sum()
    pulls = torch.autograd.grad(energy, [weight, condition])

Near miss: only by what requires grad
    import torch

    weight = torch.ones(3, requires_grad=True)
    condition = torch.ones(3)
    energy = (weight * condition).sum()
    pulls = torch.autograd.grad(energy, [weight])

Blind spots:
    An input that lost its history on the way is left to the rule of that cut; one that came from `autograd.grad`
    without `create_graph=True` to BP325.

Source:
    torch.autograd.grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.cuts import cut_above, returned_by
from backprobe.rules.analysis.graph.roots import RaisedCall, input_expressions, raised_calls
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import line_after
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding import Edit, Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Root

RULE = Rule(
    name="grad-of-untracked-input",
    code="BP324",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "backward", "snapshot"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per input without requires_grad of a call that raised over it."""
    for one in raised_calls(record, "input-without-grad"):
        for at, asked in enumerate(one.call.inputs or ()):
            if asked.tensor is not None and _is_untracked(record, asked.tensor, one.call.moment_before):
                yield _finding(record, one, asked, asked.tensor, at)


def _is_untracked(record: Record, tensor: int, moment: int) -> bool:
    state = state_at(record, tensor, moment)
    if state is None or state.requires_grad:
        return False
    return cut_above(record, tensor) is None and returned_by(record, tensor) is None


def _finding(record: Record, one: RaisedCall, asked: Root, tensor: int, at: int) -> Finding:
    expressions = input_expressions(one.asked)
    written = ast.unparse(expressions[at]) if at < len(expressions) else None
    name = asked.name or written or f"input {at}"
    made = lookup(record).tensors[tensor].site
    edit = _flagged(record, tensor, name)
    return told(
        record,
        RULE,
        one.site.site,
        (
            f"A gradient by `{name}` is asked for, and `{name}` does not require grad.",
            "What it did to the root was not recorded, so torch raises.",
            f"Make `{name}` with `requires_grad=True`, before the forward pass.",
        ),
        binding=name,
        moments=[one.call.moment_before],
        related=((f"`{name}` was made here", None if made == one.site.site else made),),
        evidence={"input": at, "requires_grad": False, "call": one.call.call},
        fixes=[] if edit is None else [Fix(title=f"Let `{name}` require grad", safety="safe", edits=(edit,))],
        tensors=[tensor],
        calls=[one.call.call],
        level=level_of(record, one.raised),
    )


def _flagged(record: Record, tensor: int, name: str) -> Edit | None:
    """A line behind the assignment of the tensor; None where it has none, or its dtype has no gradient."""
    row = lookup(record).tensors[tensor]
    node = None if row.site is None else statement(record, site_of(record, row.site))
    if row.site is None or not isinstance(node, ast.Assign) or not row.dtype.startswith(("float", "bfloat", "complex")):
        return None
    if not any(ast.unparse(target) == name for target in node.targets):
        return None
    return line_after(record, site_of(record, row.site), node, f"{name}.requires_grad_()")
