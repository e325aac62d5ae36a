"""BP773 scheduler-in-two-loops: one schedule is stepped by the batch and by the epoch as well.

What it finds:
    The only schedule of an optimizer is stepped by two statements in turn, of which one runs at least twice as often as
    the other. The finding stands at the one that runs less often.

Why it matters:
    It counts both: the schedule runs ahead of the one that was planned, by a step for each epoch.

What PyTorch does:
    A scheduler counts calls of its `step()`, wherever they stand. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    for epoch in range(3):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()
        schedule.step()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.99**step)
    for epoch in range(3):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Near miss: a warm-up by the batch, and then a decay by the epoch
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=8)
    decay = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    for epoch in range(4):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            if epoch < 2:
                warm.step()
        if epoch >= 2:
            decay.step()

Blind spots:
    Two schedules of one optimizer, each stepped at a place of its own, are taken for what they are.

Source:
    torch.optim.lr_scheduler in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedules import built_schedules, events_of
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scheduler-in-two-loops",
    code="BP773",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "call"),
)

LEAST: Final = 3
"""Changes from one place to the other: fewer may be a phase that ends."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule."""
    for one in built_schedules(record):
        alone = sum(other.optimizer == one.optimizer for other in built_schedules(record)) == 1
        moved = [row for row in events_of(record, one.optimizer, "scheduler_step") if row.site is not None]
        times = Counter(row.site for row in moved)
        if not alone or len(times) != 2 or one.cls == "ReduceLROnPlateau":
            continue
        (often, more), (rare, fewer) = times.most_common(2)
        changes = sum(row.site != following.site for row, following in pairwise(moved))
        if changes >= LEAST and more >= 2 * fewer and often is not None and rare is not None:
            yield _finding(record, one.optimizer, moved, often, rare)


def _finding(record: Record, optimizer: int, moved: list[OptimizerEvent], often: int, rare: int) -> Finding:
    name, who = receiver(record, rare, "step") or "the schedule", optimizer_name(record, optimizer)
    here = [row.moment for row in moved if row.site == rare]
    return told(
        record,
        RULE,
        rare,
        (
            f"`{name}` is stepped here too, {len(here)} times, between its {len(moved) - len(here)} other steps.",
            f"It counts both: the learning rate of `{who}` runs ahead of its schedule.",
            "Step it at one place: after each step of the optimizer, or once per epoch.",
        ),
        binding=name,
        moments=here,
        related=(("its other step", often),),
        evidence={"scheduler": moved[0].cls, "steps_here": len(here), "steps_there": len(moved) - len(here)},
        optimizers=(optimizer,),
    )
