"""BP774 schedule-of-other-optimizer: a schedule moves the rates of another optimizer than the one it is needed for.

What it finds:
    Two schedules of one class are built for the same optimizer by different statements, both are stepped, and another
    optimizer that steps as well has no schedule. The finding stands where the second one is built. Or a schedule goes
    on stepping for an optimizer that steps no more, while the one that took over its parameters has none: the finding
    stands where that optimizer is built. Or the optimizer of a schedule never steps at all, and another one without a
    schedule steps its parameters at a rate that never changes: the finding stands where the schedule is built.

Why it matters:
    The rate of the one falls twice as fast, that of the other never. A schedule of an optimizer that was replaced moves
    rates that nobody uses.

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

Near miss: two optimizers that share their groups, and the schedule changes no rate in this run
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    outer.param_groups = inner.param_groups
    decay = torch.optim.lr_scheduler.StepLR(outer, step_size=30)
    for x in torch.randn(4, 8, 3):
        inner.zero_grad()
        model(x).pow(2).mean().backward()
        inner.step()
        decay.step()

Near miss: two optimizers that share their groups, of which one steps
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    outer = torch.optim.SGD(model.parameters(), lr=0.1)
    outer.param_groups = inner.param_groups
    decay = torch.optim.lr_scheduler.ExponentialLR(outer, 0.9)
    for x in torch.randn(4, 8, 3):
        inner.zero_grad()
        model(x).pow(2).mean().backward()
        inner.step()
        decay.step()

Blind spots:
    A schedule that is built for the wrong one of two optimizers, with none for it otherwise, looks like a choice. Where
    both have equal rates at all steps, nothing tells that they do not share their groups.

Source:
    torch.optim.lr_scheduler in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedules import Built, built_schedules, events_of, may_share_groups
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, Record
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
    having = {schedule.optimizer for schedule in built}
    without = [
        row.optimizer
        for row in record.optimizers
        if row.optimizer not in having and len(events_of(record, row.optimizer, "step")) >= LEAST
    ]
    for schedule in built:
        heir = _heir(record, schedule, without)
        if heir is not None:
            yield _finding_of_heir(record, schedule, heir)
    for at, schedule in enumerate(built):
        twins = [other for other in built[:at] if (other.cls, other.optimizer) == (schedule.cls, schedule.optimizer)]
        mine = sum(other.optimizer == schedule.optimizer for other in built)
        lacking = [number for number in without if not may_share_groups(record, schedule.optimizer, number)]
        if lacking and len(twins) == 1 and mine == 2 and twins[0].site != schedule.site:
            moved = len(events_of(record, schedule.optimizer, "scheduler_step"))
            steps = len(events_of(record, schedule.optimizer, "step"))
            if steps >= LEAST and moved >= 2 * LEAST and _are_both_stepped(record, schedule):
                yield _finding(record, schedule, twins[0], lacking[0])


def _heir(record: Record, schedule: Built, without: list[int]) -> Optimizer | None:
    """The optimizer that steps what this schedule's own held, since that one does not, though the schedule steps.

    A schedule that sets rates once more behind the last step of all is no sign.
    """
    rows = {row.optimizer: row for row in record.optimizers}
    steps = events_of(record, schedule.optimizer, "step")
    last = steps[-1].moment if steps else -1
    moved = [row.moment for row in events_of(record, schedule.optimizer, "scheduler_step") if row.moment > last]
    held = {row.tensor for row in rows[schedule.optimizer].tensors} if schedule.optimizer in rows else set[int]()
    if len(moved) < LEAST or not held:
        return None
    for number in without:
        heir, taken = rows[number], events_of(record, number, "step")
        inherits = len(held & {row.tensor for row in heir.tensors}) * 2 > len(held)
        keeps_own_rates = len({row.learning_rates for row in taken}) == 1 and not may_share_groups(
            record, schedule.optimizer, number
        )
        if inherits and heir.site is not None and taken[0].moment > last and keeps_own_rates:
            return heir
    return None


def _finding_of_heir(record: Record, schedule: Built, heir: Optimizer) -> Finding:
    who, new = optimizer_name(record, schedule.optimizer), optimizer_name(record, heir.optimizer)
    targets = site_of(record, schedule.site).targets
    name = targets[0] if targets else schedule.cls
    moved = events_of(record, schedule.optimizer, "scheduler_step")
    ever = bool(events_of(record, schedule.optimizer, "step"))
    return told(
        record,
        RULE,
        (heir.site or 0) if ever else schedule.site,
        (
            f"This optimizer takes over the parameters of another one, and `{name}` goes on moving that one's rates."
            if ever
            else f"`{name}` moves the rates of an optimizer that never steps: another one steps its parameters.",
            f"The rate of `{new}` never moves. Assumed: the schedule is meant to " + ("go on." if ever else "move it."),
            "Build a schedule for the new optimizer too, or add a group to the old one: `add_param_group`."
            if ever
            else "Build the schedule for the optimizer that steps, after that one is made.",
        ),
        binding=new if ever else name,
        moments=[heir.moment],
        related=(
            ("the schedule is built here, for the old one", schedule.site),
            ("this optimizer steps the parameters", heir.site),
            ("it steps here", moved[-1].site),
        ),
        evidence={"scheduler": schedule.cls, "optimizer": who, "without": new, "replaced": True},
        optimizers=(schedule.optimizer, heir.optimizer),
    )


def _are_both_stepped(record: Record, schedule: Built) -> bool:
    """Between two steps of the optimizer the schedules step twice, as often as they step at all."""
    moments = [row.moment for row in events_of(record, schedule.optimizer, "step")]
    moved = [row.moment for row in events_of(record, schedule.optimizer, "scheduler_step")]
    spans = zip(moments, [*moments[1:], None], strict=True)
    counts = [sum(1 for at in moved if begin <= at and (end is None or at < end)) for begin, end in spans]
    return all(count % 2 == 0 for count in counts)


def _finding(record: Record, schedule: Built, twin: Built, without: int) -> Finding:
    who, other = optimizer_name(record, schedule.optimizer), optimizer_name(record, without)
    targets = site_of(record, schedule.site).targets
    name = targets[0] if targets else schedule.cls
    return told(
        record,
        RULE,
        schedule.site,
        (
            f"`{name}` is a second {schedule.cls} for `{who}`, and `{other}` has no schedule.",
            f"The rate of `{who}` moves twice at a time, that of `{other}` never. Assumed: one schedule for each.",
            f"Build it for `{other}`.",
        ),
        binding=name,
        moments=[schedule.moment],
        related=(("the first one is built here", twin.site),),
        evidence={"scheduler": schedule.cls, "optimizer": who, "without": other},
        optimizers=(schedule.optimizer, without),
    )
