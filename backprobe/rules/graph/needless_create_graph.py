"""BP308 needless-create-graph: the history of a gradient is recorded, and never used.

What it finds:
    All calls of a statement say `create_graph=True`, and no later call walks what they recorded. A note, at the call.

Why it matters:
    Recording the backward pass costs about as much memory as the forward pass, and time; the graph itself is kept too.

What PyTorch does:
    With `create_graph=True` the gradients are results of operations that are tracked like any others, so that they can
    be differentiated. It also retains the graph. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        energy = x.pow(4).sum()
        (slope,) = torch.autograd.grad(energy, x, create_graph=True)  # <- here
        with torch.no_grad():
            x -= 0.01 * slope

Use instead:
    import torch

    x = torch.ones(3, requires_grad=True)
    for _ in range(3):
        energy = x.pow(4).sum()
        (slope,) = torch.autograd.grad(energy, x)
        with torch.no_grad():
            x -= 0.01 * slope

Near miss: the gradient is part of the loss
    import torch

    x = torch.ones(3, requires_grad=True)
    energy = x.pow(4).sum()
    (slope,) = torch.autograd.grad(energy, x, create_graph=True)
    (energy + slope.pow(2).sum()).backward()

Near miss: a second derivative
    import torch

    x = torch.ones(3, requires_grad=True)
    (slope,) = torch.autograd.grad(x.pow(4).sum(), x, create_graph=True)
    (bend,) = torch.autograd.grad(slope.sum(), x)

Blind spots:
    A run that was cut short, by an exception or a cap, is not judged.

Source:
    torch.autograd.grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.backward_flags import (
    calls_by_site,
    is_made_graph_walked,
    is_walked_again,
    ran_whole,
)
from backprobe.rules.analysis.graph.roots import asked_in
from backprobe.rules.analysis.source.expressions import with_keyword, without_keyword
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.framework.finding import Finding, Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

RULE = Rule(
    name="needless-create-graph",
    code="BP308",
    since="0.1",
    severity="note",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("backward", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One note per statement whose calls record histories in vain."""
    if not ran_whole(record):
        return
    for site, calls in calls_by_site(record).items():
        if all(call.create_graph for call in calls) and not any(is_made_graph_walked(record, call) for call in calls):
            yield _finding(record, site, calls)


def _finding(record: Record, number: int, calls: list[BackwardCall]) -> Finding:
    site = site_of(record, number)
    asked = asked_in(record, site)
    targets = site.targets
    name = targets[0] if targets and statement(record, site) is not None else calls[0].roots[0].name or "the gradient"
    edit = None
    if asked is not None:
        needed = any(is_walked_again(record, call) for call in calls)
        edit = without_keyword(record, site, asked, "create_graph")
        if needed and edit is not None:
            edit = with_keyword(record, site, asked, "create_graph", "False, retain_graph=True")
    return told(
        record,
        RULE,
        number,
        (
            "The history of this gradient is recorded, and no later call differentiates it.",
            "The recording costs about as much as the forward pass, in memory and in time.",
            "Drop `create_graph=True`.",
        ),
        binding=name,
        moments=[call.moment_before for call in calls],
        region=None if asked is None else region_in(record, site.source, asked),
        evidence={"calls": len(calls), "create_graph": True},
        fixes=[] if edit is None else [Fix(title="Record no history", safety="safe", edits=(edit,))],
        calls=[call.call for call in calls],
    )
