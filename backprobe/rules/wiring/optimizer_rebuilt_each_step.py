"""BP708 optimizer-rebuilt-each-step: an optimizer with a state is built anew before each step, or in each epoch.

What it finds:
    One statement builds an optimizer over the same parameters three times or more, and its class keeps a state from
    step to step: all of torch's but plain SGD. Each makes a single step; or the steps of one pass over the data, in a
    loop inside of the one that builds them; or the few steps of a function that a loop calls again and again. Nothing
    but their steps writes the parameters. The finding stands where it is built; of a function that only builds it,
    where it is called beside the steps.

Why it matters:
    The state is what makes the method. Adam's averages start at 0 each time, so every step has the size of the
    rate, whatever the gradient; momentum never builds up.

What PyTorch does:
    An optimizer's state is made in its first step and lives in the optimizer. A new one knows nothing of the old.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for x in torch.randn(4, 8, 3):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)  # <- here
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: one per phase of several epochs
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    data = torch.randn(2, 8, 3)
    for rate in (0.1, 0.01, 0.001, 0.0001):
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for epoch in range(2):
            for x in data:
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()
                optimizer.step()

Near miss: one per task
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for task in torch.randn(4, 2, 8, 3):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        for x in task:
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()

Near miss: plain SGD keeps no state
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for x in torch.randn(4, 8, 3):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

Near miss: a new model each time
    import torch
    from torch import nn

    for x in torch.randn(4, 8, 3):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        model(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Whether SGD has momentum is read off the call that builds it. Optimizers of several steps are taken for phases
    where they step in a loop of a plain `range`, unless they are few in a function that is called over and over; where
    a function on the way is called from two places, and where the program writes the parameters between.

Source:
    D. Kingma and J. Ba, Adam (2015), algorithm 1; torch.optim in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.parameter_lists import optimizer_call
from backprobe.rules.analysis.optimizers.rebuilt_optimizers import (
    is_once_an_epoch,
    is_once_an_update,
    place_of_rebuild,
)
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="optimizer-rebuilt-each-step",
    code="BP708",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer",),
)

LEAST: Final = 3
"""Optimizers of one statement that made a step: phases, folds and tasks are few, or have more steps."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that builds them."""
    steps: dict[int, list[OptimizerEvent]] = {}
    for event in record.optimizer_events:
        if event.kind == "step" and event.optimizer is not None:
            steps.setdefault(event.optimizer, []).append(event)
    by_site: dict[tuple[int, frozenset[int]], list[Optimizer]] = {}
    for optimizer in record.optimizers:
        if optimizer.site is not None and optimizer.optimizer in steps:
            held = frozenset(row.tensor for row in optimizer.tensors)
            by_site.setdefault((optimizer.site, held), []).append(optimizer)
    for (site, held), found in by_site.items():
        if len(found) < LEAST or not _keeps_state(record, found[0], site):
            continue
        if (
            all(len(steps[optimizer.optimizer]) == 1 for optimizer in found)
            or is_once_an_epoch(record, found, steps)
            or is_once_an_update(record, found, steps)
        ):
            yield _finding(record, site, sorted(held), found, steps)


def _keeps_state(record: Record, optimizer: Optimizer, site: int) -> bool:
    """Its class has a state; of SGD, if it is given a momentum."""
    if optimizer.cls != "SGD":
        return True
    call = optimizer_call(record, site_of(record, site))
    given = None if call is None else keyword(call, "momentum")
    return given is not None and not (isinstance(given.value, ast.Constant) and not given.value.value)


def _finding(
    record: Record, site: int, held: list[int], found: list[Optimizer], steps: dict[int, list[OptimizerEvent]]
) -> Finding:
    first = found[0]
    who, made = first.binding or first.cls, sum(len(steps[optimizer.optimizer]) for optimizer in found)
    once = made == len(found)
    said = (
        f"before each step: {len(found)} of them made one step each" if once else f"{len(found)} times in {made} steps"
    )
    step = steps[first.optimizer][0].site
    place = site if step is None else place_of_rebuild(record, site, step)
    return told(
        record,
        RULE,
        place,
        (
            f"`{who}` is built again {said}.",
            f"What {first.cls} keeps from step to step for {together(record, held)} begins at 0 every time.",
            "Build it once, before the loop; to change the rate, set `param_groups[...]['lr']` or use a scheduler.",
        ),
        binding=who,
        moments=[optimizer.moment for optimizer in found],
        related=(
            ("it makes its only step here" if once else "it steps here", step),
            ("this builds it", None if place == site else site),
        ),
        evidence={"optimizers": len(found), "class": first.cls, "assumed": "the steps belong to one training"},
        tensors=held,
        optimizers=sorted(optimizer.optimizer for optimizer in found),
    )
