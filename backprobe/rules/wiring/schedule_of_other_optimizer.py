"""BP774 schedule-of-other-optimizer: one optimizer has two schedules of a kind, and another optimizer has none.

What it finds:
    Two schedules of one class are built for the same optimizer by different statements, both are stepped, and another
    optimizer that steps as well has no schedule. The finding stands where the second one is built.

Why it matters:
    The rate of the one falls twice as fast, that of the other never.

What PyTorch does:
    A schedule changes the rates of the optimizer that it was given. Several may share one. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    one, two = nn.Linear(3, 3), nn.Linear(3, 1)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=0.1)
    decay = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
    other = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)  # <- here
    for x in torch.randn(4, 8, 3):
        first.zero_grad()
        second.zero_grad()
        two(one(x)).pow(2).mean().backward()
        first.step()
        second.step()
        decay.step()
        other.step()

Use instead:
    import torch
    from torch import nn

    one, two = nn.Linear(3, 3), nn.Linear(3, 1)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=0.1)
    decay = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
    other = torch.optim.lr_scheduler.ExponentialLR(second, 0.9)
    for x in torch.randn(4, 8, 3):
        first.zero_grad()
        second.zero_grad()
        two(one(x)).pow(2).mean().backward()
        first.step()
        second.step()
        decay.step()
        other.step()

Near miss: a warm-up and a decay of one, and a constant rate of the other
    import torch
    from torch import nn

    one, two = nn.Linear(3, 3), nn.Linear(3, 1)
    first, second = torch.optim.SGD(one.parameters(), lr=0.1), torch.optim.SGD(two.parameters(), lr=0.1)
    warm = torch.optim.lr_scheduler.LinearLR(first, start_factor=0.1, total_iters=2)
    decay = torch.optim.lr_scheduler.ExponentialLR(first, 0.9)
    for x in torch.randn(4, 8, 3):
        first.zero_grad()
        second.zero_grad()
        two(one(x)).pow(2).mean().backward()
        first.step()
        second.step()
        warm.step()
        decay.step()

Blind spots:
    A schedule that is built for the wrong one of two optimizers, with none for it otherwise, looks like a choice.

Source:
    torch.optim.lr_scheduler in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.training.schedules import Built, built_schedules, events_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="schedule-of-other-optimizer",
    code="BP774",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "call"),
)

LEAST: Final = 2
"""Steps of each optimizer: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule that is one too many."""
    built = built_schedules(record)
    having = {one.optimizer for one in built}
    without = [
        row.optimizer
        for row in record.optimizers
        if row.optimizer not in having and len(events_of(record, row.optimizer, "step")) >= LEAST
    ]
    for at, one in enumerate(built):
        twins = [other for other in built[:at] if (other.cls, other.optimizer) == (one.cls, one.optimizer)]
        mine = sum(other.optimizer == one.optimizer for other in built)
        if without and len(twins) == 1 and mine == 2 and twins[0].site != one.site:
            moved = len(events_of(record, one.optimizer, "scheduler_step"))
            steps = len(events_of(record, one.optimizer, "step"))
            if steps >= LEAST and moved >= 2 * LEAST and _are_both_stepped(record, one):
                yield _finding(record, one, twins[0], without[0])


def _are_both_stepped(record: Record, one: Built) -> bool:
    """Between two steps of the optimizer the schedules step twice, as often as they step at all."""
    moments = [row.moment for row in events_of(record, one.optimizer, "step")]
    moved = [row.moment for row in events_of(record, one.optimizer, "scheduler_step")]
    spans = zip(moments, [*moments[1:], None], strict=True)
    counts = [sum(1 for at in moved if begin <= at and (end is None or at < end)) for begin, end in spans]
    return all(count % 2 == 0 for count in counts)


def _finding(record: Record, one: Built, twin: Built, without: int) -> Finding:
    who, other = optimizer_name(record, one.optimizer), optimizer_name(record, without)
    targets = site_of(record, one.site).targets
    name = targets[0] if targets else one.cls
    return told(
        record,
        RULE,
        one.site,
        (
            f"`{name}` is a second {one.cls} for `{who}`, and `{other}` has no schedule.",
            f"The rate of `{who}` moves twice at a time, that of `{other}` never. Assumed: one schedule for each.",
            f"Build it for `{other}`.",
        ),
        binding=name,
        moments=[one.moment],
        related=(("the first one is built here", twin.site),),
        evidence={"scheduler": one.cls, "optimizer": who, "without": other},
        optimizers=(one.optimizer, without),
    )
