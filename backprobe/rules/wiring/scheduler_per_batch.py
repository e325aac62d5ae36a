"""BP768 scheduler-per-batch: a schedule that was meant for epochs is stepped with every batch.

What it finds:
    A schedule that steps as often as its optimizer and takes the learning rate under a ten-thousandth of its greatest
    value while at least half of all steps are still to come. Or a `StepLR` that falls several times in an epoch, by a
    count that is no more than there are epochs, to a thousandth and less. Or a `CosineAnnealingLR` whose `T_max` is the
    number of turns of the loop over epochs, and which comes to its end in the midst of the run. The finding stands at
    the schedule's step.

Why it matters:
    After a few batches the steps are too small to train anything; a cosine goes up and down through all epochs.

What PyTorch does:
    A scheduler counts calls of its `step()`, whatever they stand for. Past `T_max` the cosine rises again. Nothing is
    said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    for epoch in range(3):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    for epoch in range(3):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
        schedule.step()

Near miss: a cosine over all batches
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)
    for epoch in range(3):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Near miss: the rate falls to nothing at the end of training
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[8, 9, 10, 11], gamma=0.1)
    for x in torch.randn(12, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: a cosine that starts again, as it says
    import torch
    from torch import nn

    model, epochs = nn.Linear(3, 1), 3
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=epochs)
    for epoch in range(epochs):
        for x in torch.randn(4, 8, 3):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            schedule.step()

Blind spots:
    A schedule for batches that is stepped once per epoch hardly moves the rate, which is not judged. Nor is a decay
    that leaves more than a ten-thousandth.

Source:
    "How to adjust learning rate" in the documentation of torch.optim: schedules step once per epoch, `OneCycleLR` and
    cyclic ones with every batch. A ten-thousandth and one half: usual decays end at a thousandth, in the last third.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.schedules import built_schedules
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of, trees
from backprobe.rules.analysis.training.enclosing_loops import enclosing_loops
from backprobe.rules.analysis.training.loop_turns import turns_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scheduler-per-batch",
    code="BP768",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("optimizer",),
    thresholds={"share": 1e-4, "left": 0.5},
)

LEAST: Final = 8
"""Steps of the optimizer: fewer show no schedule."""
DECAYS: Final = frozenset({"StepLR", "MultiStepLR", "ExponentialLR", "MultiplicativeLR", "LinearLR", "PolynomialLR"})
_STEPWISE: Final = "StepLR"
COSINE: Final = "CosineAnnealingLR"
_UNITS: Final = {"MultiStepLR": "milestones"}
"""Class -> the attribute that counts epochs or steps."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per schedule."""
    for optimizer in record.optimizers:
        own = [event for event in record.optimizer_events if event.optimizer == optimizer.optimizer]
        steps = [event for event in own if event.kind == "step"]
        moved = [event for event in own if event.kind == "scheduler_step" and event.learning_rates and event.site]
        if len(steps) < LEAST or len({event.site for event in moved}) != 1 or len(moved) < len(steps) - 1:
            continue
        at = _gone(optimizer, moved, steps) if moved[0].cls in DECAYS else None
        if moved[0].cls == COSINE and _turns_with_epochs(record, moved):
            at = _turned(moved)
        if at is None and moved[0].cls in _UNITS:
            at = _over_in_the_first_epochs(record, optimizer, moved)
        if at is None and moved[0].cls == _STEPWISE:
            at = _often_in_an_epoch(record, optimizer, moved)
        if at is not None:
            yield _finding(record, optimizer, moved, steps, at)


def _gone(optimizer: Optimizer, moved: list[OptimizerEvent], steps: list[OptimizerEvent]) -> OptimizerEvent | None:
    """The step of the schedule from which on nothing is left of the rate, early enough."""
    greatest = max(
        (*optimizer.learning_rates, *(rate for event in moved for rate in event.learning_rates)), default=0.0
    )
    first = next((event for event in moved if max(event.learning_rates) < threshold(RULE, "share") * greatest), None)
    if first is None or max(moved[-1].learning_rates) >= threshold(RULE, "share") * greatest:
        return None
    after = sum(1 for step in steps if step.moment > first.moment)
    return first if after >= threshold(RULE, "left") * len(steps) else None


def _over_in_the_first_epochs(
    record: Record, optimizer: Optimizer, moved: list[OptimizerEvent]
) -> OptimizerEvent | None:
    """The step past the last milestone, where that is a number of epochs and most of the run is still to come."""
    built = [one for one in built_schedules(record) if one.optimizer == optimizer.optimizer and one.cls in _UNITS]
    loops = enclosing_loops(record, moved[0].site or 0) if len(built) == 1 else None
    given = str(built[0].given.get(_UNITS[built[0].cls], "")) if len(built) == 1 else ""
    last = max((int(one) for one in re.findall(r"\d+", given)), default=0)
    epochs = [turns for loop in loops or () if (turns := turns_of(record, loop)) is not None]
    if not loops or len(loops) < 2 or not epochs or not 0 < last <= epochs[-1] or 2 * epochs[-1] > len(moved):
        return None
    return moved[last - 1] if len(moved) >= 3 * last else None


