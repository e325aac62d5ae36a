"""BP222 zero-product: two parameters that are multiplied are both all zeros, so neither ever gets a gradient.

What it finds:
    Two trained parameters that hold nothing but zeros from the first backward call to the last step, enter one product,
    and got only zeros as gradients. The finding stands where the first of them is made, or was filled with zeros.

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

from backprobe.rules.analysis.gradients.arrivals import always_zero, came_to_leaves, is_zero
from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.training.trained_parameters import trained
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

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
    """One finding per product: of several pairs that enter it, the first."""
    zeros = frozenset(leaf for leaf in always_zero(record) & trained(record) if _stays_zero(record, leaf))
    seen: set[tuple[int, int]] = set()
    for node in record.nodes if len(zeros) > 1 else ():
        if _PRODUCT.fullmatch(node.type):
            pairs = list(_factors(record, node, zeros))
            if pairs and seen.isdisjoint(pairs):
                yield from _finding(record, node, pairs[0], sorted({leaf for pair in pairs for leaf in pair}))
            seen.update(pairs)


def _stays_zero(record: Record, leaf: int) -> bool:
    """All its elements were 0 whenever they were looked at since its first backward call, and gradients came often."""
    came = came_to_leaves(record)[leaf]
    if len(came) < LEAST:
        return False
    start = lookup(record).calls[came[0].call].moment_before
    seen = [row for row in lookup(record).snapshots_of[leaf] if row.value is not None]
    before = [n for n, row in enumerate(seen) if row.moment <= start]
    values = [row.value for row in seen[before[-1] if before else 0 :]]
    return bool(values) and all(map(is_zero, values))


def _zeroed_at(record: Record, leaf: int) -> int | None:
    """The statement that wrote the tensor last before its first backward call; else the one that made it."""
    start = lookup(record).calls[came_to_leaves(record)[leaf][0].call].moment_before
    written = [row.site for row in lookup(record).inplace_of[leaf] if row.moment <= start and row.site is not None]
    return written[-1] if written else lookup(record).tensors[leaf].site


def _factors(record: Record, node: Node, zeros: frozenset[int]) -> Iterator[tuple[int, int]]:
    """Pairs of those leaves that come to a product from two sides."""
    sides = [
        leaves_behind(record, edge.to_node) & zeros
        for edge in lookup(record).edges_of[node.node]
        if edge.to_node is not None and not (node.type.startswith(("Add", "Badd")) and edge.slot == 0)
    ]  # the first input of `addmm` and its like is added to the product
    for one, other in combinations(sides, 2):
        yield from ((min(a, b), max(a, b)) for a in sorted(one) for b in sorted(other) if a != b)


def _finding(record: Record, node: Node, pair: tuple[int, int], leaves: list[int]) -> Iterator[Finding]:
    index = lookup(record)
    first, second = (called(record, leaf) for leaf in pair)
    site = _zeroed_at(record, pair[0])
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
        related=((f"`{second}` is made here", _zeroed_at(record, pair[1])), ("multiplied here", node.site)),
        evidence={"tensors": list(pair), "node": node.type, "calls": len(calls)},
        tensors=leaves,
    )
