"""BP955 integrity-broken: a gradient that was kept for later was overwritten before it was used.

What it finds:
    A statement reads a `.grad` and keeps it, more than once; a backward call in between writes new numbers into the
    same memory; and only then operations use the kept gradients. At least twice.

Why it matters:
    `p.grad` is the tensor that autograd adds to, so both names hold the newest gradient and the difference is lost.

What PyTorch does:
    A backward call adds to the tensor that `.grad` holds, in place. Whoever kept that tensor sees the sum. Seen in
    torch 2.13.

Example:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        kept = []
        for power in (2, 3):
            w.grad = None if power == 2 else w.grad
            w.pow(power).sum().backward()
            kept.append(w.grad)  # <- here
        print((kept[0] * kept[1]).sum(), (kept[0] - kept[1]).norm())

Use instead:
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        kept = []
        for power in (2, 3):
            w.grad = None if power == 2 else w.grad
            w.pow(power).sum().backward()
            kept.append(w.grad.clone())
        print((kept[0] * kept[1]).sum(), (kept[0] - kept[1]).norm())

Near miss: the gradient is used before the next backward call
    import torch

    torch.manual_seed(0)
    w = torch.ones(3, requires_grad=True)
    for _ in range(3):
        w.grad = None
        (w * w).sum().backward()
        print(w.grad.norm())
        (w * w * w).sum().backward()
        print(w.grad.norm())

Blind spots:
    Kept values that are no gradients, and uses inside libraries.

Source:
    torch.Tensor.grad in PyTorch's documentation: backward calls accumulate into it in place.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.training.steps import state_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="integrity-broken",
    code="BP955",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("grad-read", "backward"),
)
EXPLAINED_BY = ("BP2", "BP4", "BP7")
"""Families of rules whose findings explain a breach."""

_REPEATED: Final = 2
_NEAR: Final = 200
"""Moments behind the second read in which the kept gradient must be used."""

_Read = tuple[int, int | None, int]
"""Moment, version of the gradient, site."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding for each statement that keeps a gradient which is overwritten before it is used."""
    for site, moments in _overwritten(record).items():
        if len(moments) >= _REPEATED:
            yield told(
                record,
                RULE,
                site,
                (
                    "The gradient that is read here is overwritten by a later backward call before it is used.",
                    "Both names hold the newest gradient.",
                    "Keep a copy: `.grad.clone()`.",
                ),
                binding="",
                moments=moments,
                evidence={"breach": "gradient-kept"},
            )


def measure_coverage(record: Record) -> Coverage:
    """Return how many kept gradients were followed."""
    total = len(_reads(record))
    why = "" if total else "no `.grad` is kept in a variable for later"
    return Coverage(checked=total, total=total, unit="kept gradients", why=why)


@table
def _reads(record: Record) -> dict[int, list[_Read]]:
    """Return the reads of each gradient tensor that was read more than once."""
    found: defaultdict[int, list[_Read]] = defaultdict(list)
    for read in record.grad_reads:
        state = None if read.was_none else state_at(record, read.tensor, read.moment)
        if state is not None and state.grad_id is not None:
            found[state.grad_id].append((read.moment, state.grad_version, read.site))
    return {gradient: reads for gradient, reads in found.items() if len(reads) > 1}


@table
def _overwritten(record: Record) -> dict[int, list[int]]:
    found: defaultdict[int, list[int]] = defaultdict(list)
    for gradient, reads in _reads(record).items():
        uses = [row for row in record.operations if gradient in row.operands]
        for (moment, version, site), (later, version_then, other) in pairwise(reads):
            if site != other or version == version_then:
                continue
            between = [row for row in uses if moment <= (row.moment or 0) < later]
            behind = Counter(row.statement for row in uses if later <= (row.moment or 0) < later + _NEAR)
            if not between and max(behind.values(), default=0) >= _REPEATED:
                found[site].append(moment)
    return dict(found)
