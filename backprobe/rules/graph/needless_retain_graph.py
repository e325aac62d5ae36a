"""BP307 needless-retain-graph: a graph is retained, and no later call walks it.

What it finds:
    All calls of a statement say `retain_graph=True`, and none of the nodes that they walked ever runs again. A note, at
    the call.

Why it matters:
    What the nodes saved stays in memory until the root is gone: of two steps at a time instead of one. The flag also
    hides the error that a graph carried over by mistake would raise.

What PyTorch does:
    A backward call frees what the nodes saved as it goes, unless it is told to retain it for another call. Seen in
    torch 2.13.

Example:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.ones(3, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)  # <- here
        optimizer.step()

Use instead:
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.ones(3, 5, 3):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a second loss walks the trunk
    import torch

    weight = torch.ones(3, requires_grad=True)
    trunk = weight.exp()
    first, second = trunk.sum(), trunk.pow(2).sum()
    first.backward(retain_graph=True)
    second.backward()

Near miss: row after row of one output
    import torch

    weight = torch.ones(3, requires_grad=True)
    output = weight.exp()
    rows = [torch.autograd.grad(output[at], weight, retain_graph=True)[0] for at in range(3)]

Blind spots:
    A run that was cut short, by an exception or a cap, is not judged: the call that needs the graph may come later.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.backward_flags import calls_by_site, is_walked_again, ran_whole
from backprobe.rules.analysis.graph.roots import asked_in
from backprobe.rules.analysis.source.expressions import without_keyword
from backprobe.rules.analysis.source.syntax import region_in, site_of
from backprobe.rules.framework.finding import Finding, Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record

RULE = Rule(
    name="needless-retain-graph",
    code="BP307",
    since="0.1",
    severity="note",
    confidence="proven",
    rests_on="run",
    fix="safe",
    needs=("backward", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One note per statement whose calls retain graphs in vain."""
    if not ran_whole(record):
        return
    for site, calls in calls_by_site(record).items():
        retained = [call for call in calls if call.retain_graph_given is True and not call.create_graph]
        if retained and len(retained) == len(calls) and not any(is_walked_again(record, call) for call in calls):
            yield _finding(record, site, retained)


def _finding(record: Record, number: int, calls: list[BackwardCall]) -> Finding:
    site = site_of(record, number)
    asked = asked_in(record, site)
    name = next((root.name for root in calls[0].roots if root.name), None) or "the root"
    edit = None if asked is None else without_keyword(record, site, asked, "retain_graph")
    region: Region | None = None
    if isinstance(asked, ast.Call):
        region = region_in(record, site.source, asked)
    return told(
        record,
        RULE,
        number,
        (
            f"The graph of `{name}` is retained, and no later call walks it.",
            "What it saved for the backward pass stays in memory until the root is gone.",
            "Drop `retain_graph=True`.",
        ),
        binding=name,
        moments=[call.moment_before for call in calls],
        region=region,
        evidence={"calls": len(calls), "retain_graph": True, "held_bytes": max(call.held_bytes for call in calls)},
        fixes=[] if edit is None else [Fix(title="Let it go", safety="safe", edits=(edit,))],
        calls=[call.call for call in calls],
    )
