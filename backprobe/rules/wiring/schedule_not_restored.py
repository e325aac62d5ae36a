"""BP777 schedule-not-restored: an optimizer loads its state, and its schedule begins anew.

What it finds:
    An optimizer that has made no step yet loads a state and goes on training. A schedule was built for it from its
    beginning, is stepped from then on, and no schedule of the program ever loads a state. The finding stands where the
    optimizer loads.

Why it matters:
    The resumed run goes through the warm-up again, or decays too late: its rates are not those of one long run.

What PyTorch does:
    The state of an optimizer holds the rates of that moment. How far the schedule has come stands in the schedule's own
    `state_dict()`. Seen in torch 2.13.

Example:
    import copy
    import torch
    from torch import nn

    def begin(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)

    def train(model, optimizer, schedule):
        for x in torch.randn(3, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

    model = nn.Linear(3, 1)
    optimizer, schedule = begin(model)
    train(model, optimizer, schedule)
    kept = copy.deepcopy({"model": model.state_dict(), "optimizer": optimizer.state_dict()})
    model = nn.Linear(3, 1)
    optimizer, schedule = begin(model)
    model.load_state_dict(kept["model"])
    optimizer.load_state_dict(kept["optimizer"])  # <- here
    train(model, optimizer, schedule)

Use instead:
    import copy
    import torch
    from torch import nn

    def begin(model):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)

    def train(model, optimizer, schedule):
        for x in torch.randn(3, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

    model = nn.Linear(3, 1)
    optimizer, schedule = begin(model)
    train(model, optimizer, schedule)
    kept = copy.deepcopy([model.state_dict(), optimizer.state_dict(), schedule.state_dict()])
    model = nn.Linear(3, 1)
    optimizer, schedule = begin(model)
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    schedule.load_state_dict(kept[2])
    train(model, optimizer, schedule)

Near miss: the schedule is told where it stands
    import copy
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()
    kept = copy.deepcopy(optimizer.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.load_state_dict(kept)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.9**step, last_epoch=2)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: the first phase had no schedule
    import torch
    from torch import nn

    model = nn.Linear(3, 1)

    def run(optimizer, schedule=None):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            if schedule is not None:
                schedule.step()

    first = torch.optim.Adam(model.parameters(), lr=1e-3)
    run(first)
    second = torch.optim.Adam(model.parameters(), lr=1e-3)
    second.load_state_dict(first.state_dict())
    run(second, torch.optim.lr_scheduler.CosineAnnealingLR(second, T_max=4))

Blind spots:
    A schedule that is meant to begin anew with an old optimizer's moments looks the same. One that is stepped forward
    before the first step of the optimizer is taken for restored.

Source:
    "Saving and loading a general checkpoint" in PyTorch's tutorials; torch.optim.lr_scheduler in the documentation.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedules import Built, built_schedules, events_of
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import site_of, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="schedule-not-restored",
    code="BP777",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer", "call"),
)

LEAST: Final = 2
"""Steps of the optimizer and of the schedule after the load."""

_PLACELESS: Final = frozenset({"ReduceLROnPlateau", "ExponentialLR"})
"""Schedules that go on from the loaded rate alone, or that wait for a number."""
_BY_FUNCTION: Final = frozenset({"LambdaLR"})
"""Schedules whose rates the program computes from a count."""
_COUNTS: Final = frozenset({"last_epoch", "_step_count"})
"""Attributes of a schedule that say how far it has come."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    if any(
        row.function.startswith("torch.optim.lr_scheduler.") and row.function.endswith(".load_state_dict")
        for row in record.watched_calls
    ):
        return
    if _counts_are_set(record):
        return
    for optimizer in record.optimizers:
        number = optimizer.optimizer
        built = [one for one in built_schedules(record) if one.optimizer == number and one.cls not in _PLACELESS]
        loads = events_of(record, number, "load_state_dict")
        if not built or not loads or loads[0].site is None or not _is_one_run(record, number, built, loads[0].moment):
            continue
        if _begins_anew(record, number, built, loads[0]):
            yield _finding(record, number, built[-1], loads[0], loads[0].site)


def _counts_are_set(record: Record) -> bool:
    """The program writes how far a schedule has come: `schedule.last_epoch = start`."""
    nodes = (node for tree in trees(record).values() for node in tree.nodes)
    written = (one for node in nodes if isinstance(node, ast.Assign) for one in node.targets)
    return any(isinstance(one, ast.Attribute) and one.attr in _COUNTS for one in written)


def _is_one_run(record: Record, optimizer: int, built: list[Built], moment: int) -> bool:
    """Of the optimizers that stepped before, if any, one had a schedule of the class, at another place by its rates.

    Where none had, a second phase has a schedule of its own. Where a function of the program counts from the place
    at which the first run ended, the rates are not those with which that one began.
    """
    before = {row.optimizer for row in record.optimizer_events if row.kind == "step" and row.moment < moment}
    classes = {one.cls for one in built}
    same = [one for one in built_schedules(record) if one.optimizer in before and one.cls in classes]
    if not before:
        return True
    if classes <= _BY_FUNCTION and same:
        began = _first_rates(record, optimizer)
        return any(_first_rates(record, one.optimizer) == began for one in same)
    return bool(same)


def _first_rates(record: Record, optimizer: int) -> tuple[float, ...]:
    """The rates after the first step of its schedule."""
    rows = events_of(record, optimizer, "scheduler_step")
    return tuple(round(rate, 12) for rate in rows[0].learning_rates) if rows else ()


def _begins_anew(record: Record, optimizer: int, built: list[Built], load: OptimizerEvent) -> bool:
    """Neither had made a step; both step from now on, the optimizer first."""
    steps = [row.moment for row in events_of(record, optimizer, "step")]
    moved = [row.moment for row in events_of(record, optimizer, "scheduler_step")]
    if min(len(steps), len(moved)) < LEAST or min(steps[0], moved[0]) < load.moment or moved[0] < steps[0]:
        return False
    return all(one.given.get("last_epoch", -1) == -1 for one in built)


def _finding(record: Record, optimizer: int, built: Built, load: OptimizerEvent, site: int) -> Finding:
    who, targets = optimizer_name(record, optimizer), site_of(record, built.site).targets
    name = targets[0] if targets else "schedule"
    moved = events_of(record, optimizer, "scheduler_step")
    rates = [row.learning_rates[0] for row in (load, moved[0]) if row.learning_rates]
    went = f": its rate is {rates[0]:.3g} as loaded, {rates[1]:.3g} after its first step" if len(rates) == 2 else ""
    return told(
        record,
        RULE,
        site,
        (
            f"`{who}` loads its state here, and `{name}` is not loaded, so it starts over{went}.",
            "How far a schedule has come is no part of the optimizer's state. Assumed: training is resumed.",
            f"Save `{name}.state_dict()` beside it, and load it here.",
        ),
        binding=name,
        moments=[load.moment],
        related=(("the schedule is built here", built.site if built.site != site else None),),
        evidence={
            "scheduler": built.cls,
            "scheduler_steps": len(moved),
            "rates": ", ".join(f"{rate:.4g}" for rate in rates),
        },
        optimizers=(optimizer,),
    )
