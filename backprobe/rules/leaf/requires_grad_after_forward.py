"""BP107 requires-grad-after-forward: a tensor is told to require grad after the computation that used it.

What it finds:
    A leaf is flagged by `requires_grad_()` after the statements that used it, no backward call leads to it, and its
    `.grad` is read and is None. The finding stands at the flag.

Why it matters:
    The graph was built without it; its gradient never comes.

What PyTorch does:
    Whether an operand is part of the graph is decided when the operation runs. Seen in torch 2.13.

Example:
    import torch

    weight = torch.ones(3, requires_grad=True)
    gate = torch.ones(3)
    hidden = weight * gate
    gate.requires_grad_()  # <- here
    hidden.sum().backward()
    print(gate.grad)

Use instead:
    import torch

    weight = torch.ones(3, requires_grad=True)
    gate = torch.ones(3)
    gate.requires_grad_()
    hidden = weight * gate
    hidden.sum().backward()
    print(gate.grad)

Near miss: a new forward pass follows
    import torch

    weight = torch.ones(3, requires_grad=True)
    gate = torch.ones(3)
    before = (weight * gate).sum().item()
    gate.requires_grad_()
    hidden = weight * gate
    hidden.sum().backward()
    print(before, gate.grad)

Blind spots:
    A gradient that is never read is never missed: nothing is said.

Source:
    torch.Tensor.requires_grad_ in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.cuts import derived_from
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import GradRead, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="requires-grad-after-forward",
    code="BP107",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("snapshot", "backward", "grad-read", "parents", "node"),
    explains=("grad-read-when-none",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per flag that came too late."""
    told_of: set[int] = set()
    for read in record.grad_reads:
        flagged = _flagged_at(record, read.tensor, read.moment) if read.was_none else None
        site = None if flagged is None else lookup(record).moments[flagged].site
        if flagged is None or site is None or site in told_of or not _too_late(record, read, flagged):
            continue
        told_of.add(site)
        yield _finding(record, read, flagged, site)


def _flagged_at(record: Record, tensor: int, until: int) -> int | None:
    """The moment at which a leaf was first seen to require grad, having not done so before."""
    before = False
    for state in lookup(record).snapshots_of[tensor]:
        if state.moment > until:
            break
        if before and state.is_leaf and state.requires_grad:
            return state.moment
        before = not state.requires_grad
    return None


def _too_late(record: Record, read: GradRead, flagged: int) -> bool:
    """It was used before the flag, and no backward call since leads to it."""
    index = lookup(record)
    used = any(index.tensors[tensor].moment < flagged for tensor in derived_from(record, read.tensor) - {read.tensor})
    calls = [call for call in record.backward_calls if flagged <= call.moment_before < read.moment]
    return used and bool(calls) and not any(read.tensor in reaches(record)[call.call].leaves for call in calls)


def _finding(record: Record, read: GradRead, flagged: int, site: int) -> Finding:
    index = lookup(record)
    name = called(record, read.tensor)
    uses = sorted(derived_from(record, read.tensor) - {read.tensor})
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` requires grad from here on, after the computation that used it.",
            f"That graph was built without it, so `{name}.grad` stays None.",
            "Flag it before it is used.",
        ),
        binding=name,
        moments=[flagged],
        related=(
            (f"`{name}` was used here", index.tensors[uses[0]].site if uses else None),
            ("`.grad` is read here and is None", read.site),
        ),
        evidence={"tensor": read.tensor, "requires_grad": True, "grad": None},
        tensors=[read.tensor],
    )
