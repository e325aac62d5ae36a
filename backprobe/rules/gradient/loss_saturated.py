"""BP269 loss-saturated: a loss is cut at a ceiling that it never comes under, and nothing gets a gradient.

What it finds:
    A `clamp` with an upper bound, or a `min` with a constant, got the same positive gradient in every element in at
    least three backward calls, sent back zeros only, and no parameter behind it ever got anything else.

Why it matters:
    The loss should fall, and cannot: above the ceiling it is flat. `.grad` is all zeros, so no step gets it down.

What PyTorch does:
    The derivative of `clamp` outside its bounds is 0, and so is that of `min` for the greater one. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        loss = (model(x) - 30).pow(2).mean().clamp(max=1.0)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        loss = nn.functional.huber_loss(model(x), torch.full((8, 1), 30.0), delta=1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a margin that is kept has nothing left to do
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    nn.init.constant_(model.bias, 50.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        (1 - model(x)).clamp(min=0).mean().backward()
        optimizer.step()

Near miss: the ceiling cuts some elements
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(4, 8, 3):
        loss = (model(x) - torch.arange(8.0)[:, None]).pow(2).clamp(max=4.0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A clamp with both bounds, or one inside a model, is left to BP221 where gradients differ between elements.

Source:
    The derivatives of clamp and minimum in `derivatives.yaml` of PyTorch; observed with torch 2.13. Three calls: as
    BP221.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import always_zero, came_to, is_zero, sent_along
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import parts_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="loss-saturated",
    code="BP269",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "stats", "grad-life", "optimizer"),
)

_CEILINGS: Final = re.compile(r"(Clamp|ClampMax|Minimum)Backward\d*")
LEAST: Final = 3
"""Backward calls in which nothing went on: one or two batches may lie above the ceiling."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    by_site: dict[int, list[Node]] = {}
    for node in nodes_like(record, _CEILINGS.fullmatch):
        if node.site is not None and came_to(record, node.node):
            by_site.setdefault(node.site, []).append(node)
    for site, nodes in by_site.items():
        calls = {row.call for node in nodes for row in came_to(record, node.node)}
        if len(calls) < LEAST or not _has_ceiling(record, site) or not all(_is_stuck(record, one) for one in nodes):
            continue
        lost = leaves_behind(record, nodes[0].node) & trained(record)
        if lost and lost <= always_zero(record):
            yield _finding(record, site, nodes, sorted(lost))


def _is_stuck(record: Record, node: Node) -> bool:
    """The same positive gradient came to every element, so all should fall; what went on was all zeros."""
    for row in came_to(record, node.node):
        came = row.grad_output
        if came is None or came.min is None or came.max is None or not 0 < came.min == came.max:
            return False
        sent = [sent_along(record, edge, row.call) for edge in lookup(record).edges_of[node.node] if edge.to_node]
        if not sent or not all(map(is_zero, sent)):
            return False
    return True


def _has_ceiling(record: Record, site: int) -> bool:
    """The statement cuts from above alone: `clamp(max=...)`, `clamp_max`, `minimum`, or `min` of two."""
    found: list[bool] = []
    for part in parts_of(statement_at(record, site)):
        if not isinstance(part, ast.Call):
            continue
        name, given = last_name(part.func), {one.arg for one in part.keywords}
        if name in ("clamp", "clip", "clamp_", "clip_"):
            found.append("max" in given and "min" not in given and len(part.args) <= 1)
        elif name in ("minimum", "fmin", "clamp_max", "clamp_max_", "min"):
            found.append(True)
    return bool(found) and all(found)


def _finding(record: Record, site: int, nodes: list[Node], lost: list[int]) -> Finding:
    index = lookup(record)
    calls = sorted({row.call for node in nodes for row in came_to(record, node.node)})
    kind = "min" if nodes[0].type.startswith("Minimum") else "clamp"
    return told(
        record,
        RULE,
        site,
        (
            f"`{kind}` cuts this at a ceiling that it lies above in all {len(calls)} backward calls.",
            f"Only zeros come to {together(record, lost)}: no step can bring the loss below the ceiling.",
            "Use a loss that grows more slowly, such as `huber_loss`, or clip the gradient instead.",
        ),
        binding=kind,
        moments=[index.calls[call].moment_before for call in calls],
        related=(("this backward call sends on zeros only", index.calls[calls[0]].site),),
        evidence={"node": nodes[0].type, "calls": len(calls), "least_calls": LEAST, "leaves_at_zero": lost[:16]},
        tensors=lost,
    )
