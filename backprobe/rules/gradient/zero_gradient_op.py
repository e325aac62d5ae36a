"""BP220 zero-gradient-op: an operation whose derivative is zero everywhere stands between the loss and what is trained.

What it finds:
    `sign`, `round`, `floor`, `ceil`, `trunc`, `bernoulli` or `normal` got a gradient in the backward calls and sent on
    zeros, and no trained parameter behind it ever got anything else. The finding stands at that operation.

Why it matters:
    Nothing raises, and `.grad` is not None: it is a tensor of zeros. The optimizer steps, and what lies behind the
    operation stays as it was made.

What PyTorch does:
    These functions are flat between their jumps, and torch gives them the derivative 0, not an error; so it does to the
    mean and deviation of what `normal` draws. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(12, 6), nn.Linear(6, 12)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        rows = torch.randn(40, 12)
        bits = torch.sign(encoder(rows))  # <- here
        loss = (decoder(bits) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(12, 6), nn.Linear(6, 12)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for _ in range(3):
        rows = torch.randn(40, 12)
        hidden = encoder(rows)
        bits = hidden + (torch.sign(hidden) - hidden).detach()
        loss = (decoder(bits) - rows).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: what is rounded is not trained
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        rows = torch.rand(8, 4).mul(10).round()
        optimizer.zero_grad()
        layer(rows).square().mean().backward()
        optimizer.step()

Near miss: the fraction behind the floor has a gradient
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        place = layer(torch.rand(8, 4))
        optimizer.zero_grad()
        (place - place.floor()).square().mean().backward()
        optimizer.step()

Near miss: a rounded value is only counted
    import torch
    from torch import nn

    layer = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        score = layer(torch.rand(8, 4)).sigmoid()
        hits = score.round().sum().item()
        optimizer.zero_grad()
        (score - 1).square().mean().backward()
        optimizer.step()

Blind spots:
    Comparisons, `argmax` and integer casts give no zeros but no gradient at all: BP606 is to see those.

Source:
    The derivatives of these functions in `derivatives.yaml` of PyTorch; observed with torch 2.13.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.arrivals import always_zero, came_to, is_nonzero
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="zero-gradient-op",
    code="BP220",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "stats", "grad-life", "optimizer"),
)

_FLAT: Final = re.compile(r"(Sign|Round|Floor|Ceil|Trunc|Bernoulli|Normal)Backward\d*")


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    flat: dict[int, list[tuple[Node, str]]] = {}
    for node in nodes_like(record, _FLAT.fullmatch):
        kind = _FLAT.fullmatch(node.type)
        if kind is not None and node.site is not None and _lost(record, node):
            flat.setdefault(node.site, []).append((node, kind[1].lower()))
    for site, some in flat.items():
        yield _finding(record, site, some)


def _lost(record: Record, node: Node) -> list[int]:
    """The trained leaves behind it that never got anything but zeros, though a gradient came to the node itself."""
    rows = came_to(record, node.node)
    if not any(is_nonzero(row.grad_output) for row in rows):
        return []
    behind = leaves_behind(record, node.node) & trained(record)
    return sorted(behind) if behind <= always_zero(record) else []


def _finding(record: Record, site: int, some: list[tuple[Node, str]]) -> Finding:
    node, kind = some[0]
    index = lookup(record)
    lost = _lost(record, node)
    made = [row.tensor for row in record.tensor_nodes if row.node == node.node]
    names = [row.name for tensor in made for row in index.bindings_of[tensor]]
    result = f"`{names[0]}`" if names else "its result"
    how = "has no derivative by what it draws from" if kind == "normal" else "is flat"
    whom = "it" if len(lost) == 1 else "them"
    calls = dict.fromkeys(row.call for one, _kind in some for row in came_to(record, one.node))
    return told(
        record,
        RULE,
        site,
        (
            f"`{kind}` {how}: the gradient that comes to {result} goes on as zeros.",
            f"Nothing else ever comes to {together(record, lost)}: no step trains {whom}.",
            "Draw it as `mean + std * torch.randn_like(std)`."
            if kind == "normal"
            else f"Let the gradient pass straight through, as in `x + (torch.{kind}(x) - x).detach()`.",
        ),
        binding=names[0] if names else kind,
        moments=[one.first_seen for one, _kind in some],
        related=[("a gradient came to it in this backward call", index.calls[next(iter(calls))].site)],
        evidence={"node": node.type, "leaves_at_zero": lost[:16], "calls": len(calls)},
        tensors=lost,
    )
