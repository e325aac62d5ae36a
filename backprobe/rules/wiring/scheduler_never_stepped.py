"""BP711 scheduler-never-stepped: a learning-rate schedule is built, and the run ends without one step of it.

What it finds:
    A scheduler is built for an optimizer, the optimizer steps to the end of a run that succeeded at a rate that never
    changes, and no scheduler of that optimizer ever steps. A note where the program calls its `step` in a place that
    did not run, or hands it on.

Why it matters:
    The learning rate stays at its first value: of a warm-up, at its lowest.

What PyTorch does:
    A scheduler changes the rate in its own `step()`; the optimizer knows nothing of it. Nothing is said. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)  # <- here
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        scheduler.step()

Near miss: it steps in a branch that a short run does not reach
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)
    for step, x in enumerate(torch.randn(4, 8, 3)):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if step % 100 == 99:
            scheduler.step()

Near miss: it is part of another one that steps
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    schedule = torch.optim.lr_scheduler.SequentialLR(optimizer, [warmup, cosine], milestones=[2])
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: the program sets the rates, and asks the schedule for its numbers only
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    curve = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    for step, x in enumerate(torch.randn(4, 8, 3)):
        optimizer.param_groups[0]["lr"] = 0.1 * (1 - step / curve.T_max)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A run that was cut short is not judged. Of a scheduler that is given no name where it is built only a note is left.

Source:
    "How to adjust learning rate" in the documentation of torch.optim; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedules import Built, built_schedules, is_stepped_in_source
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import site_of, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scheduler-never-stepped",
    code="BP711",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer",),
)

LEAST: Final = 2
"""Steps of the optimizer: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule."""
    if record.end is None or record.end.exit_code != 0:
        return
    moved = {event.optimizer for event in record.optimizer_events if event.kind == "scheduler_step"}
    for optimizer in record.optimizers:
        steps = [
            event
            for event in record.optimizer_events
            if event.kind == "step" and event.optimizer == optimizer.optimizer
        ]
        if len(steps) < LEAST or optimizer.optimizer in moved or len({event.learning_rates for event in steps}) > 1:
            continue
        built = [row for row in built_schedules(record) if row.optimizer == optimizer.optimizer]
        if any(_has_stepped(record, row.cls) for row in built):
            continue
        if built and sum(event.moment > built[-1].moment for event in steps) >= LEAST:
            yield _finding(record, optimizer, built[-1], steps)  # the last one holds those before it, as a chain does


def _has_stepped(record: Record, cls: str) -> bool:
    """Return whether a `step` that the class, or a class that it is derived from, defines in the program ran."""
    index = lookup(record)
    ran = {index.sites[row.site].function for row in record.moments if row.site is not None}
    nodes = (node for tree in trees(record).values() for node in tree.nodes)
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    names = [cls]
    for name in names:
        bases = classes[name].bases if name in classes else ()
        names += [base for node in bases if (base := last_name(node)) not in names]
    return any(f".{function}".endswith(f".{name}.step") for function in ran for name in names)


def _finding(record: Record, optimizer: Optimizer, schedule: Built, steps: list[OptimizerEvent]) -> Finding:
    who, name = optimizer_name(record, optimizer.optimizer), next(iter(site_of(record, schedule.site).targets), None)
    called = schedule.cls if name is None else name
    may_step = name is None or is_stepped_in_source(record, name)
    return told(
        record,
        RULE,
        schedule.site,
        (
            f"`{called}` never steps, and `{who}` made {len(steps)} steps.",
            "The program has a place for its steps, which this run never came to."
            if name is not None and may_step
            else "A schedule changes nothing by itself.",
            f"Call `{called}.step()` after `{who}.step()`, or once per epoch.",
        ),
        binding=called,
        moments=[event.moment for event in steps],
        related=((f"`{who}` steps here", steps[-1].site),),
        evidence={
            "scheduler": schedule.cls,
            "optimizer_steps": len(steps),
            "scheduler_steps": 0,
            "assumed": "a schedule that is built is meant to be used",
        },
        optimizers=(optimizer.optimizer,),
        level="note" if may_step else None,
    )
