"""BP214 frozen-with-stale-gradient: a parameter was frozen with a gradient in it, and its optimizer still moves it.

What it finds:
    A parameter does not require grad any more, holds the gradient of an earlier backward call, and an optimizer step
    changed it. The finding stands where it was frozen.

Why it matters:
    Every step moves the frozen parameter along one old gradient for ever.

What PyTorch does:
    `step` looks at `.grad` alone; whether the parameter requires grad does not matter to it. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    layer, head = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    head(layer(torch.randn(4, 3))).sum().backward()
    optimizer.step()
    layer.requires_grad_(False)  # <- here
    for _ in range(3):
        head.zero_grad()
        head(layer(torch.randn(4, 3))).sum().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    layer, head = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    head(layer(torch.randn(4, 3))).sum().backward()
    optimizer.step()
    layer.requires_grad_(False)
    layer.zero_grad()
    for _ in range(3):
        head.zero_grad()
        head(layer(torch.randn(4, 3))).sum().backward()
        optimizer.step()

Near miss: frozen before the first backward call
    import torch
    from torch import nn

    layer, head = nn.Linear(3, 3), nn.Linear(3, 1)
    layer.requires_grad_(False)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        head(layer(torch.randn(4, 3))).sum().backward()
        optimizer.step()

Blind spots:
    An update by hand that reads the old gradient is not judged.

Source:
    torch.optim.SGD in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="frozen-with-stale-gradient",
    code="BP214",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("snapshot", "optimizer", "version"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per place where parameters were frozen."""
    groups: dict[int, list[InplaceEvent]] = {}
    frozen = _frozen(record)
    for event in record.inplace_events if frozen else ():
        if event.done_by != "optimizer" or event.tensor not in frozen:
            continue
        state = state_at(record, event.tensor, event.moment)
        if state is not None and not state.requires_grad and state.is_leaf and state.grad == "present":
            site = _frozen_at(record, event)
            if site is not None:
                groups.setdefault(site, []).append(event)
    for site, events in groups.items():
        yield _finding(record, site, events)


@table
def _frozen(record: Record) -> frozenset[int]:
    """The leaves that were once seen with a gradient and without the flag."""
    rows = (row for row in record.snapshots if row.grad == "present" and not row.requires_grad)
    return frozenset(row.tensor for row in rows)


def _frozen_at(record: Record, event: InplaceEvent) -> int | None:
    """The statement at which the tensor was first seen not to require grad any more."""
    required = False
    for snapshot in lookup(record).snapshots_of[event.tensor]:
        if snapshot.moment > event.moment:
            break
        if required and not snapshot.requires_grad:
            return lookup(record).moments[snapshot.moment].site
        required = snapshot.requires_grad
    return None


def _finding(record: Record, site: int, events: list[InplaceEvent]) -> Finding:
    tensors = sorted({event.tensor for event in events})
    who = optimizer_name(record, events[0].optimizer)
    return told(
        record,
        RULE,
        site,
        (
            f"Frozen here with a gradient still in it: `{who}` goes on moving {together(record, tensors)}.",
            "A step looks at `.grad` only, and the old one stays.",
            "Set `.grad = None` when freezing, or take it out of the optimizer.",
        ),
        binding=together(record, tensors).strip("`"),
        moments=sorted({event.moment for event in events}),
        related=((f"`{who}` moves it here", events[0].site),),
        evidence={"tensors": tensors[:16], "optimizer": who},
        tensors=tensors,
    )
