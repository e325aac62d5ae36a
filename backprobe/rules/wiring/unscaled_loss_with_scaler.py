"""BP731 unscaled-loss-with-scaler: a scaler divides gradients that it never multiplied.

What it finds:
    `scaler.step(optimizer)` is called on gradients of a loss that did not go through `scaler.scale`. The finding
    stands at that backward call.

Why it matters:
    The gradients are divided by the scale all the same, 65536 at first: the parameters hardly move, and half-
    precision gradients get no protection against underflow.

What PyTorch does:
    `scaler.step` divides every gradient of the optimizer by the scale, unless `unscale_` has done so. It cannot
    know what the loss was multiplied by. Seen in torch 2.13.

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
        penalty = model.weight.abs().sum()
        penalty.backward()  # <- here
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
        penalty = model.weight.abs().sum()
        scaler.scale(penalty).backward()
        scaler.step(optimizer)
        scaler.update()

Near miss: the scaler is switched off
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        scaler.step(optimizer)
        scaler.update()

Near miss: two losses, both scaled
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward(retain_graph=True)
        scaler.scale(loss * 2).backward()
        scaler.step(optimizer)
        scaler.update()

Blind spots:
    A loss that is multiplied by `get_scale()` by hand is found all the same. Where none is scaled at all, torch raises
    instead: the scaler has no scale yet.

Source:
    "Automatic Mixed Precision examples" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.rows.completeness import is_walked_whole
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.analysis.training.grad_scaling import scaled_calls, scaler_steps, scales
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="unscaled-loss-with-scaler",
    code="BP731",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("optimizer", "grad-life", "node"),
)

LEAST: Final = 2
"""Backward calls: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call in the program."""
    by_site: dict[int, dict[int, tuple[BackwardCall, OptimizerEvent]]] = {}
    steps = scaler_steps(record)
    moments = {(event.optimizer, event.moment): steps[event.n] for event in record.optimizer_events if event.n in steps}
    for spans in grad_spans(record).values():
        for span in spans:
            for update in span.updates:
                scaler = moments.get((update.optimizer, update.moment))
                if scaler is None or not scales(scaler):
                    continue
                for row in span.arrivals:
                    call = None if row.call is None else lookup(record).calls[row.call]
                    if call is None or call.site is None or not is_walked_whole(call):
                        continue
                    if call.call not in scaled_calls(record) and row.moment <= update.moment:
                        by_site.setdefault(call.site, {})[call.call] = (call, scaler)
    for site, found in by_site.items():
        if len(found) >= LEAST:
            yield _finding(record, site, list(found.values()))


def _finding(record: Record, site: int, found: list[tuple[BackwardCall, OptimizerEvent]]) -> Finding:
    call, divides = found[0]
    scaler = receiver(record, divides.site, "step") or "the scaler"
    who, root = optimizer_name(record, divides.optimizer), call.roots[0].name if call.roots else None
    loss = f"`{root}`" if root else "This loss"
    return told(
        record,
        RULE,
        site,
        (
            f"{loss} is not scaled, and `{scaler}.step({who})` divides its gradients by {divides.scale_before:g}.",
            "The parameters hardly move.",
            f"Call `{scaler}.scale({root or 'loss'}).backward()`.",
        ),
        binding=root or scaler,
        moments=sorted(one.moment_before for one, _step in found),
        related=(("the gradients are divided here", divides.site),),
        evidence={"scale": divides.scale_before, "backward_calls": len(found)},
        fixes=_fixes(record, site, divides),
        calls=tuple(one.call for one, _step in found),
        optimizers=() if divides.optimizer is None else (divides.optimizer,),
    )


def _fixes(record: Record, number: int, divides: OptimizerEvent) -> Iterator[Fix]:
    scaler, site = receiver(record, divides.site, "step"), site_of(record, number)
    node = statement(record, site)
    call = node.value if isinstance(node, ast.Expr) else None
    if scaler is None or divides.site is None or site_of(record, divides.site).function != site.function:
        return
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "backward":
        region = region_in(record, site.source, call.func.value)
        edit = replacement(record, site, region, f"{scaler}.scale({ast.unparse(call.func.value)})")
        yield Fix(title="Scale the loss", safety="unsafe", edits=(edit,))
