"""BP732 unscale-twice: gradients are unscaled a second time before the scaler's update.

What it finds:
    `scaler.unscale_(optimizer)` raised: the gradients of this optimizer were divided already, by an earlier
    `unscale_` or by `scaler.step`.

Why it matters:
    The program stops. Without the exception the gradients would be divided twice.

What PyTorch does:
    A scaler remembers per optimizer that `unscale_` or `step` was called, until `update()`. A second `unscale_`
    raises "unscale_() has already been called on this optimizer since the last update()" or "unscale_() is being
    called after step()". Seen in torch 2.13.

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
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.unscale_(optimizer)  # <- here
        scaler.step(optimizer)
        scaler.update()

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
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

Near miss: once for each of two optimizers
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
        scaler.unscale_(optimizer)
        scaler.unscale_(second)
        scaler.step(optimizer)
        scaler.step(second)
        scaler.update()

Blind spots:
    Where the first call was made outside the record it is not shown.

Source:
    torch.amp.GradScaler in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.source.naming import receiver
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.grad_scaling import update_left_out
from backprobe.rules.edits.statement_moves import without_line
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Raised, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="unscale-twice",
    code="BP732",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="unsafe",
    needs=("raised", "optimizer"),
)

_DIVIDES: Final = ("scaler_unscale", "scaler_step")


def check(record: Record) -> Iterator[Finding]:
    """One finding per call that raised."""
    for raised in raised_as(record, "unscaled-twice", "unscaled-too-late"):
        first = _divided_before(record, raised)
        if raised.site is not None and first is not None and update_left_out(record, raised) is None:
            yield _finding(record, raised, raised.site, first)


def _divided_before(record: Record, raised: Raised) -> OptimizerEvent | None:
    """The last event that divided the gradients, with no `update()` between."""
    before = [event for event in record.optimizer_events if raised.moment is None or event.moment <= raised.moment]
    for event in reversed(before):
        if event.kind == "scaler_update":
            return None
        if event.kind in _DIVIDES:
            return event
    return None


def _finding(record: Record, raised: Raised, site: int, first: OptimizerEvent) -> Finding:
    scaler = receiver(record, site, "unscale_") or "the scaler"
    by = "step" if first.kind == "scaler_step" else "unscale_"
    return told(
        record,
        RULE,
        site,
        (
            f"`{scaler}` has divided these gradients already, by `{by}`, since its last `update()`.",
            "Divided twice they would be too small by the scale.",
            "Call `unscale_` once per optimizer and update, before `step`.",
        ),
        binding=scaler,
        moments=[raised.moment or 0],
        related=(("they were divided here", first.site if first.site != site else None),),
        evidence={"raised": raised.message, "by": by},
        fixes=_fixes(record, site),
        optimizers=() if first.optimizer is None else (first.optimizer,),
        level=level_of(record, raised),
    )


def _fixes(record: Record, number: int) -> Iterator[Fix]:
    site = site_of(record, number)
    node = statement(record, site)
    if isinstance(node, ast.Expr):
        taken = without_line(record, site, node)
        if taken is not None:
            yield Fix(title="Leave the second call out", safety="unsafe", edits=(taken,))
