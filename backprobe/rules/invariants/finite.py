"""BP956 value-not-finite: a value or a gradient of the training is NaN or infinite.

What it finds:
    The first tensor of the run that holds NaN, or the first gradient that holds NaN or an infinity, where no rule
    explains it. Steps that a GradScaler skips, and infinities that serve as masks, are left out.

Why it matters:
    One value that is not finite reaches every parameter at the next step.

Example:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        scale = torch.zeros(3) / torch.zeros(3)  # <- here
    print(scale)

Use instead:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        scale = torch.zeros(3) / torch.ones(3)
    print(scale)

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

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.checks import Coverage
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Snapshot
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="value-not-finite",
    code="BP956",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("snapshot", "stats"),
)
EXPLAINED_BY = ("BP2", "BP3", "BP4", "BP5", "BP8")
"""Families of rules whose findings explain a breach."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding at the first moment at which something is not finite."""
    index = lookup(record)
    skipped = {event.moment for event in record.optimizer_events if event.skipped or event.found_inf}
    rows = [row for row in record.snapshots if _is_bad(row)]
    if not rows or skipped:
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


def _is_bad(row: Snapshot) -> bool:
    gradient = row.grad_stats
    return bool((row.value and row.value.nan) or (gradient and (gradient.nan or gradient.inf)))
