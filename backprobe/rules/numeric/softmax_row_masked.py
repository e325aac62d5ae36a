"""BP504 softmax-row-masked: a row of a softmax is `-inf` throughout, so it is NaN.

What it finds:
    The first NaN of a run comes out of a softmax whose input has no NaN, only `-inf` where a mask is closed. The
    finding stands at the statement that masks.

Why it matters:
    One sequence that is nothing but padding makes every parameter NaN at the next step.

What PyTorch does:
    A softmax over `-inf` only is 0 / 0. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    score = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(score.parameters(), lr=0.1)
    lengths = torch.tensor([3, 0])
    padding = torch.arange(3)[None] >= lengths[:, None]
    for _ in range(2):
        x = torch.randn(2, 3, 4)
        scores = score(x).squeeze(2).masked_fill(padding, float("-inf"))  # <- here
        weights = scores.softmax(1)
        loss = (weights[..., None] * x).sum(1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    score = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(score.parameters(), lr=0.1)
    lengths = torch.tensor([3, 0])
    padding = torch.arange(3)[None] >= lengths[:, None]
    for _ in range(2):
        x = torch.randn(2, 3, 4)
        scores = score(x).squeeze(2).masked_fill(padding, -1e9)
        weights = scores.softmax(1)
        loss = (weights[..., None] * x).sum(1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: each row keeps an entry
    import torch
    from torch import nn

    score = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(score.parameters(), lr=0.1)
    lengths = torch.tensor([3, 1])
    padding = torch.arange(3)[None] >= lengths[:, None]
    for _ in range(2):
        x = torch.randn(2, 3, 4)
        scores = score(x).squeeze(2).masked_fill(padding, float("-inf"))
        weights = scores.softmax(1)
        loss = (weights[..., None] * x).sum(1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A softmax inside a library's attention is told as BP501, at the statement that called it.

Source:
    torch.softmax in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.birth_findings import births_of, name_of, told_birth
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="softmax-row-masked",
    code="BP504",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("stats", "node", "backward", "parents", "grad-life"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding at most: what comes after the first is its consequence."""
    for birth in births_of(record, "softmax"):
        targets = () if birth.seen_at is None else site_of(record, birth.seen_at).targets
        row = f"such a row, `{targets[0]}`, is NaN." if targets else "such a row is NaN."
        yield told_birth(
            record,
            RULE,
            birth,
            f"`{name_of(record, birth)}` has a row of nothing but `-inf`, and the softmax of {row}",
            "Fill with a large finite number (-1e9), keep one entry of each row open, or leave such rows out.",
        )
