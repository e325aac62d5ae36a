"""BP730 scaled-gradient-stepped: an optimizer steps on gradients that a scaler has multiplied.

What it finds:
    The root of a backward call was multiplied by a `GradScaler`, and the optimizer steps itself, without
    `scaler.step` and without `unscale_` before.

Why it matters:
    Each step is as many times too long as the scale says: 65536 times at first. Adam hides it, since it divides by
    the size of the gradients; SGD diverges. Infinite gradients are not skipped either.

What PyTorch does:
    `scaler.step(optimizer)` divides the gradients by the scale and leaves the step out if one is not finite.
    `optimizer.step()` takes them as they are. Seen in torch 2.13.

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
        optimizer.step()  # <- here

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

Near miss: unscaled by hand before
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
        optimizer.step()
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
        scaler.scale(loss).backward()
        optimizer.step()

Blind spots:
    Scaling by hand looks like any other factor and is not judged.

Source:
    "Automatic Mixed Precision examples" in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.source.expressions import line_after, replacement
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, tree_of
from backprobe.rules.analysis.training.grad_scaling import scaled_calls, scaler_steps, unscaled_between
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="scaled-gradient-stepped",
    code="BP730",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("optimizer", "grad-life", "node"),
)

LEAST: Final = 2
"""Steps: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that steps on scaled gradients."""
    by_site: dict[int, list[tuple[OptimizerEvent, OptimizerEvent]]] = {}
    for event in record.optimizer_events if scaled_calls(record) else ():
        if event.kind == "step" and event.n not in scaler_steps(record) and event.site is not None:
            scale = _scale_in(record, event)
            if scale is not None:
                by_site.setdefault(event.site, []).append((event, scale))
    for site, found in by_site.items():
        if len(found) >= LEAST:
            yield _finding(record, site, found)


def _scale_in(record: Record, step: OptimizerEvent) -> OptimizerEvent | None:
    """The `scale` that is still in a gradient which this step uses."""
    for spans in grad_spans(record).values():
        for span in spans:
            if any(one.moment == step.moment and one.optimizer == step.optimizer for one in span.updates):
                brought = [row for row in span.arrivals if row.moment <= step.moment]
                scale = scaled_calls(record).get(brought[-1].call) if brought and brought[-1].call is not None else None
                if scale is not None:
                    known = unscaled_between(record, step.optimizer, brought[-1].moment, step.moment)
                    return scale if known is None else None
    return None


def _finding(record: Record, site: int, found: list[tuple[OptimizerEvent, OptimizerEvent]]) -> Finding:
    step, scale = found[0]
    who, scaler = optimizer_name(record, step.optimizer), receiver(record, scale.site, "scale") or "the scaler"
    return told(
        record,
        RULE,
        site,
        (
            f"`{who}` steps on gradients that `{scaler}` has multiplied by {scale.scale_before:g}.",
            "Nothing divides them first, so each step is as many times too long.",
            f"Call `{scaler}.step({who})` and `{scaler}.update()` in its place.",
        ),
        binding=who,
        moments=[event.moment for event, _scale in found],
        related=(("the loss is scaled here", scale.site),),
        evidence={"scale": scale.scale_before, "steps": len(found)},
        fixes=_fixes(record, site, scale),
        optimizers=() if step.optimizer is None else (step.optimizer,),
    )


def _fixes(record: Record, number: int, scale: OptimizerEvent) -> Iterator[Fix]:
    scaler, who, site = receiver(record, scale.site, "scale"), receiver(record, number, "step"), site_of(record, number)
    node = statement(record, site)
    if scaler is None or who is None or not isinstance(node, ast.Expr) or scale.site is None:
        return
    update = line_after(record, site, node, f"{scaler}.update()")
    if update is not None and site_of(record, scale.site).function == site.function:
        stepped = replacement(record, site, region_in(record, site.source, node), f"{scaler}.step({who})")
        edits = (stepped,) if _is_updated_behind(record, site, node, scaler) else (stepped, update)
        yield Fix(title="Step through the scaler", safety="unsafe", edits=edits)


def _is_updated_behind(record: Record, site: Site, step: ast.Expr, scaler: str) -> bool:
    """A later statement of the same block updates the scaler: twice in one turn raises."""
    tree = tree_of(record, site)
    block: list[ast.stmt] = getattr(None if tree is None else tree.parents.get(step), "body", [])
    behind = block[block.index(step) + 1 :] if step in block else []
    return any(ast.unparse(one) == f"{scaler}.update()" for one in behind)
