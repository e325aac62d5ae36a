"""BP201 parameter-never-used: an optimizer holds parameters of a module that is never called.

What it finds:
    Parameters in an optimizer whose module ran in no forward pass, and that no backward call ever reached. Where a twin
    of that module, of the same class and shapes, is called twice in one forward pass, the finding stands at the second
    of these calls, and the wrong name is likely the mistake; else at the definition.

Why it matters:
    The model is smaller than its code says. Nothing raises: `.grad` stays None, and the optimizer passes over it.

What PyTorch does:
    A backward call fills `.grad` of the leaves that its root was computed from, and of no others. Optimizers skip
    parameters without a gradient. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(10, 10)
            self.gate = nn.Linear(10, 1)  # <- here
            self.head = nn.Linear(10, 2)

        def forward(self, rows):
            return self.head(self.inner(rows).relu())

    net = Mixer()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 10)).square().mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    class Mixer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(10, 10)
            self.gate = nn.Linear(10, 1)
            self.head = nn.Linear(10, 2)

        def forward(self, rows):
            inner = self.inner(rows).relu()
            return self.head(inner * self.gate(rows).sigmoid())

    net = Mixer()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 10)).square().mean().backward()
        optimizer.step()

Near miss: its weight is used without calling it
    import torch
    from torch import nn

    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(6, 4)
            self.out = nn.Linear(4, 6, bias=False)

        def forward(self, words):
            return nn.functional.linear(self.table(words), self.out.weight)

    net = Tied()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.tensor([1, 2])).square().mean().backward()
        optimizer.step()

Near miss: it is called in some steps
    import torch
    from torch import nn

    trunk, extra = nn.Linear(4, 4), nn.Linear(4, 4)
    optimizer = torch.optim.SGD([*trunk.parameters(), *extra.parameters()], lr=0.1)
    for step in range(3):
        rows = trunk(torch.randn(8, 4))
        rows = extra(rows) if step == 2 else rows
        optimizer.zero_grad()
        rows.square().mean().backward()
        optimizer.step()

Near miss: an expert that is chosen at run time
    import torch
    from torch import nn

    class Experts(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

        def forward(self, rows, chosen):
            return self.experts[chosen](rows)

    net = Experts()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        net(torch.randn(8, 4), step % 2).square().mean().backward()
        optimizer.step()

Blind spots:
    A run cut short proves nothing. Where the model's class is a library's, or some of a list's modules are called and
    others not, it is a note; and so where a `DistributedDataParallel` around it was told to look for unused ones. An
    optimizer that steps without any gradient is BP707's. A module that runs, but whose output goes nowhere, is BP202's.

Source:
    torch.optim.Optimizer.step and torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.modules.ddp_wrappers import is_told_of_unused
from backprobe.rules.analysis.modules.module_tree import (
    CONTAINERS,
    above,
    calls_of_modules,
    module_keys,
    parameters_below,
)
from backprobe.rules.analysis.modules.unused_modules import never_met
from backprobe.rules.analysis.rows.completeness import is_whole_run
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="parameter-never-used",
    code="BP201",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("optimizer", "module", "node", "grad-life"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unused:
    """A module that never ran: its key, its parameters in an optimizer, and where it was made."""

    key: str
    tensors: list[int]
    site: int


def check(record: Record) -> Iterator[Finding]:
    """One finding per module that is never called, the outermost of those inside each other."""
    stepped = {event.optimizer for event in record.optimizer_events if event.kind == "step" and event.with_grad}
    if not is_whole_run(record):
        return
    for key in dict.fromkeys(_outermost(record, key) for key in module_keys(record) if _is_unused(record, key)):
        tensors = [one for one in parameters_below(record, key) if one in in_optimizers(record)]
        site = lookup(record).tensors[tensors[0]].site
        if site is not None and stepped.intersection(in_optimizers(record)[tensors[0]]):
            yield _finding(record, _Unused(key=key, tensors=tensors, site=site))


def _is_unused(record: Record, key: str) -> bool:
    """It never ran, and all its parameters stand in an optimizer, want a gradient and never got one."""
    # a ModuleList is never called itself, its members are
    below = (one for other, one in module_keys(record).items() if other == key or other.startswith(f"{key}."))
    idle = set(never_met(record, key))
    if not idle or idle & _replaced(record):
        return False
    return not any(calls_of_modules(record).get(one.module) for one in below)


@table
def _replaced(record: Record) -> set[int]:
    """Parameters in whose place their module holds another one now: what they were is BP702's to say."""
    return {row.tensor for optimizer in record.optimizers for row in optimizer.tensors if row.stale}


