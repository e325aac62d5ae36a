"""BP958 leaf-broken: `.grad` is used of a tensor that autograd never stores a gradient in.

What it finds:
    A statement reads `.grad` of a tensor that is no leaf and retains no gradient, gets None, and goes on with it or
    skips what it would do with a gradient. No backward call can change that.

Why it matters:
    A test such as `if p.grad is None: continue` passes over the tensor in silence, at every step.

What PyTorch does:
    Backward calls store gradients in leaves that require grad, and in results with `retain_grad()`; nowhere else. Seen
    in torch 2.13.

Example:
    import torch

    weights = [torch.ones(3, requires_grad=True) * 0.5 for _ in range(2)]
    sum((w * w).sum() for w in weights).backward()
    for w in weights:
        gradient = w.grad  # <- here
        if gradient is not None:
            w.data -= 0.1 * gradient

Use instead:
    import torch

    weights = [torch.full((3,), 0.5, requires_grad=True) for _ in range(2)]
    sum((w * w).sum() for w in weights).backward()
    for w in weights:
        gradient = w.grad
        if gradient is not None:
            w.data -= 0.1 * gradient

Near miss: a result that retains its gradient
    import torch

    x = torch.ones(3, requires_grad=True)
    h = x * 2
    h.retain_grad()
    h.sum().backward()
    if h.grad is not None:
        print(h.grad)

Blind spots:
    Reads inside libraries, and reads that were thinned out of a long run.

Source:
    torch.Tensor.grad, torch.Tensor.is_leaf and torch.Tensor.retain_grad in PyTorch's documentation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import GradRead, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="leaf-broken",
    code="BP958",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("grad-read", "snapshot"),
)
EXPLAINED_BY = ("BP1", "BP2")
"""Families of rules whose findings explain a breach."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding for each statement that uses a `.grad` which can only be None."""
    by_site: defaultdict[int, list[GradRead]] = defaultdict(list)
    for read in record.grad_reads:
        if read.was_none and _stores_nothing(record, read):
            by_site[read.site].append(read)
    for site, reads in by_site.items():
        tested = all(read.use != "used" for read in reads)
        if tested and len({read.moment for read in reads}) < 2:
            continue
        bound = lookup(record).bindings_of[reads[0].tensor]
        name = f"`{bound[0].name}`" if bound else "a tensor"
        yield told(
            record,
            RULE,
            site,
            (
                f"`.grad` of {name} is read here and is None: {name} is not a leaf and retains no gradient.",
                "What depends on it is skipped in silence." if tested else "What is done with it does nothing.",
                "Use the leaf, or call `retain_grad()` before the backward call.",
            ),
            binding="",
            moments=sorted({read.moment for read in reads}),
            tensors=sorted({read.tensor for read in reads}),
            evidence={"breach": "tested" if tested else "used"},
        )


def measure_coverage(record: Record) -> Coverage:
    """Return how many statements read a `.grad`."""
    reads = len({read.site for read in record.grad_reads})
    return Coverage(checked=reads, total=reads, unit="`.grad` reads", why="" if reads else "nothing reads `.grad`")


def _stores_nothing(record: Record, read: GradRead) -> bool:
    state = state_at(record, read.tensor, read.moment)
    return state is not None and not state.is_leaf and not state.retains_grad and state.requires_grad
