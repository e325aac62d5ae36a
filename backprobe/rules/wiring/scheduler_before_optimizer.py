"""BP710 scheduler-before-optimizer: in each turn the scheduler steps before the optimizer does.

What it finds:
    The first `step()` of a learning-rate scheduler comes before the first step of its optimizer, at a statement that
    runs again in later turns.

Why it matters:
    The first value of the schedule is never used: training begins with the second one, and every later change comes one
    step early.

What PyTorch does:
    A scheduler sets the first rate when it is built; each `step()` moves on to the next. Since torch 1.1 the optimizer
    is to step first. torch warns once: "Detected call of `lr_scheduler.step()` before `optimizer.step()`". Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for x in torch.randn(3, 8, 3):
        scheduler.step()  # <- here
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()

Near miss: a gradient scaler skipped the first step
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        scaler.scale(model(x).pow(2).mean() * 100).backward()
        scaler.step(optimizer)
        scaler.update(2.0)
        scheduler.step()

Near miss: the schedule is wound forward to where an earlier run ended
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    for _ in range(2):
        scheduler.step()
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()

Blind spots:
    `ReduceLROnPlateau` looks at a metric and may be asked at any time; it is not judged.

Source:
    "How to adjust learning rate" in the documentation of torch.optim; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.edits.statement_moves import moved
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scheduler-before-optimizer",
    code="BP710",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("optimizer",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer whose schedule runs ahead of it."""
    for optimizer in record.optimizers:
        events = [event for event in record.optimizer_events if event.optimizer == optimizer.optimizer]
        first = next((event for event in events if event.kind in ("step", "scaler_step")), None)
        moves = [event for event in events if event.kind == "scheduler_step" and event.cls != "ReduceLROnPlateau"]
        if first is None or not moves or moves[0].moment > first.moment or moves[0].site is None:
            continue
        again = [event for event in moves if event.site == moves[0].site]
        if again[-1].moment > first.moment:
            yield _finding(record, optimizer.optimizer, again, first, moves[0].site)


def _finding(record: Record, optimizer: int, moves: list[OptimizerEvent], first: OptimizerEvent, site: int) -> Finding:
    who, held = optimizer_name(record, optimizer), receiver(record, site, "step") or moves[0].cls or "the scheduler"
    after = () if first.site is None else moved(record, site, first.site, after=True)
    return told(
        record,
        RULE,
        site,
        (
            f"`{held}` steps before `{who}` does: the first learning rate of its schedule is never used.",
            "Each rate after it comes one step early.",
            f"Call `{held}.step()` after `{who}.step()`.",
        ),
        binding=held,
        moments=[event.moment for event in moves],
        related=((f"`{who}` steps here for the first time, after it", first.site),),
        evidence={"scheduler": moves[0].cls, "optimizer": who, "scheduler_steps": len(moves)},
        fixes=(Fix(title="Step the scheduler after the optimizer", safety="safe", edits=after),) if after else (),
        optimizers=(optimizer,),
    )
