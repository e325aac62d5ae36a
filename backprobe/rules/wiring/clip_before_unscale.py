"""BP721 clip-before-unscale: gradients are clipped while a gradient scaler's factor is still in them.

What it finds:
    A call of `clip_grad_norm_` or `clip_grad_value_` on gradients whose root was multiplied by a `GradScaler`, before
    the scaler's `unscale_` or `step` has divided them.

Why it matters:
    The limit is compared with a norm that is thousands of times too large, so every gradient is clipped to the limit,
    and then divided by the scale: the steps are almost nothing.

What PyTorch does:
    `scaler.scale(loss).backward()` leaves gradients times the scale (65536 at first). `scaler.unscale_(optimizer)`
    divides them once; `scaler.step(optimizer)` does so itself if that was not called. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # <- here
        scaler.step(optimizer)
        scaler.update()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

Near miss: the scaler is switched off
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()

Near miss: the limit is scaled too
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()

Blind spots:
    Scaling by hand (`(loss * 1024).backward()`) looks like any other factor and is not judged. A limit of at least the
    scale counts as scaled.

Source:
    "Gradient clipping" among the automatic mixed precision examples of PyTorch's documentation; observed with torch
    2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.gradients.clips import Clip, clips
from backprobe.rules.analysis.gradients.grad_spans import Span
from backprobe.rules.analysis.source.expressions import line_before
from backprobe.rules.analysis.source.naming import optimizer_name, receiver
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.analysis.training.grad_scaling import scaled_calls, scaler_steps, unscaled_between
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="clip-before-unscale",
    code="BP721",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("optimizer", "grad-life", "node"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that clips scaled gradients."""
    by_site: dict[int, list[tuple[Clip, OptimizerEvent, OptimizerEvent]]] = {}
    for clip in clips(record) if scaled_calls(record) else ():
        found = next((one for span in clip.spans if (one := _scaled(record, clip, span)) is not None), None)
        if found is not None:
            by_site.setdefault(clip.site, []).append((clip, *found))
    for site, found in by_site.items():
        yield _finding(record, site, found)


def _scaled(record: Record, clip: Clip, span: Span) -> tuple[OptimizerEvent, OptimizerEvent] | None:
    """The `scale` that is in a clipped gradient, and the scaler's step that divides by it later."""
    at, limit = clip.event.moment, clip.event.limit
    brought = [row for row in span.arrivals if row.moment < at]
    scale = scaled_calls(record).get(brought[-1].call) if brought and brought[-1].call is not None else None
    step = next((update for update in span.updates if update.moment > at), None)
    if scale is None or step is None or (limit is not None and limit >= (scale.scale_before or 0)):
        return None
    if unscaled_between(record, step.optimizer, brought[-1].moment, at) is not None:
        return None
    divides = next((one for one in scaler_steps(record).values() if one.moment >= step.moment), None)
    later = unscaled_between(record, step.optimizer, at, step.moment)
    return None if divides is None else (scale, later or divides)


def _finding(record: Record, site: int, found: list[tuple[Clip, OptimizerEvent, OptimizerEvent]]) -> Finding:
    clip, scale, divides = found[0]
    who, scaler = optimizer_name(record, divides.optimizer), receiver(record, scale.site, "scale") or "the scaler"
    tensors = sorted({span.tensor for span in clip.spans})
    norm = "" if clip.event.total_norm is None else f": a norm of {clip.event.total_norm:.3g}"
    limit = "" if clip.event.limit is None else f" against a limit of {clip.event.limit:g}"
    return told(
        record,
        RULE,
        site,
        (
            f"`{clip.name}` sees gradients that `{scaler}` has multiplied by {scale.scale_before:g}{norm}{limit}.",
            "They are divided only afterwards, so what is left of each step is almost nothing.",
            f"Call `{scaler}.unscale_({who})` before clipping.",
        ),
        binding=scaler,
        moments=[one.event.moment for one, _scale, _divides in found],
        related=(("the loss is scaled here", scale.site), ("the gradients are divided here", divides.site)),
        evidence={"scale": scale.scale_before, "limit": clip.event.limit, "norm": clip.event.total_norm},
        fixes=_fixes(record, site, scale, divides),
        tensors=tensors,
        optimizers=() if divides.optimizer is None else (divides.optimizer,),
    )


def _fixes(record: Record, number: int, scale: OptimizerEvent, divides: OptimizerEvent) -> Iterator[Fix]:
    scaler, site = receiver(record, scale.site, "scale"), site_of(record, number)
    node, other = statement(record, site), divides.site
    name = next((one.binding for one in record.optimizers if one.optimizer == divides.optimizer), None)
    if scaler is None or node is None or name is None or other is None or divides.kind != "scaler_step":
        return
    added = line_before(record, site, node, f"{scaler}.unscale_({name})")
    if added is not None and site_of(record, other).function == site.function:
        yield Fix(title="Unscale before clipping", safety="safe", edits=(added,))
