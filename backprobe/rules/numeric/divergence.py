"""BP506 divergence: the loss grows step by step, past all bounds: the steps are too large.

What it finds:
    The loss of a backward statement grew by half or more three times running, and came past a thousand times its start,
    or to infinity, before any NaN was born; and it did not come back. The finding stands where the optimizer is built.

Why it matters:
    Each step overshoots further than the last one. The NaN at the end is a consequence, and clamping it away mends
    nothing.

What PyTorch does:
    It steps as it is told. On a quadratic, gradient descent diverges once the rate is above 2 over the largest
    curvature. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=25.0)  # <- here
    x = torch.randn(50, 4)
    for _ in range(12):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
    x = torch.randn(50, 4)
    for _ in range(12):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: one batch has an outlier
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-8)
    for step in range(12):
        x = torch.randn(50, 4) * (1000 if step == 5 else 1)
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a term of the loss is faded in
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(50, 4)
    for step in range(12):
        weight = 2 ** min(step, 5)
        loss = weight * (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A loss that is bounded (a cross entropy after clamping) or that falls without end is not seen. Which of rate,
    missing clearing and sign is to blame is not told; a missing clear is BP210's.

Source:
    Goodfellow, Bengio, Courville, Deep Learning, section 4.3. The factor 1e3 was measured: over 190 correct programs of
    the corpora the largest growth against the first loss is 13 times.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.losses.loss_curves import Curve, curves
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, value_of
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Optimizer, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="divergence",
    code="BP506",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("stats", "backward", "optimizer"),
    explains=("nonfinite-forward", "nonfinite-gradient", "nonfinite-masked-branch"),
    thresholds={"growth": 1e3, "factor": 1.5},
)
_RUNNING = 3
"""Steps that it must grow one after another."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward statement whose loss ran away."""
    for curve in curves(record):
        at = _ran_away(curve)
        optimizer = None if at is None else _stepping(record, curve.calls[0])
        if at is not None and optimizer is not None and optimizer.site is not None:
            yield _finding(record, curve, at, optimizer, optimizer.site)


def _ran_away(curve: Curve) -> int | None:
    """Where a curve is past all bounds after growing to there; None if it never is, or comes back."""
    start = max((abs(loss) for loss in curve.losses[:2]), default=0.0)
    bound, factor = threshold(RULE, "growth") * start, threshold(RULE, "factor")
    grown = 0
    for at, (before, loss) in enumerate(zip(curve.losses, curve.losses[1:], strict=False), 1):
        if math.isnan(loss) or start == 0 or not math.isfinite(before):
            return None
        grown = grown + 1 if loss >= factor * abs(before) else 0
        if grown >= _RUNNING and loss > bound:
            last = curve.losses[-1]
            return at if not math.isfinite(last) or last > bound else None
    return None


def _stepping(record: Record, call: BackwardCall) -> Optimizer | None:
    """The optimizer that steps next after a backward call."""
    steps = (row for row in record.optimizer_events if row.kind == "step" and row.moment > call.moment_before)
    first = next(steps, None)
    return next((one for one in record.optimizers if first is not None and one.optimizer == first.optimizer), None)


def _finding(record: Record, curve: Curve, at: int, optimizer: Optimizer, site: int) -> Finding:
    losses = ", ".join(f"{loss:.3g}" for loss in curve.losses[max(at - _RUNNING, 0) : at + 1])
    who = optimizer.binding or optimizer.cls
    rate = optimizer.learning_rates[0] if optimizer.learning_rates else None
    says = "" if rate is None else f" Its rate is {rate:g}."
    root = curve.calls[at].roots[0]
    name = root.name or "the loss"
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` runs away under `{who}`: {losses} in four steps, {curve.losses[0]:.3g} at the start.",
            f"Each step overshoots further than the one before.{says} Assumed: the loss is to fall.",
            "Lower the rate (by 10, then again), scale the inputs, or clip the gradient norm.",
        ),
        binding=who,
        moments=[curve.calls[at - 1].moment_before],
        region=_region(record, site),
        related=((f"`{name}` is walked from here", curve.site),),
        evidence={
            "first": curve.losses[0],
            "grown": curve.losses[at] if math.isfinite(curve.losses[at]) else "inf",
            "bound": threshold(RULE, "growth"),
            "steps": at,
        },
        tensors=[one.roots[0].tensor for one in curve.calls if one.roots[0].tensor is not None],
        calls=[one.call for one in curve.calls],
        optimizers=(optimizer.optimizer,),
    )


def _region(record: Record, site: int) -> Region | None:
    """The optimizer's call; of one over several lines its rate."""
    row = site_of(record, site)
    value = value_of(statement(record, row))
    if not isinstance(value, ast.Call):
        return None
    given = keyword(value, "lr")
    several = value.end_lineno != value.lineno
    return region_in(record, row.source, given if several and given is not None else value)
