"""BP708 optimizer-rebuilt-each-step: an optimizer with a state is built anew before each step.

What it finds:
    One statement builds an optimizer over the same parameters again and again, each makes a single step, and its
    class keeps a state from step to step: all of torch's but plain SGD.

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

Near miss: one per phase
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    for rate in (0.1, 0.01, 0.001, 0.0001):
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for x in torch.randn(2, 8, 3):
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
    Whether SGD has momentum is read off the call that builds it.

Source:
    D. Kingma and J. Ba, Adam (2015), algorithm 1; torch.optim in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.training.parameter_lists import optimizer_call
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
    steps = [event for event in record.optimizer_events if event.kind == "step"]
    times = Counter(event.optimizer for event in steps)
    by_site: dict[tuple[int, frozenset[int]], list[Optimizer]] = {}
    for optimizer in record.optimizers:
        if optimizer.site is not None and times[optimizer.optimizer]:
            held = frozenset(row.tensor for row in optimizer.tensors)
            by_site.setdefault((optimizer.site, held), []).append(optimizer)
    for (site, held), found in by_site.items():
        once = all(times[optimizer.optimizer] == 1 for optimizer in found)
        if len(found) >= LEAST and once and _keeps_state(record, found[0], site):
            yield _finding(record, site, sorted(held), found, steps)


def _keeps_state(record: Record, optimizer: Optimizer, site: int) -> bool:
    """Its class has a state; of SGD, if it is given a momentum."""
    if optimizer.cls != "SGD":
        return True
    call = optimizer_call(record, site_of(record, site))
    given = None if call is None else keyword(call, "momentum")
    return given is not None and not (isinstance(given.value, ast.Constant) and not given.value.value)


def _finding(
    record: Record, site: int, held: list[int], found: list[Optimizer], steps: list[OptimizerEvent]
) -> Finding:
    first = found[0]
    who, numbers = first.binding or first.cls, {optimizer.optimizer for optimizer in found}
    step = next(event for event in steps if event.optimizer in numbers)
    return told(
        record,
        RULE,
        site,
        (
            f"`{who}` is built anew before each step: {len(found)} of them made one step each.",
            f"What {first.cls} keeps from step to step for {together(record, held)} begins at 0 every time.",
            "Build it once, before the loop; to change the rate, set `param_groups[...]['lr']` or use a scheduler.",
        ),
        binding=who,
        moments=[optimizer.moment for optimizer in found],
        related=(("it makes its only step here", step.site),),
        evidence={"optimizers": len(found), "class": first.cls, "assumed": "the steps belong to one training"},
        tensors=held,
        optimizers=sorted(numbers),
    )
