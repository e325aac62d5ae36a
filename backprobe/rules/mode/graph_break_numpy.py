"""BP604 graph-break-numpy: a value goes through NumPy and back into the loss.

What it finds:
    The only way from trained parameters to a root goes through an array: `.numpy()`, or a function of NumPy. No
    backward call of the run reaches them. The finding stands where the value leaves torch.
    So it is of one term of a loss whose other terms train.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    An array has no history, and `from_numpy` starts a new one. A tracked tensor must be detached before `.numpy()`; the
    `detach()` that silences the exception is the cut. Seen in torch 2.13.

Example:
    import numpy as np
    import torch
    from torch import nn

    phase, amplitude = nn.Linear(1, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*phase.parameters(), *amplitude.parameters()], lr=0.1)
    for _ in range(3):
        angle = phase(torch.rand(8, 1))
        waves = torch.from_numpy(np.sin(angle.detach().numpy()))  # <- here
        loss = amplitude(waves).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    phase, amplitude = nn.Linear(1, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*phase.parameters(), *amplitude.parameters()], lr=0.1)
    for _ in range(3):
        angle = phase(torch.rand(8, 1))
        waves = torch.sin(angle)
        loss = amplitude(waves).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: arrays for a metric and for the data
    import numpy as np
    import torch
    from torch import nn

    net = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    table = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    for _ in range(3):
        guess = net(torch.from_numpy(table[:, :2]))
        loss = (guess - torch.from_numpy(table[:, 2:])).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(np.corrcoef(guess.detach().numpy().ravel(), table[:, 2])[0, 1])

Blind spots:
    An array that goes through a library's own objects is not followed.

Source:
    torch.Tensor.numpy in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.break_findings import breaks_of, ended_text, told_break
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-numpy",
    code="BP604",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("backward", "binding", "module", "optimizer", "grad-life", "raised"),
    explains=(
        "requires-grad-forced",
        "root-without-history",
        "step-without-gradient",
        "grad-read-when-none",
        "gradient-not-derivative",
    ),
    refines=("parameter-never-used",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per expression at which a value leaves torch."""
    for one in breaks_of(record, "numpy"):
        yield told_break(
            record,
            RULE,
            one,
            f"`{ended_text(one)}` leaves torch and comes back without a history, cut off from {{who}}.",
            "Use torch's own function in place of NumPy's, or write an `autograd.Function` around it.",
        )
