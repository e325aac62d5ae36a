"""BP772 scheduler-per-epoch: a schedule whose length is the number of all steps is stepped once per epoch.

What it finds:
    The length of a `OneCycleLR`, `CosineAnnealingLR`, `LinearLR` or `PolynomialLR` is, within a fiftieth, the number of
    steps that its optimizer made in the whole run, at least eight, and the schedule itself was stepped at most half as
    often. A length that is written as a plain number is not judged. The finding stands at the schedule's step.
    So it is of a `LambdaLR` whose function is made from the length of what the batches come from, if the schedule is
    stepped outside the loop over these.

Why it matters:
    The schedule hardly begins: a warm-up is never left, and the rate never falls.

What PyTorch does:
    A scheduler counts calls of its `step()`, whatever they stand for. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model, epochs, batches = nn.Linear(3, 1), 3, torch.randn(6, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(batches))
    for epoch in range(epochs):
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()  # <- here

Use instead:
    import torch
    from torch import nn

    model, epochs, batches = nn.Linear(3, 1), 3, torch.randn(6, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=epochs * len(batches))
    for epoch in range(epochs):
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Near miss: a length in epochs, stepped once per epoch
    import torch
    from torch import nn

    model, epochs = nn.Linear(3, 1), 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    for epoch in range(epochs):
        for x in torch.randn(6, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()

Near miss: a function that makes batches of its epochs
    import torch
    from torch import nn

    model, epochs, batches = nn.Linear(3, 1), 3, torch.randn(6, 8, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = epochs * len(batches)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1 - epoch * len(batches) / total)
    for epoch in range(epochs):
        for x in batches:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()

Near miss: a number that happens to be that of the steps
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    for epoch in range(2):
        for x in torch.randn(10, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()

Blind spots:
    A run that stops early has fewer steps than the schedule's length. The opposite confusion is BP768.

Source:
    "How to adjust learning rate" in the documentation of torch.optim.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedule_units import batches_counted
from backprobe.rules.analysis.optimizers.schedules import Built, argument_of, built_schedules, events_of
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backprobe.record import OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scheduler-per-epoch",
    code="BP772",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "call"),
)

LEAST: Final = 8
"""Steps of the optimizer: fewer could be the length of anything."""

_LENGTHS: Final = {
    "OneCycleLR": ("total_steps", 2),
    "CosineAnnealingLR": ("T_max", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
}
"""Class -> the attribute that is its length, and the place of that argument."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule."""
    if record.end is None or record.end.exit_code != 0:
        return
    built = built_schedules(record)
    for one in built:
        if sum(other.optimizer == one.optimizer for other in built) == 1:
            found = _judged(record, one) if one.cls in _LENGTHS else _judged_function(record, one)
            if found is not None:
                yield found


def _judged(record: Record, one: Built) -> Finding | None:
    attribute, place = _LENGTHS[one.cls]
    length = one.given.get(attribute)
    steps = len(events_of(record, one.optimizer, "step"))
    moved = [row for row in events_of(record, one.optimizer, "scheduler_step") if row.cls == one.cls]
    if not isinstance(length, int) or steps < LEAST or len(moved) < 2 or 2 * len(moved) > steps:
        return None
    if 50 * abs(length - steps) > steps or isinstance(argument_of(record, one, attribute, place), ast.Constant):
        return None
    site = moved[0].site
    if site is None:
        return None
    name, who = _names(record, one, site)
    words = f"`{name}` is {length} steps long, as many as `{who}` makes in all, and is stepped {len(moved)} times."
    return _finding(record, one, moved, site, words, {"length": length, "steps": steps})


def _judged_function(record: Record, one: Built) -> Finding | None:
    """A schedule whose function is made from a count of batches, and which is stepped once for many of them."""
    steps = events_of(record, one.optimizer, "step")
    moved = [row for row in events_of(record, one.optimizer, "scheduler_step") if row.cls == one.cls]
    if one.cls != "LambdaLR" or len(steps) < LEAST or len(moved) < 2 or 2 * len(moved) > len(steps):
        return None
    site, stepped = moved[0].site, steps[0].site
    if site is None or stepped is None or {row.site for row in moved} != {site}:
        return None
    counted = batches_counted(record, one, stepped, site)
    if counted is None:
        return None
    name, count = _names(record, one, site)[0], ast.unparse(counted)
    words = f"`{name}` is made for batches, by `{count}`, and is stepped once for all of them."
    return _finding(record, one, moved, site, words, {"counted": count})


def _names(record: Record, one: Built, site: int) -> tuple[str, str]:
    """What the program calls a schedule that is stepped at this site, and its optimizer."""
    return receiver(record, site, "step") or "the schedule", optimizer_name(record, one.optimizer)


def _finding(
    record: Record,
    one: Built,
    moved: Sequence[OptimizerEvent],
    site: int,
    words: str,
    evidence: Mapping[str, int | str],
) -> Finding:
    name, who = _names(record, one, site)
    return told(
        record,
        RULE,
        site,
        (
            words,
            "It hardly leaves its beginning: the rate that training ends with is not the one that was planned.",
            f"Call `{name}.step()` after each `{who}.step()`, or build it for the epochs.",
        ),
        binding=name,
        moments=[row.moment for row in moved],
        related=((f"`{name}` is built here", one.site if one.site != site else None),),
        evidence={"scheduler": one.cls, **evidence, "scheduler_steps": len(moved)},
        optimizers=(one.optimizer,),
    )
