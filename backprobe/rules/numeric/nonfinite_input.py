"""BP505 nonfinite-input: the data itself holds NaN or an infinity.

What it finds:
    A tensor that no operation of the program computed holds NaN or an infinity, and it goes on to the root of a
    backward call. The finding stands where it is made, or where a statement writes NaN or an infinity into it.

Why it matters:
    One missing value in a table makes the loss, every gradient and every parameter NaN at the first step.

What PyTorch does:
    NaN goes through every operation on. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    table = torch.tensor([[1.0, 2.0], [0.5, float("nan")], [3.0, 1.0]])  # <- here
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        loss = model(table).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    table = torch.tensor([[1.0, 2.0], [0.5, float("nan")], [3.0, 1.0]])
    known = table[table.isfinite().all(1)]
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        loss = model(known).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: missing values are replaced before they are used
    import torch
    from torch import nn

    table = torch.tensor([[1.0, 2.0], [0.5, float("nan")], [3.0, 1.0]])
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        filled = torch.nan_to_num(table)
        loss = model(filled).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    What a library reads from a file is named where the program first holds it.

Source:
    IEEE 754-2019, section 6.2; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.tensors.birth_findings import births_of, name_of, told_birth
from backprobe.rules.analysis.tensors.value_origins import bad_write
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="nonfinite-input",
    code="BP505",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("stats", "node", "backward", "parents", "grad-life"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding at most: what comes after the first is its consequence."""
    for birth in births_of(record, "input"):
        name, written = name_of(record, birth), bad_write(record, birth.tensor or 0, birth.moment) is not None
        seen = f"`{name}` holds {birth.what} from the start: no operation of the program made it so."
        yield told_birth(
            record,
            RULE,
            birth,
            f"This statement writes {birth.what} into `{name}`." if written else seen,
            "Clean the data before it is used: drop such rows, or fill them in.",
        )
