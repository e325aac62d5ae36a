"""BP954 dependence-broken: a term of the loss has no path to any parameter.

What it finds:
    An addend of a loss that was computed by the model and is the same for all parameters: it was detached, computed
    without gradients, or went through an operation whose derivative is zero everywhere. It must be seen in two steps
    at least, and it never has a gradient.

Why it matters:
    The loss shows the term, and training ignores it.

What PyTorch does:
    Adding a tensor that does not require grad is allowed and gives no gradient. `round`, `sign` and sampling have a
    derivative of zero in torch. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        mean = model(torch.randn(8, 4))
        sample = torch.normal(mean, torch.ones_like(mean))  # <- here
        loss = F.mse_loss(sample, torch.ones(8, 3)) + 0.01 * mean.pow(2).mean()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        mean = model(torch.randn(8, 4))
        sample = mean + torch.randn_like(mean)
        loss = F.mse_loss(sample, torch.ones(8, 3)) + 0.01 * mean.pow(2).mean()
        loss.backward()
        optimizer.step()

Near miss: a constant that no model computed
    import torch
    from torch import nn

    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        optimizer.zero_grad()
        loss = model(torch.randn(8, 4)).pow(2).mean() + torch.tensor(0.5)
        loss.backward()
        optimizer.step()

Blind spots:
    Terms that are combined inside a module of a library are not seen one by one.

Source:
    The operations of the record: an addend with `requires_grad=False` adds nothing to any gradient. Zero derivatives:
    torch's derivatives.yaml for round, floor, ceil, trunc, sign, heaviside, bernoulli and normal.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.invariants.checks import Coverage
from backprobe.rules.analysis.invariants.constant_terms import constant_addends, origin_of, zero_derivatives
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="dependence-broken",
    code="BP954",
    since="0.1",
    severity="note",
    confidence="likely",
    fix="manual",
    needs=("backward", "node"),
)
EXPLAINED_BY = ("BP2", "BP3", "BP5", "BP6", "BP8")
"""Families of rules whose findings explain a breach."""


def check(record: Record) -> Iterator[Finding]:
    """Yield a finding for each constant addend, and for each operation with a zero derivative on the way to a leaf."""
    for rows in constant_addends(record).values():
        term = origin_of(record, rows[0].term)
        moments = sorted({row.term.moment or 0 for row in rows})
        yield told(
            record,
            RULE,
            term.statement,
            (
                f"`{term.function}` gives a term of the loss that has no path to any parameter: its gradient is zero.",
                "The loss shows it, and training ignores it.",
                "Remove what cuts it off, or leave the term out of the loss.",
            ),
            binding=term.function,
            moments=moments,
            evidence={"breach": "constant-addend"},
        )
    for site, moments in zero_derivatives(record).items():
        yield told(
            record,
            RULE,
            site,
            (
                "The derivative of this operation is zero everywhere, so nothing before it gets a gradient.",
                "Training ignores all that goes through it.",
                "Use a relaxation or a straight-through estimator.",
            ),
            binding="",
            moments=moments,
            evidence={"breach": "zero-derivative"},
        )


def measure_coverage(record: Record) -> Coverage:
    """Return how many backward calls that store gradients were walked."""
    calls = [call for call in record.backward_calls if call.accumulate_grad]
    walked = sum(not call.truncated and call.nodes_met > 0 for call in calls)
    why = "no backward call stored gradients" if not calls else "" if walked else "no backward call was walked"
    return Coverage(checked=walked, total=len(calls), unit="backward calls", why=why)
