"""BP707 step-without-gradient: an optimizer steps while none of its parameters has a gradient.

What it finds:
    `.grad` is None in every tensor that an optimizer holds, at every one of its steps. The finding stands at the step,
    or at a statement of the program that names `backward` without calling it.

Why it matters:
    The step does nothing at all. Either the wrong optimizer steps, or no backward call reaches these parameters, or
    their gradients were returned, as `torch.autograd.grad` does, and never given to `.grad`.

What PyTorch does:
    `step` skips what has no gradient, without a word. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        grads = torch.autograd.grad(loss, list(model.parameters()))
        optimizer.step()  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = model(torch.randn(4, 3)).pow(2).mean()
        loss.backward()
        optimizer.step()

Near miss: one step before the first backward call, to please a scheduler
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.step()
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3)).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    An optimizer of which some parameters have gradients is not judged here.

Source:
    torch.optim.Optimizer.step in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.syntax import region_in
from backprobe.rules.analysis.source.uncalled_methods import named_only
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="step-without-gradient",
    code="BP707",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("optimizer",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer that never had a gradient when it stepped."""
    for optimizer in record.optimizers:
        steps = [
            event
            for event in record.optimizer_events
            if event.kind == "step" and event.optimizer == optimizer.optimizer
        ]
        lacking = [event for event in steps if event.with_grad == 0 and event.without_grad > 0 and not event.changed]
        if lacking and len(lacking) == len(steps) and lacking[0].site is not None:
            yield _finding(record, optimizer, lacking, lacking[0].site)


def _finding(record: Record, optimizer: Optimizer, steps: list[OptimizerEvent], site: int) -> Finding:
    who = optimizer_name(record, optimizer.optimizer)
    tensors = [row.tensor for row in optimizer.tensors]
    named = None if record.backward_calls else next(named_only(record, "backward"), None)
    fixes: list[Fix] = []
    advice = "Call `backward()` on a loss that depends on them first, or drop the step."
    if named is not None:
        region = region_in(record, named[0].source, named[1])
        edit = insertion(record, named[0], region.end_line, region.end_col, "()")
        fixes = [Fix(title="Call it", safety="unsafe", edits=(edit,))]
        advice = f"`{ast.unparse(named[1])}` names the method and does not call it: write `{ast.unparse(named[1])}()`."
    return told(
        record,
        RULE,
        site if named is None else named[0].site,
        (
            f"`{who}` steps, and not one of its {len(tensors)} tensors has a gradient.",
            f"`.grad` is None in {together(record, tensors)}: the step does nothing.",
            advice,
        ),
        binding=who,
        moments=[event.moment for event in steps],
        fixes=fixes,
        related=((f"`{who}` is built here", optimizer.site), ("it steps here", None if named is None else site)),
        evidence={"tensors": tensors[:16], "with_grad": 0, "steps": len(steps)},
        tensors=tensors,
        optimizers=(optimizer.optimizer,),
    )
