"""BP509 saturated-activation: nearly every tanh or sigmoid stands at its flat end from the first step on.

What it finds:
    In every backward call of the run, at least three, a tanh or sigmoid got a gradient and sent less than three tenths
    of it: of the elements that it got one for, more than 70 of 100 sent zero. Layers behind it hold trained parameters.
    The finding stands at the statement by which the program gave a layer behind it values beyond what layers start
    with; else at the activation.

Why it matters:
    What lies before it cannot learn: its gradient is zero for nearly every example. Raw inputs (prices, pixels up to
    255, years) are the usual cause.

What PyTorch does:
    The derivative of tanh is `1 - tanh(x)**2`: below 1e-7 beyond 9, so that it is 0 in float32. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    prices = torch.rand(40, 4) * 90_000 + 10_000
    for _ in range(4):
        hidden = torch.tanh(first(prices))  # <- here
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    prices = torch.rand(40, 4) * 90_000 + 10_000
    scaled = (prices - prices.mean(0)) / prices.std(0)
    for _ in range(4):
        hidden = torch.tanh(first(scaled))
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a gate closes late in training
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    for step in range(4):
        hidden = torch.sigmoid(first(torch.randn(40, 4)) * 100**step)
        loss = (second(hidden) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the last layer's probabilities are sure of themselves
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for _ in range(4):
        sure = torch.sigmoid(model(torch.randn(40, 4) * 1e6))
        loss = (sure - 0.5).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a ReLU, of which half of the units are off
    import torch
    from torch import nn

    first, second = nn.Linear(4, 16), nn.Linear(16, 1)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.001)
    for _ in range(4):
        loss = (second(first(torch.randn(40, 4)).relu()) - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Activations that are flat but not exactly zero in their dtype are told by BP507, if at all.

Source:
    Glorot, Bengio, Understanding the difficulty of training deep feedforward neural networks, 2010. Measured: over the
    correct programs of the corpora a tanh or sigmoid behind a weight makes at most 2 % of the elements zero that were
    not zero already, in every one of three calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, value_of
from backprobe.rules.analysis.tensors.value_origins import extreme_start
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Node, NodePass, Record, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="saturated-activation",
    code="BP509",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("stats", "node", "backward"),
    thresholds={"flat": 0.7, "sent": 0.3},
)
_LEAST = 3
"""Backward calls in which it must be flat: thrice is a pattern."""

_KINDS = {"TanhBackward0": "tanh", "SigmoidBackward0": "sigmoid"}


@dataclass(slots=True)
class _Seen:
    """One activation's statement: in how many calls it was flat, and the worst numbers."""

    kind: str
    node: int
    flat: list[BackwardCall] = field(default_factory=list["BackwardCall"])
    open: int = 0
    share: float = 1.0
    sent: float = 0.0


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement whose activation was flat in every call."""
    seen: dict[tuple[int, str], _Seen] = {}
    if not nodes_like(record, _KINDS.__contains__):
        return
    for call in record.backward_calls:
        for node, got in _activations(record, call):
            sent = _sent(record, call, node)
            if sent is None or sent.grad_output is None or node.site is None:
                continue
            one = seen.setdefault((node.site, node.type), _Seen(_KINDS[node.type], node.node))
            measured, reached = sent.grad_output, got.counted - got.zeros
            share = max(measured.zeros - got.zeros, 0) / max(reached, 1)
            part = (measured.norm or 0.0) / (got.norm or 1.0)
            if share > threshold(RULE, "flat") and part < threshold(RULE, "sent"):
                one.flat.append(call)
                one.share, one.sent = min(one.share, share), max(one.sent, part)
            else:
                one.open += 1
    for (site, _type), one in seen.items():
        if len(one.flat) >= _LEAST and not one.open:
            yield _finding(record, site, one)


def _activations(record: Record, call: BackwardCall) -> Iterator[tuple[Node, Statistics]]:
    """The tanh and sigmoid nodes that a call ran behind some weight, with the gradient they got."""
    index = lookup(record)
    rows = sorted(
        (row for row in index.passes_of_call[call.call] if row.position is not None), key=lambda row: row.position or 0
    )
    weights = 0
    for row in rows:
        node = index.nodes[row.node]
        weights += node.variable is not None and len(index.tensors[node.variable].shape or ()) > 1
        measured = row.grad_output
        if weights and node.type in _KINDS and measured is not None and measured.norm:
            yield node, measured


def _sent(record: Record, call: BackwardCall, node: Node) -> NodePass | None:
    """What arrived at the node that an activation sends to, if it sends to one that only it sends to."""
    index = lookup(record)
    targets = [edge.to_node for edge in index.edges_of[node.node] if edge.to_node is not None]
    rows = [row for target in targets for row in index.passes_of_node[target] if row.call == call.call]
    return rows[0] if len(rows) == 1 else None


def _finding(record: Record, site: int, one: _Seen) -> Finding:
    row = site_of(record, site)
    name = row.targets[0] if row.targets else one.kind
    value = value_of(statement(record, row))
    start = extreme_start(record, sorted(leaves_behind(record, one.node)), one.flat[0].moment_before)
    advice = "Scale the inputs to mean 0 and deviation 1, or put a norm before it."
    if start is not None:
        advice = f"This statement gives `{called(record, start.tensor)}` its values: start it with a smaller scale."
    return told(
        record,
        RULE,
        site if start is None else start.site,
        (
            f"`{name}`: the {one.kind} is flat for {100 * one.share:.0f} % of its elements in all calls.",
            f"It sends {one.sent:.1g} of the gradient it gets (limit {threshold(RULE, 'sent'):g}).",
            advice,
        ),
        binding=name,
        moments=[call.moment_before for call in one.flat],
        region=None if value is None or start is not None else region_in(record, row.source, value),
        related=() if start is None else ((f"the {one.kind} is flat here", site),),
        evidence={"flat": round(one.share, 4), "sent": one.sent, "calls": len(one.flat)},
        calls=[call.call for call in one.flat],
    )
