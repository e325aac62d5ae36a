"""BP956 finite-broken: a value or a gradient of the training is NaN or infinite.

What it finds:
    An optimizer stepped with a gradient, or left a parameter, that is NaN or infinite, and no rule explains it. The
    finding names the first such value or gradient of the run.

Why it matters:
    One value that is not finite reaches every parameter at the next step.

What PyTorch does:
    Autograd and optimizers calculate with NaN and infinities without a word. Seen in torch 2.13.

Example:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.1 if k < 3 else float("nan"))
    for _ in range(4):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()  # <- here
        schedule.step()

Use instead:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 0.1 if k < 3 else 0.01)
    for _ in range(4):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        schedule.step()

Near miss: an infinity as a mask
    import torch

    scores = torch.randn(4, requires_grad=True)
    mask = torch.tensor([True, False, False, True])
    torch.softmax(scores.masked_fill(mask, float("-inf")), dim=0)[1].backward()

Blind spots:
    Steps that were not recorded in full, and tensors without a name.

Source:
    IEEE 754; the statistics of the record count NaN and infinities exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.tensors.bad_values import is_bad
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="finite-broken",
    code="BP956",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("snapshot", "stats"),
)
EXPLAINED_BY = ("BP5",)
"""Families of rules whose findings explain a breach."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding at the first moment at which something is not finite, if a step used it."""
    index = lookup(record)
    used = _first_used(record)
    rows = [row for row in record.snapshots if used is not None and row.moment <= used and _is_bad(row)]
    if not rows:
        return
    first = min(rows, key=lambda row: row.moment)
    moment, tensor = index.moments.get(first.moment), index.tensors.get(first.tensor)
    site = None if moment is None else moment.site
    if site is None:
        site = next((event.site for event in record.optimizer_events if event.moment == first.moment), None)
    if site is None or tensor is None:
        return
    bound = index.bindings_of[first.tensor]
    name = tensor.fqn or (bound[0].name if bound else "")
    what = "gradient" if first.value is None or not first.value.nan else "value"
    yield told(
        record,
        RULE,
        site,
        (
            f"The first {what} that is not finite" + (f" is that of `{name}`." if name else " was seen here."),
            "It reaches every parameter at the next step.",
            "`--anomaly` names the operation that made it.",
        ),
        binding=name,
        moments=[first.moment],
        tensors=[first.tensor],
        evidence={"breach": what},
    )


def measure_coverage(record: Record) -> Coverage:
    """Return how many training steps were recorded with their values."""
    total = max((row.step + 1 for row in record.steps), default=0)
    checked = sum(row.sampled for row in record.steps)
    if not record.steps:
        checked = total = sum(event.kind == "step" for event in record.optimizer_events)
    return Coverage(checked=checked, total=total, unit="steps", why="" if checked else "no training step was recorded")


def _first_used(record: Record) -> int | None:
    """Return the first step that used a gradient which is not finite, or left a parameter so; None if there is none."""
    for event in record.optimizer_events:
        if event.kind == "step":
            for row in next((row.tensors for row in record.optimizers if row.optimizer == event.optimizer), ()):
                before, after = (
                    state_at(record, row.tensor, event.moment - 1),
                    state_at(record, row.tensor, event.moment),
                )
                if (before is not None and _is_bad(before)) or (after is not None and _is_bad(after)):
                    return event.moment
    return None


def _is_bad(row: Snapshot) -> bool:
    return bool(row.value and row.value.nan) or is_bad(row.grad_stats)  # an infinite value may be a mask
