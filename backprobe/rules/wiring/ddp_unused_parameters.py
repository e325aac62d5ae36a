"""BP741 ddp-unused-parameters: a wrapped model has parameters that its loss does not depend on.

What it finds:
    A forward pass of a `DistributedDataParallel` raised, because in the pass before it some of the wrapped parameters
    got no gradient. The finding stands where the first of them is made.

Why it matters:
    The program stops in its second step, with the indices of the parameters in place of their names.

What PyTorch does:
    The wrapper averages a gradient when it arrives, and waits for all of them before the next forward pass. One that
    never comes raises "Expected to have finished reduction in the prior iteration". Seen in torch 2.13 with one process
    and gloo.

Example:
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.extra = nn.Linear(4, 4)  # <- here

        def forward(self, x):
            return self.body(x)

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Use instead:
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.extra = nn.Linear(4, 4)

        def forward(self, x):
            return self.extra(self.body(x).relu())

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    model = DistributedDataParallel(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Near miss: a layer that some passes skip, and the wrapper is told to look for such
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.extra = nn.Linear(4, 4)

        def forward(self, x, deep):
            return self.extra(self.body(x)) if deep else self.body(x)

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    model = DistributedDataParallel(Net(), find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for deep in (True, False, True):
        optimizer.zero_grad()
        model(torch.randn(8, 4), deep).square().mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Blind spots:
    A module that is left out in some passes only: the one that was left out last is named.

Source:
    "Distributed Data Parallel" in PyTorch's notes, on unused parameters; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.ddp_wrappers import Wrapper, wrappers
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called, capital, together
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_as
from backprobe.rules.analysis.training.trained_parameters import shared_key
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Raised, Record
    from backprobe.rules.framework.finding import Finding
from backprobe.rules.analysis.training.trained_parameters import required_grad

RULE = Rule(
    name="ddp-unused-parameters",
    code="BP741",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "module", "backward"),
    refines=("parameter-never-used",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per exception and wrapper that lacks gradients."""
    for raised in raised_as(record, "unused-parameters"):
        for wrapper in wrappers(record):
            unused = _unused(record, raised, wrapper)
            if raised.site is not None and unused:
                yield _finding(record, raised, raised.site, wrapper, unused)


def _unused(record: Record, raised: Raised, wrapper: Wrapper) -> list[int]:
    """The wrapped parameters that the last backward call before the exception left out, where it reached others."""
    before = [
        reaches(record)[call.call].leaves & wrapper.parameters
        for call in record.backward_calls
        if raised.moment is None or call.moment_before <= raised.moment
    ]
    reached = next((leaves for leaves in reversed(before) if leaves), frozenset[int]())
    flagged = {one for one in wrapper.parameters if required_grad(record, one)}
    return sorted(flagged - reached) if reached else []


def _finding(record: Record, raised: Raised, site: int, wrapper: Wrapper, unused: list[int]) -> Finding:
    made = lookup(record).tensors[unused[0]].site
    what = capital(together(record, unused))
    one = len(unused) == 1
    name = wrapper.module.binding or "the wrapper"
    return told(
        record,
        RULE,
        site if made is None else made,
        (
            f"{what} {'gets' if one else 'get'} no gradient: the loss does not depend on {'it' if one else 'them'}.",
            f"`{name}` waits for a gradient of each parameter before its next forward pass, which raises.",
            f"Use or drop {'it' if one else 'them'}, or build `{name}` with `find_unused_parameters=True`.",
        ),
        binding=shared_key([called(record, tensor) for tensor in unused]) or called(record, unused[0]),
        moments=[raised.moment or 0],
        related=((f"`{name}` is built here", wrapper.module.site), ("raised here", site)),
        evidence={"raised": raised.message, "parameters": unused[:16]},
        tensors=unused,
        level=level_of(record, raised),
    )
