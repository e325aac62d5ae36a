"""BP709 module-built-each-forward: a forward pass builds a new layer each time and throws it away.

What it finds:
    A statement inside a module's forward pass builds modules with parameters, or an `nn.Parameter`. Each pass has new
    ones, they get gradients, and no optimizer holds them.

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

from backprobe.rules.analysis.gradients.grad_lives import grad_lives
from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Module, Record
    from backprobe.rules.framework.finding import Finding

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
    by_site: dict[int, dict[int, list[tuple[Module | None, int]]]] = {}
    for module in record.modules if stepped else ():
        for row in module.parameters:
            if row.tensor is None or row.tensor in in_optimizers(record) or row.tensor not in grad_lives(record):
                continue
            made = lookup(record).tensors[row.tensor]
            passed = lookup(record).moments[made.moment].module_call
            site = _used_at(record, module) if made.site is None else made.site
            if passed is not None and site is not None:
                by_site.setdefault(site, {}).setdefault(passed, []).append((module, row.tensor))
    for tensor, made, passed in _parameters_alone(record) if stepped else ():
        by_site.setdefault(made, {}).setdefault(passed, []).append((None, tensor))
    for site, passes in by_site.items():
        if len(passes) >= LEAST:
            yield _finding(record, site, [one for found in passes.values() for one in found], len(passes))


def _parameters_alone(record: Record) -> Iterator[tuple[int, int, int]]:
    """Each `nn.Parameter` that a forward pass made outside of a new module: itself, its statement, and the pass."""
    index = lookup(record)
    inside = {row.tensor for module in record.modules for row in module.parameters}
    for row in record.tensors:
        if row.cls != "Parameter" or row.tensor in inside or row.tensor in in_optimizers(record):
            continue
        passed = index.moments[row.moment].module_call
        if row.tensor in grad_lives(record) and row.site is not None and passed is not None:
            yield row.tensor, row.site, passed


def _used_at(record: Record, module: Module) -> int | None:
    """The statement that calls a module: one that never had a name is built where it is called."""
    calls = calls_of_modules(record).get(module.module)
    return calls[0].site if calls else None


def _finding(record: Record, site: int, found: list[tuple[Module | None, int]], passes: int) -> Finding:
    module, tensor = found[0]
    arrival = grad_lives(record)[tensor].arrivals[0]
    if module is None:
        name, cls = called(record, tensor), "Parameter"
        second = "It gets a gradient and is thrown away; an `nn.Parameter` is cut off from what it is made of."
    else:
        name, cls = module.binding or called(record, tensor).rpartition(".")[0] or module.cls, module.cls
        second = "Its parameters are initialized again each time, get gradients, and are thrown away: it never learns."
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is built in `{site_of(record, site).function}`, again in each of {passes} forward passes.",
            second,
            "Build it once, in `__init__`.",
        ),
        binding=name,
        moments=sorted({lookup(record).tensors[one].moment for _module, one in found}),
        related=(("gradients arrive from here", arrival.site),),
        evidence={"class": cls, "forward_passes": passes, "parameters": len(found)},
        tensors=[one for _module, one in found],
    )
