"""BP221 dead-activation: every element of a relu or clamp is flat, call after call, and nothing behind it learns.

What it finds:
    A relu, clamp or hardtanh that got a gradient in at least three backward calls and sent back zeros in every element
    of every one, so that what is trained behind it got nothing but zeros. The finding stands at the statement by
    which the program gave a layer behind a relu values beyond what layers start with; else at the activation.

Why it matters:
    Nothing raises, and `.grad` is there: it is all zeros. A unit that is flat everywhere cannot come back.

What PyTorch does:
    The derivative of relu is 0 where its input is not positive, that of clamp outside its bounds. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    first, second = nn.Linear(6, 12), nn.Linear(12, 1)
    nn.init.constant_(first.bias, -50.0)  # <- here
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(4):
        rows = torch.randn(32, 6)
        hidden = torch.relu(first(rows))
        loss = (second(hidden).squeeze(1) - rows[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    first, second = nn.Linear(6, 12), nn.Linear(12, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(4):
        rows = torch.randn(32, 6)
        hidden = torch.relu(first(rows))
        loss = (second(hidden).squeeze(1) - rows[:, 0]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: some units are dead
    import torch
    from torch import nn

    first, second = nn.Linear(6, 12), nn.Linear(12, 1)
    with torch.no_grad():
        first.bias[:6] = -50.0
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
    for _ in range(4):
        rows = torch.randn(32, 6)
        optimizer.zero_grad()
        second(torch.relu(first(rows))).square().mean().backward()
        optimizer.step()

Near miss: a hinge loss that has nothing left to do
    import torch
    from torch import nn

    layer = nn.Linear(6, 1)
    nn.init.constant_(layer.bias, 50.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        torch.relu(1 - layer(torch.randn(32, 6))).mean().backward()
        optimizer.step()

Blind spots:
    A gradient that is the same in every element is taken for a margin or a penalty that is satisfied, not for a layer.

Source:
    The derivative of relu and clamp in `derivatives.yaml` of PyTorch; observed with torch 2.13. Three calls: one or two
    batches may lie on the flat side as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import came_to, came_to_leaves, is_nonzero, is_zero, sent_along
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.graph.walks import operation_name
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import called, together
from backprobe.rules.analysis.tensors.value_origins import extreme_start
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="dead-activation",
    code="BP221",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "stats", "grad-life", "optimizer"),
)

_FLAT: Final = re.compile(r"(Relu|Threshold|Clamp|ClampMin|ClampMax|Hardtanh)Backward\d*")
LEAST: Final = 3
"""Backward calls in which every element was flat."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    said: set[int] = set()
    for nodes in _places(record).values():
        lost = _lost(record, nodes[0])
        site = nodes[0].site
        if len(nodes) >= LEAST and lost and site is not None and all(_is_dead(record, node) for node in nodes):
            if site not in said:
                yield _finding(record, nodes, lost)
            said.add(site)


def _places(record: Record) -> dict[tuple[object, ...], list[Node]]:
    """The activations of each place in the program, call by call: of several in one statement each is a place."""
    found: dict[tuple[object, ...], list[Node]] = {}
    ran: dict[int, dict[int, Node]] = {}
    for node in nodes_like(record, _FLAT.fullmatch):
        for row in lookup(record).passes_of_node[node.node]:
            if row.position is not None:
                ran.setdefault(row.call, {})[node.node] = node
    for _call, flat in sorted(ran.items()):
        seen: dict[tuple[object, ...], int] = {}
        for node in sorted(flat.values(), key=lambda one: one.seq or 0):
            at = seen[node.site, node.type] = seen.get((node.site, node.type), -1) + 1
            found.setdefault((node.site, node.type, at), []).append(node)
    return found


def _is_dead(record: Record, node: Node) -> bool:
    """A gradient came that differs between elements, and what went on was all zeros."""
    for row in came_to(record, node.node):
        came = row.grad_output
        sent = [sent_along(record, edge, row.call) for edge in lookup(record).edges_of[node.node]]
        if not is_nonzero(came) or came is None or came.min == came.max or not all(map(is_zero, sent[:1])):
            return False
    return True


def _lost(record: Record, node: Node) -> list[int]:
    """The trained leaves behind it whose last gradients were all zeros."""
    arrived = came_to_leaves(record)
    behind = sorted(leaves_behind(record, node.node) & trained(record))
    return [leaf for leaf in behind if all(is_zero(row.grad_output) for row in arrived.get(leaf, [])[-LEAST:])]


def _finding(record: Record, nodes: list[Node], lost: list[int]) -> Finding:
    index = lookup(record)
    first = nodes[0]
    kind = operation_name(first.type)
    made = [row.tensor for row in record.tensor_nodes if row.node == first.node]
    names = [row.name for tensor in made for row in index.bindings_of[tensor]]
    calls = [row for node in nodes for row in came_to(record, node.node)]
    bounded = not first.type.startswith(("Relu", "Threshold"))  # a clamp's bounds are chosen where it stands
    start = None if bounded else extreme_start(record, lost, index.calls[calls[0].call].moment_before)
    name = f"`{names[0]}`, made by `{kind}`," if names else f"The result of `{kind}`"
    return told(
        record,
        RULE,
        first.site or 0 if start is None else start.site,
        (
            f"{name} is flat in every element, in all {len(calls)} backward calls.",
            f"Only zeros come back to {together(record, lost)}: likely this layer was to be trained.",
            "Look at the scale and the bias of what goes in; a leaky variant never sends back zeros only."
            if start is None
            else f"This statement gives `{called(record, start.tensor)}` its values: start it closer to zero.",
        ),
        binding=names[0] if names else kind,
        moments=[index.calls[row.call].moment_before for row in calls],
        related=(
            ("it is flat here", None if start is None else first.site),
            ("what is not trained is made here", index.tensors[lost[0]].site),
        ),
        evidence={"node": first.type, "calls": len(calls), "least_calls": LEAST, "leaves_at_zero": lost[:16]},
        tensors=lost,
    )