def _outermost(record: Record, key: str) -> str:
    for outer in above(key):
        if outer in module_keys(record) and _is_unused(record, outer):
            key = outer
    return key


def _is_doubtful(record: Record, unused: _Unused) -> bool:
    """A library's class holds it; or a list of which other members are called: they may be chosen at run time.

    Or who wrapped it said that parameters may be unused.
    """
    if is_told_of_unused(record, unused.tensors[0]):
        return True
    key, modules = unused.key, module_keys(record)
    nearest = next(above(key), None)
    holder = None if nearest is None else modules.get(nearest)
    if nearest is not None and (holder is None or holder.cls in ("ModuleList", "ModuleDict")):
        beside = (module for other, module in modules.items() if next(above(other), None) == nearest)
        if any(calls_of_modules(record).get(module.module) for module in beside):
            return True
    owners = [modules[outer] for outer in above(key) if outer in modules and modules[outer].cls not in CONTAINERS]
    return bool(owners) and not owners[0].user_code


def _second_call(record: Record, key: str) -> tuple[str, ModuleCall] | None:
    """The second call, in one forward pass, of a module beside it of the same class and shapes; and that one's key."""
    modules = module_keys(record)
    shapes = _shapes(record, key)
    for other, module in modules.items():
        if next(above(other), "") != next(above(key), "") or module.cls != modules[key].cls:
            continue
        seen: set[int | None] = set()
        for call in calls_of_modules(record).get(module.module, ()):
            if call.parent is not None and call.parent in seen and _shapes(record, other) == shapes:
                return other, call
            seen.add(call.parent)
    return None


def _shapes(record: Record, key: str) -> list[tuple[int, ...] | None]:
    return [lookup(record).tensors[one].shape for one in parameters_below(record, key)]


def _finding(record: Record, unused: _Unused) -> Finding:
    twin = _second_call(record, unused.key)
    name = _written(record, unused)
    optimizer = in_optimizers(record)[unused.tensors[0]][0]
    held = next(row for row in record.optimizers if row.optimizer == optimizer)
    count = f"{len(unused.tensors)} parameter" + ("" if len(unused.tensors) == 1 else "s")
    at_twin = twin is not None and twin[1].site is not None
    remedy = f"Call `{name}` in the forward pass, or take it out."
    if twin is not None:
        other = f"self.{twin[0].rpartition('.')[2]}" if name.startswith("self.") else twin[0]
        remedy = f"`{other}` is called twice in one forward pass: likely `{name}` was meant here."
    finding = told(
        record,
        RULE,
        twin[1].site if twin is not None and twin[1].site is not None else unused.site,
        (
            f"`{name}` is never called: none of its {count} ever gets a gradient.",
            f"`{optimizer_name(record, optimizer)}` holds them and passes over them; the model runs without them.",
            remedy,
        ),
        binding=name,
        moments=[lookup(record).tensors[unused.tensors[0]].moment],
        related=(
            (f"`{name}` is made here", unused.site if at_twin else None),
            ("this optimizer holds its parameters", held.site),
        ),
        evidence={"module": unused.key, "tensors": unused.tensors[:16], "calls": 0},
        tensors=unused.tensors,
        level="note" if _is_doubtful(record, unused) else None,
    )
    return msgspec.structs.replace(finding, confidence="likely") if at_twin else finding


def _written(record: Record, unused: _Unused) -> str:
    """What the program calls the module: the target of the statement that made it, if it names it; else its key."""
    targets = lookup(record).sites[unused.site].targets
    last = unused.key.rpartition(".")[2]
    return next((target for target in targets if target.rpartition(".")[2] == last), unused.key)
