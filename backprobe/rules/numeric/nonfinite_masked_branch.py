"""BP503 nonfinite-masked-branch: `where` hides a bad value, and its gradient is NaN all the same.

What it finds:
    A `where` or a product with a mask leaves out elements at which the other branch has no finite derivative. The root
    is finite; the gradient of what was left out is zero times infinity. The finding stands at the operation without a
    finite derivative, which is often the same statement as the `where`.

Why it matters:
    The values are right, so the guard seems to work, and the parameters turn to NaN at the first step.

What PyTorch does:
    `where` computes both branches and sends a zero gradient into the one that was not chosen. Zero times the infinite
    derivative behind it is NaN. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    scale = nn.Parameter(torch.tensor(0.5))
    optimizer = torch.optim.SGD([scale], lr=0.01)
    amounts = torch.tensor([0.0, 2.0, 5.0])
    for _ in range(2):
        roots = torch.where(amounts > 0, (scale * amounts).sqrt(), torch.zeros(3))  # <- here
        loss = (roots - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    scale = nn.Parameter(torch.tensor(0.5))
    optimizer = torch.optim.SGD([scale], lr=0.01)
    amounts = torch.tensor([0.0, 2.0, 5.0])
    for _ in range(2):
        positive = torch.where(amounts > 0, amounts, torch.ones(3))
        roots = torch.where(amounts > 0, (scale * positive).sqrt(), torch.zeros(3))
        loss = (roots - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the branch that is left out has a finite derivative
    import torch
    from torch import nn

    scale = nn.Parameter(torch.tensor(0.5))
    optimizer = torch.optim.SGD([scale], lr=0.01)
    amounts = torch.tensor([0.0, 2.0, 5.0])
    for _ in range(2):
        kept = torch.where(amounts > 1, (scale * amounts).pow(2), torch.zeros(3))
        loss = (kept - 1).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A mask that is more than four operations away from the value that it hides is told as BP502.

Source:
    torch.where in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import operation_name
from backprobe.rules.analysis.tensors.birth_findings import births_of, name_of, told_birth
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="nonfinite-masked-branch",
    code="BP503",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("stats", "node", "backward", "parents", "grad-life"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding at most: what comes after the first is its consequence."""
    for birth in births_of(record, "masked"):
        kind = "an operation" if birth.node is None else f"`{operation_name(birth.node.type)}`"
        masked = name_of(record, birth)
        apart = birth.node is not None and birth.node.site not in (None, birth.site)
        yield told_birth(
            record,
            RULE,
            birth,
            f"`{masked}` leaves out elements at which {kind}{' here' if apart else ''} has no finite derivative: "
            "0 * inf is NaN.",
            "Mask the input of that operation too, so that it never sees these elements.",
            at=birth.node.site if apart and birth.node is not None else None,
            born=f"`{masked}` leaves them out here",
        )
