"""BP222 zero-product: two parameters that are multiplied are both all zeros, so neither ever gets a gradient.

What it finds:
    Two trained parameters that hold nothing but zeros from the first step to the last, enter one product, and got only
    zeros as gradients. The finding stands where the first of them is made.

Why it matters:
    Nothing raises, and `.grad` is there: it is all zeros, for both, in every step. The product stays zero for ever.

What PyTorch does:
    The gradient of one factor is the other factor times what comes back. If both are zero, both gradients are. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    down = nn.Parameter(torch.zeros(6, 2))  # <- here
    up = nn.Parameter(torch.zeros(2, 6))
    optimizer = torch.optim.SGD([down, up], lr=0.1)
    for _ in range(3):
        rows = torch.randn(10, 6)
        optimizer.zero_grad()
        (rows @ down @ up - rows).square().mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    down = nn.Parameter(torch.randn(6, 2) * 0.1)
    up = nn.Parameter(torch.zeros(2, 6))
    optimizer = torch.optim.SGD([down, up], lr=0.1)
    for _ in range(3):
        rows = torch.randn(10, 6)
        optimizer.zero_grad()
        (rows @ down @ up - rows).square().mean().backward()
        optimizer.step()

Near miss: a sum of two zeros
    import torch
    from torch import nn

    one, two = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.zeros(6))
    optimizer = torch.optim.SGD([one, two], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        (one + two - 1).square().mean().backward()
        optimizer.step()

Blind spots:
    Factors that were drawn very small are not zeros. Three factors of which two are zero are told as the first two.

Source:
    The product rule; Hu et al., "LoRA" (2021), section 4.1: one factor starts at random, the other at zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Final

from backprobe.rules.arrivals import always_zero, came_to_leaves, is_zero
from backprobe.rules.lookup import lookup
from backprobe.rules.naming import called
from backprobe.rules.reach import leaves_behind
from backprobe.rules.rule import Rule
from backprobe.rules.told import told
from backprobe.rules.trained import trained

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.finding import Finding

RULE = Rule(
    name="zero-product",
    code="BP222",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "stats", "grad-life", "optimizer"),
)

_PRODUCT: Final = re.compile(r"(Mul|Mm|Bmm|Mv|Dot|Addmm|Addbmm|Baddbmm|Addcmul|Prod)Backward\d*")
LEAST: Final = 2
"""Backward calls in which both gradients were zero: the first step of a factor that starts at zero is special."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per pair."""
    zeros = frozenset(leaf for leaf in always_zero(record) & trained(record) if _stays_zero(record, leaf))
    seen: set[tuple[int, int]] = set()
    for node in record.nodes if len(zeros) > 1 else ():
        if _PRODUCT.fullmatch(node.type):
            for pair in _factors(record, node, zeros):
                if pair not in seen:
                    seen.add(pair)
                    yield from _finding(record, node, pair)


def _stays_zero(record: Record, leaf: int) -> bool:
    """All its elements were 0 whenever they were looked at, and a gradient came to it often enough."""
    index = lookup(record)
    values = [row.value for row in index.snapshots_of[leaf] if row.value is not None]
    return bool(values) and all(map(is_zero, values)) and len(came_to_leaves(record)[leaf]) >= LEAST


def _factors(record: Record, node: Node, zeros: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Pairs of those leaves that come to a product from two sides."""
    sides = [
        leaves_behind(record, edge.to_node) & zeros
        for edge in lookup(record).edges_of[node.node]
        if edge.to_node is not None
    ]
    for one, other in combinations(sides, 2):
        yield from ((min(a, b), max(a, b)) for a in sorted(one) for b in sorted(other) if a != b)


def _finding(record: Record, node: Node, pair: tuple[int, int]) -> Iterator[Finding]:
    index = lookup(record)
    first, second = (called(record, leaf) for leaf in pair)
    site = index.tensors[pair[0]].site
    if site is None:
        return
    calls = came_to_leaves(record)[pair[0]]
    yield told(
        record,
        RULE,
        site,
        (
            f"`{first}` and `{second}` are multiplied, and both are all zeros.",
            f"Each makes the other's gradient zero: in all {len(calls)} backward calls nothing else came to them.",
            "Start one of the two at random.",
        ),
        binding=first,
        moments=[index.calls[row.call].moment_before for row in calls],
        related=((f"`{second}` is made here", index.tensors[pair[1]].site), ("multiplied here", node.site)),
        evidence={"tensors": list(pair), "node": node.type, "calls": len(calls)},
        tensors=pair,
    )
