"""BP709 module-built-each-forward: a forward pass builds a new layer each time and throws it away.

What it finds:
    A statement inside a module's forward pass builds modules with parameters. Each pass has new ones, they get
    gradients, and no optimizer holds them.

Why it matters:
    The layer is random in every pass and never learns; what comes before it learns against noise.

What PyTorch does:
    A module's constructor draws new weights. Those of the last pass are gone, with their gradients. Nothing is
    said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 4)

        def forward(self, x):
            h = self.inner(x)
            project = nn.Linear(h.shape[-1], 1)  # <- here
            return project(h)

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 4)
            self.project = nn.Linear(4, 1)

        def forward(self, x):
            return self.project(self.inner(x))

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: what is built has no parameters
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(3, 1)

        def forward(self, x):
            act = nn.Tanh()
            return act(self.inner(x))

    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Near miss: built once, when the sizes are known
    import torch
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.project = None

        def forward(self, x):
            if self.project is None:
                self.project = nn.Linear(x.shape[-1], 1)
            return self.project(x)

    net = Net()
    net(torch.randn(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        net(x).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A layer that is built in a plain function, outside of every module's forward pass, is not judged: it may be a
    fold or a task.

Source:
    torch.nn.Module in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.grad_lives import grad_lives
from backprobe.rules.lookup import lookup
from backprobe.rules.naming import called
from backprobe.rules.rule import Rule
from backprobe.rules.syntax import site_of
from backprobe.rules.told import told
from backprobe.rules.trained import in_optimizers

if TYPE_CHECKING:
    from backprobe.record import Module, Record
    from backprobe.rules.finding import Finding

RULE = Rule(
    name="module-built-each-forward",
    code="BP709",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("module", "optimizer", "grad-life"),
    refines=("parameters-not-in-optimizer",),
)

LEAST: Final = 2
"""Forward passes that built one and got gradients into it: once may be a lazy construction."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that builds."""
    stepped = any(event.kind == "step" for event in record.optimizer_events)
    by_site: dict[int, dict[int, list[tuple[Module, int]]]] = {}
    for module in record.modules if stepped else ():
        for row in module.parameters:
            if row.tensor is None or row.tensor in in_optimizers(record) or row.tensor not in grad_lives(record):
                continue
            made = lookup(record).tensors[row.tensor]
            passed = lookup(record).moments[made.moment].module_call
            if passed is not None and made.site is not None:
                by_site.setdefault(made.site, {}).setdefault(passed, []).append((module, row.tensor))
    for site, passes in by_site.items():
        if len(passes) >= LEAST:
            yield _finding(record, site, [one for found in passes.values() for one in found], len(passes))


def _finding(record: Record, site: int, found: list[tuple[Module, int]], passes: int) -> Finding:
    module, tensor = found[0]
    arrival = grad_lives(record)[tensor].arrivals[0]
    name = module.binding or called(record, tensor).rpartition(".")[0] or module.cls
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is built in `{site_of(record, site).function}`, anew in each of {passes} forward passes.",
            "Its weights are random every time, get gradients, and are thrown away: it never learns.",
            "Build it once, in `__init__`.",
        ),
        binding=name,
        moments=sorted({lookup(record).tensors[one].moment for _module, one in found}),
        related=(("gradients arrive from here", arrival.site),),
        evidence={"class": module.cls, "forward_passes": passes, "parameters": len(found)},
        tensors=[one for _module, one in found],
    )