def _often_in_an_epoch(record: Record, optimizer: Optimizer, moved: list[OptimizerEvent]) -> OptimizerEvent | None:
    """The step that leaves next to nothing, of a rate that falls several times an epoch by a count of some epochs."""
    built = [one for one in built_schedules(record) if one.optimizer == optimizer.optimizer and one.cls == _STEPWISE]
    every = built[0].given.get("step_size") if len(built) == 1 else None
    loops = enclosing_loops(record, moved[0].site or 0)
    epochs = turns_of(record, loops[1]) if loops is not None and len(loops) > 1 else None
    if not isinstance(every, int) or epochs is None or not every <= epochs or 2 * every > len(moved) / epochs:
        return None
    greatest = max((*optimizer.learning_rates, *moved[0].learning_rates))
    late = (place for place, event in enumerate(moved) if max(event.learning_rates) < LEFT * greatest)
    first = next(late, None)
    return moved[first] if first is not None and 4 * (first + 1) <= 3 * len(moved) else None


LEFT: Final = 1e-3
"""Of the rate, when a quarter of the steps is still to come: usual decays end there."""


def _turned(moved: list[OptimizerEvent]) -> OptimizerEvent | None:
    """The step at which a falling rate begins to rise; None if it never does."""
    rates = [event.learning_rates[0] for event in moved]
    pairs = zip(rates, rates[1:], moved[1:], strict=False)
    return next((event for before, after, event in pairs if after > before), None)


def _turns_with_epochs(record: Record, moved: list[OptimizerEvent]) -> bool:
    """`T_max` is what a loop around the schedule's step counts to, and that step stands deeper than the loop."""
    site = site_of(record, moved[0].site or 0)
    node, own = statement(record, site), tree_of(record, site)
    if node is None or own is None:
        return False
    beside = own.parents.get(node)
    lengths = {text for tree in trees(record).values() for text in _lengths(tree.module)}
    for tree in trees(record).values():
        for part in tree.nodes:
            if isinstance(part, ast.For) and part is not beside and _counts_to(part) in lengths:
                inner = any(one is not part and isinstance(one, ast.For | ast.While) for one in ast.walk(part))
                if inner and not _is_last_of(part, node):
                    return True
    return False


def _is_last_of(loop: ast.For, node: ast.stmt) -> bool:
    """The statement runs once in each turn of the loop: nothing but conditions lie between."""
    waiting: list[ast.stmt] = list(loop.body)
    while waiting:
        one = waiting.pop()
        if one is node:
            return True
        if isinstance(one, ast.If | ast.With):
            waiting += [*one.body, *(one.orelse if isinstance(one, ast.If) else ())]
    return False


def _lengths(module: ast.Module) -> Iterator[str]:
    """What is given as `T_max`."""
    for part in ast.walk(module):
        if isinstance(part, ast.Call) and last_name(part.func) == COSINE:
            named = [one.value for one in part.keywords if one.arg == "T_max"]
            for value in named or part.args[1:2]:
                yield ast.unparse(value)


def _counts_to(loop: ast.For) -> str | None:
    """`epochs` of `for epoch in range(epochs)`."""
    call = loop.iter
    is_range = isinstance(call, ast.Call) and last_name(call.func) in ("range", "trange") and bool(call.args)
    return ast.unparse(call.args[-1 if len(call.args) < 3 else 1]) if is_range and isinstance(call, ast.Call) else None


def _finding(
    record: Record, optimizer: Optimizer, moved: list[OptimizerEvent], steps: list[OptimizerEvent], at: OptimizerEvent
) -> Finding:
    who, name = optimizer_name(record, optimizer.optimizer), receiver(record, moved[0].site, "step") or "the schedule"
    done = sum(1 for step in steps if step.moment <= at.moment)
    rate = max(at.learning_rates)
    what = "begins to rise again" if moved[0].cls == COSINE else f"is down to {rate:.2g}"
    return told(
        record,
        RULE,
        moved[0].site or 0,
        (
            f"`{name}` steps with every batch: after {done} of {len(steps)} steps of `{who}` the learning rate {what}.",
            "Its length looks like one that counts epochs.",
            "Step it once per epoch, after the loop over the batches, or build it for all batches.",
        ),
        binding=name,
        moments=[event.moment for event in moved],
        related=((f"`{who}` is built here", optimizer.site),),
        evidence={
            "scheduler": moved[0].cls,
            "rate": rate,
            "steps_until_then": done,
            "steps": len(steps),
            "share": threshold(RULE, "share"),
            "left": threshold(RULE, "left"),
        },
        optimizers=(optimizer.optimizer,),
    )
