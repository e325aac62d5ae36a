"""BP775 plateau-mode-inverted: a `ReduceLROnPlateau` waits for a falling number to rise, or for a rising one to fall.

What it finds:
    The schedule was stepped at least five times, and at no step after the first did its number improve in the sense of
    its `mode`; instead it went the other way at four of five steps, and the schedule reduced the rate. With `max` the
    number must be that of a loss: it lies above 1 and near the roots of the program's backward calls, or falls by a
    quarter or more in proportion to them. The finding stands where the schedule is built.

Why it matters:
    Every improvement counts as a bad epoch: the rate falls to nothing while training goes well.

What PyTorch does:
    `mode="max"` reduces the rate when the number has stopped rising, `mode="min"`, the default, when it has stopped
    falling. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)  # <- here
    x = torch.randn(32, 3)
    for epoch in range(8):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(loss.item())

Use instead:
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=1)
    x = torch.randn(32, 3)
    for epoch in range(8):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step(loss.item())

Near miss: an accuracy that does not rise
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    for accuracy in (0.5, 0.45, 0.4, 0.45, 0.4, 0.4):
        optimizer.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()
        schedule.step(accuracy)

Near miss: a percentage of hits that gets a little worse while the loss falls
    import torch
    from torch import nn

    torch.manual_seed(0)
    model, x = nn.Linear(3, 2), torch.randn(64, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    for percent in (52.3, 51.1, 50.2, 49.8, 49.1, 48.7):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()).backward()
        optimizer.step()
        schedule.step(percent)

Near miss: a loss that diverges
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
    for loss in (1.5, 1.6, 1.8, 2.0, 2.2, 2.6):
        optimizer.zero_grad()
        model(torch.randn(8, 3)).pow(2).mean().backward()
        optimizer.step()
        schedule.step(loss)

Near miss: an accuracy that is at its best from the start
    import torch
    from torch import nn

    torch.manual_seed(0)
    model, x = nn.Linear(3, 1), torch.randn(32, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=1)
    for epoch in range(8):
        optimizer.zero_grad()
        (model(x) - x.sum(1, keepdim=True)).pow(2).mean().backward()
        optimizer.step()
        schedule.step(1.0)

Blind spots:
    An accuracy that is given to `mode="min"` is seen only where it rises from step to step and stays within 0 and 1.

Source:
    torch.optim.lr_scheduler.ReduceLROnPlateau in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_curves import curves
from backprobe.rules.analysis.optimizers.schedules import Built, built_schedules, events_of
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="plateau-mode-inverted",
    code="BP775",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("optimizer", "call", "backward", "stats"),
)

LEAST: Final = 5
"""Numbers that the schedule was given."""
_FALLEN: Final = 0.75
"""Share of its first value that a loss is down to; an accuracy that gets worse seldom loses a quarter."""
_NEAR: Final = 0.4
"""By how much the quotient of a loss and the root of that time may differ from the middle one, as a share."""

_STEP: Final = "torch.optim.lr_scheduler.ReduceLROnPlateau.step"


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule."""
    for one in built_schedules(record):
        alone = sum(other.optimizer == one.optimizer for other in built_schedules(record)) == 1
        if one.cls == "ReduceLROnPlateau" and alone:
            numbers = _numbers(record, one)
            best = "max" in str(one.given.get("mode", "min"))
            if len(numbers) >= LEAST and _is_inverted(record, one, numbers, is_max=best):
                yield _finding(record, one, numbers, is_max=best)


def _numbers(record: Record, one: Built) -> list[float]:
    rows = [row for row in record.watched_calls if row.function == _STEP]
    given = [row.arguments.get("metrics") for row in rows if row.arguments.get("optimizer") == one.optimizer]
    return [float(number) for number in given if isinstance(number, int | float)]


def _is_inverted(record: Record, one: Built, numbers: list[float], *, is_max: bool) -> bool:
    """None was better than the first, nearly all were better in the other sense, and the rate was reduced."""
    sign = 1 if is_max else -1
    better = any(sign * (number - numbers[0]) > 0 for number in numbers[1:])
    other_way = sum(sign * (after - before) < 0 for before, after in pairwise(numbers))
    if better or 5 * other_way < 4 * (len(numbers) - 1) or not _was_reduced(record, one):
        return False
    return _is_loss(record, one, numbers) if is_max else _is_share(record, numbers)


def _was_reduced(record: Record, one: Built) -> bool:
    rates = [row.learning_rates for row in events_of(record, one.optimizer, "scheduler_step") if row.learning_rates]
    return len(rates) > 1 and min(rates[-1]) < max(rates[0])


def _is_loss(record: Record, one: Built, numbers: list[float]) -> bool:
    """It is no share of hits, nor a percentage: it follows the roots of that time.

    It lies above 1 and is about what they are, or falls by a quarter in proportion to them.
    """
    moved = [row.moment for row in events_of(record, one.optimizer, "scheduler_step")]
    pairs = [(number, _root_before(record, moment)) for number, moment in zip(numbers, moved, strict=False)]
    ratios = sorted(number / root for number, root in pairs if root)
    if min(numbers) > 1 and 5 * sum(abs(ratio - 1) <= _NEAR for ratio in ratios) >= 4 * len(numbers):
        return True
    if numbers[-1] > _FALLEN * numbers[0] or len(ratios) < LEAST:
        return False
    middle = ratios[len(ratios) // 2]
    near = [ratio for ratio in ratios if abs(ratio - middle) <= _NEAR * abs(middle)]
    return middle > 0 and 5 * len(near) >= 4 * len(ratios)


def _root_before(record: Record, moment: int) -> float | None:
    """What the last backward call before a moment began from."""
    rows = [
        (call.moment_before, loss)
        for curve in curves(record)
        for call, loss in zip(curve.calls, curve.losses, strict=True)
        if call.moment_before < moment and math.isfinite(loss)
    ]
    return max(rows)[1] if rows else None


def _is_share(record: Record, numbers: list[float]) -> bool:
    """A share of hits that rises while the loss falls."""
    roots = _roots(record)
    return all(0 <= number <= 1 for number in numbers) and len(roots) > 1 and roots[-1] < 0.9 * roots[0]


def _roots(record: Record) -> list[float]:
    """What the backward calls of the program began from."""
    return [loss for curve in curves(record) for loss in curve.losses if math.isfinite(loss)]


def _finding(record: Record, one: Built, numbers: list[float], *, is_max: bool) -> Finding:
    who, targets = optimizer_name(record, one.optimizer), site_of(record, one.site).targets
    name = targets[0] if targets else "the schedule"
    mode, way, other = ("max", "falls", "min") if is_max else ("min", "rises", "max")
    moved = events_of(record, one.optimizer, "scheduler_step")
    rate = moved[-1].learning_rates[0] if moved[-1].learning_rates else 0.0
    return told(
        record,
        RULE,
        one.site,
        (
            f'`{name}` has mode "{mode}", and its number {way}: {numbers[0]:.3g} to {numbers[-1]:.3g}.',
            f"Each improvement counts as a bad epoch: the rate of `{who}` is down to {rate:.2g}.",
            f'Say `mode="{other}"`, or give it the number that the mode is meant for.',
        ),
        binding=name,
        moments=[row.moment for row in moved],
        related=(("it is stepped here", moved[0].site if moved[0].site != one.site else None),),
        evidence={"mode": mode, "first": numbers[0], "last": numbers[-1], "numbers": len(numbers), "rate": rate},
        optimizers=(one.optimizer,),
    )
