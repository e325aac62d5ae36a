"""BP309 parameter-gradient-cycle: `backward(create_graph=True)` leaves gradients with a history in the parameters.

What it finds:
    `backward` was called with `create_graph=True`, and a gradient that it stored is still there when the next backward
    call comes. The finding stands at the call.

Why it matters:
    The parameter holds its gradient, the gradient its history, and that the parameter: a cycle that Python cannot see
    through and that is never freed. Each next call adds to such a gradient and makes its history longer.

What PyTorch does:
    It warns: "Using backward() with create_graph=True will create a reference cycle between the parameter and its
    gradient". `autograd.grad` returns the gradients instead of storing them. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    for x in torch.ones(3, 3):
        loss = (weight * x).pow(2).sum()
        loss.backward(create_graph=True)  # <- here
        print(weight.grad.norm().item())

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    for x in torch.ones(3, 3):
        loss = (weight * x).pow(2).sum()
        (slope,) = torch.autograd.grad(loss, weight, create_graph=True)
        print(slope.pow(2).sum().backward())
        weight.grad = None

Near miss: the gradient is dropped after use
    import torch

    weight = torch.ones(3, requires_grad=True)
    for x in torch.ones(3, 3):
        loss = (weight * x).pow(2).sum()
        loss.backward(create_graph=True)
        print(weight.grad.norm().item())
        weight.grad = None

Blind spots:
    One call alone is left to torch's warning.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.backward_flags import is_made_graph_walked
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.roots import asked_in
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import without_keyword
from backprobe.rules.analysis.source.naming import capital, together
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

RULE = Rule(
    name="parameter-gradient-cycle",
    code="BP309",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("backward", "grad-life", "node"),
    explains=("needless-create-graph",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement whose gradients with a history outlive it."""
    found: defaultdict[int, list[tuple[BackwardCall, list[int]]]] = defaultdict(list)
    stored = [call for call in record.backward_calls if call.accumulate_grad and call.moment_after is not None]
    for call, after in pairwise(stored):
        if call.create_graph and call.site is not None:
            left = [leaf for leaf in sorted(reaches(record)[call.call].leaves) if _is_left(record, leaf, call, after)]
            if left:
                found[call.site].append((call, left))
    for site, calls in found.items():
        yield _finding(record, site, calls)


def _is_left(record: Record, leaf: int, call: BackwardCall, after: BackwardCall) -> bool:
    """The call stored a gradient in the leaf, and up to the next one nothing took it out or put another there."""
    rows = lookup(record).leaf_grads_of[leaf]
    came = any(row.call == call.call and row.kind in ("populate", "accumulate-new-tensor") for row in rows)
    start = call.moment_before if call.moment_after is None else call.moment_after
    between = [row for row in rows if start < row.moment <= after.moment_before]
    return came and not any(row.kind in ("set-none", "assigned") for row in between)


def _finding(record: Record, number: int, calls: list[tuple[BackwardCall, list[int]]]) -> Finding:
    site = site_of(record, number)
    call, left = calls[0]
    asked = asked_in(record, site)
    keep = "keeps" if len(left) == 1 else "keep"
    fixes: list[Fix] = []
    edit = None if asked is None else without_keyword(record, site, asked, "create_graph")
    if edit is not None and not any(is_made_graph_walked(record, one) for one, _left in calls):
        fixes = [Fix(title="Record no history: nothing differentiates it", safety="unsafe", edits=(edit,))]
    return told(
        record,
        RULE,
        number,
        (
            f"{capital(together(record, left))} {keep} a gradient with a history until the next backward call.",
            "Parameter and gradient hold each other, and are never freed.",
            "Use `torch.autograd.grad(..., create_graph=True)`, or set `.grad = None` once it is used.",
        ),
        binding=call.roots[0].name or "the root" if call.roots else "the root",
        moments=[one.moment_before for one, _left in calls],
        evidence={"calls": [one.call for one, _left in calls[:8]], "leaves": left[:8], "create_graph": True},
        fixes=fixes,
        calls=[one.call for one, _left in calls],
        tensors=left,
    )
