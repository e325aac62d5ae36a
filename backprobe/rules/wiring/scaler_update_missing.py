"""BP733 scaler-update-missing: a gradient scaler steps again without an update in between.

What it finds:
    `scaler.step(optimizer)` raised, since it was called before and `scaler.update()` was not called after it. Or
    `unscale_` raised, since the turn before divided the gradients and its step was skipped in a branch that holds the
    `update()` as well: then the finding stands at that `update()`.

Why it matters:
    The program stops in the second step. The scale would never adapt: it is `update()` that lowers it after an
    overflow and raises it again later.

What PyTorch does:
    A scaler remembers per optimizer that `step` was called, until `update()`. A second `step` raises "step() has
    already been called since the last update()". Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

Near miss: one update for two optimizers
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    second = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        second.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss + second.param_groups[0]["params"][0].sum()).backward()
        scaler.step(optimizer)
        scaler.step(second)
        scaler.update()

Blind spots:
    Where an `update()` stands in a branch that did not run, a second `step` that raises is still the place.

Source:
    torch.amp.GradScaler in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.expressions import line_after
from backprobe.rules.analysis.source.naming import receiver
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.grad_scaling import update_left_out
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scaler-update-missing",
    code="BP733",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="safe",
    needs=("raised", "optimizer"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per step that raised."""
    for raised in raised_as(record, "stepped-twice"):
        first = _stepped_before(record, raised)
        if raised.site is not None and first is not None:
            yield _finding(record, raised, raised.site, first)
    for raised in raised_as(record, "unscaled-twice"):
        update = update_left_out(record, raised)
        if update is not None:
            yield _of_branch(record, raised, update)


def _of_branch(record: Record, raised: Raised, update: int) -> Finding:
    scaler = receiver(record, raised.site, "unscale_") or "the scaler"
    return told(
        record,
        RULE,
        update,
        (
            f"`{scaler}.update()` runs only where the step does; a skipped iteration has divided its gradients.",
            f"The next `{scaler}.unscale_` raises: without an update it takes them for divided already.",
            f"Call `{scaler}.update()` in every iteration, after the branch.",
        ),
        binding=scaler,
        moments=[raised.moment or 0],
        related=(("raised here", raised.site),),
        evidence={"raised": raised.message},
        level=level_of(record, raised),
    )


def _stepped_before(record: Record, raised: Raised) -> OptimizerEvent | None:
    """The last step through a scaler, with no `update()` after it."""
    before = [event for event in record.optimizer_events if raised.moment is None or event.moment <= raised.moment]
    last = next((event for event in reversed(before) if event.kind in ("scaler_step", "scaler_update")), None)
    return last if last is not None and last.kind == "scaler_step" else None


def _finding(record: Record, raised: Raised, site: int, first: OptimizerEvent) -> Finding:
    scaler = receiver(record, site, "step") or "the scaler"
    return told(
        record,
        RULE,
        site,
        (
            f"`{scaler}` steps a second time, and `{scaler}.update()` was not called after the first.",
            "It is the update that adapts the scale and readies the scaler for the next step.",
            f"Call `{scaler}.update()` once per iteration, after the last `{scaler}.step(...)`.",
        ),
        binding=scaler,
        moments=[raised.moment or 0],
        related=(("the step before it", first.site if first.site != site else None),),
        evidence={"raised": raised.message},
        fixes=_fixes(record, first.site, scaler),
        optimizers=() if first.optimizer is None else (first.optimizer,),
        level=level_of(record, raised),
    )


def _fixes(record: Record, number: int | None, scaler: str) -> Iterator[Fix]:
    if number is None:
        return
    site = site_of(record, number)
    node = statement(record, site)
    added = None if node is None else line_after(record, site, node, f"{scaler}.update()")
    if added is not None:
        yield Fix(title="Update the scaler after its step", safety="safe", edits=(added,))
