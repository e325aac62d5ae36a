"""BP340 unfit-root-gradient: the gradient handed to `backward()` is zero, or the loss itself.

What it finds:
    A backward call is given a gradient for its root that is zero in every element, or that has the values of the root
    itself, in each of its calls; and an update uses what comes of it. The finding stands at the call.

Why it matters:
    A gradient of zeros trains nothing, though the loss is shown. The loss as its own gradient weights each element by
    itself: what is minimised is half the sum of its squares, and the step shrinks with the loss.

What PyTorch does:
    The argument of `backward()` is the gradient of what is to be minimised by the root, one weight for each element.
    Any values of the right shape are accepted. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        losses = net(torch.randn(8, 4)).pow(2).mean(1)
        optimizer.zero_grad()
        losses.backward(losses)  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        losses = net(torch.randn(8, 4)).pow(2).mean(1)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()

Near miss: one weight for each element
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        losses = net(torch.randn(8, 4)).pow(2).mean(1)
        optimizer.zero_grad()
        losses.backward(torch.ones_like(losses) / 8)
        optimizer.step()

Near miss: the Jacobian times a residual, which has both signs
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        residual = net(torch.randn(8, 4)) - 1
        optimizer.zero_grad()
        residual.backward(residual.detach())
        optimizer.step()

Near miss: zeros for one of two roots
    import torch
    from torch import nn

    net = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        left, right = net(torch.randn(8, 4)).pow(2).unbind(1)
        optimizer.zero_grad()
        torch.autograd.backward([left, right], [torch.zeros(8), torch.ones(8)])
        optimizer.step()

Blind spots:
    A gradient that is wrong in another way, such as the mean in place of the sum, is not told from a weight.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from backprobe.rules.analysis.graph.roots import asked_in, gradient_expression
from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.modules.training_modes import used_by_updates
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.terms.repeated_terms import stores
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="unfit-root-gradient",
    code="BP340",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("backward", "node", "stats", "grad-life", "optimizer"),
    explains=("dead-activation",),
)
_LEAST = 2
"""Calls of one statement: once is no pattern."""

Fault = Literal["zero", "itself"]


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement whose calls all begin with such a gradient."""
    calls: dict[int, list[tuple[BackwardCall, Fault | None]]] = {}
    for call in record.backward_calls:
        if call.site is not None and stores(call) and any(root.gradient_given for root in call.roots):
            calls.setdefault(call.site, []).append((call, _fault(record, call)))
    for rows in calls.values():
        fault = rows[0][1]
        same = fault is not None and all(one == fault for _call, one in rows)
        if fault is not None and same and len(rows) >= _LEAST and rows[0][0].call in used_by_updates(record):
            yield _finding(record, [call for call, _fault in rows], fault)


def _fault(record: Record, call: BackwardCall) -> Fault | None:
    """What is wrong with the gradients that every root of a call was given; None: nothing, or they differ."""
    faults: set[Fault | None] = {_fault_of(record, call, root.tensor) for root in call.roots}
    return faults.pop() if len(faults) == 1 else None


def _fault_of(record: Record, call: BackwardCall, root: int | None) -> Fault | None:
    node = node_of(record, root)
    state = None if root is None else state_at(record, root, call.moment_before)
    if root is None or node is None or state is None:
        return None
    output = lookup(record).node_of[root].output_nr
    for row in lookup(record).passes_of_node[node]:
        if row.call == call.call and row.output_nr == output and row.grad_output is not None:
            given = row.grad_output
            if given.counted and given.zeros == given.counted:
                return "zero"
            return "itself" if state.value is not None and _are_same(given, state.value) else None
    return None


def _are_same(given: Statistics, value: Statistics) -> bool:
    """Both have one distribution, which is a loss's: nowhere negative, and not all ones."""
    if value.min is None or value.min < 0 or value.counted != given.counted or (value.min == 1 and value.max == 1):
        return False
    pairs = ((given.norm, value.norm), (given.sum, value.sum), (given.min, value.min), (given.max, value.max))
    return all(one is not None and other is not None and abs(one - other) <= 1e-6 * abs(other) for one, other in pairs)


def _finding(record: Record, calls: list[BackwardCall], fault: Fault) -> Finding:
    first, site = calls[0], site_of(record, calls[0].site or 0)
    asked = asked_in(record, site)
    given = gradient_expression(record, site, asked)
    name = first.roots[0].name or "the root"
    seen, harm = f"The gradient that `{name}` is given here is its own value.", "Each element is weighted by itself"
    if fault == "zero":
        seen, harm = f"The gradient that `{name}` is given here is zero in every element.", "Every leaf gets zeros"
    return told(
        record,
        RULE,
        site.site,
        (
            seen,
            f"{harm}, in all {len(calls)} calls: the steps do not minimise `{name}`.",
            f"Reduce it, `{name}.mean().backward()`, or give `torch.ones_like({name})`.",
        ),
        binding=name,
        moments=[call.moment_before for call in calls],
        related=(("the root is made here", lookup(record).tensors[first.roots[0].tensor or 0].site),),
        evidence={
            "given": fault,
            "calls": len(calls),
            "written": "" if given is None else ast.unparse(given),
        },
        tensors=[one.tensor for one in first.roots if one.tensor is not None],
        calls=[call.call for call in calls],
    )
