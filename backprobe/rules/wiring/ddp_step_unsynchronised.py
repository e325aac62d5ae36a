"""BP742 ddp-step-unsynchronised: every backward call of a step ran under `no_sync()`.

What it finds:
    In each step of an optimizer over the parameters of a `DistributedDataParallel`, all backward calls that fed it
    stand in a `with` of the wrapper's `no_sync()`. The finding stands at that `with`.

Why it matters:
    The gradients of the processes are never averaged. Each process trains a model of its own, on its share of the data.

What PyTorch does:
    `no_sync()` leaves the averaging out; the first forward and backward pass outside of it averages what has been added
    up. With none outside, nothing is averaged, and nothing is said. Seen in torch 2.13 with one process and gloo.

Example:
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 8, 3):
        optimizer.zero_grad()
        with wrapper.no_sync():  # <- here
            for part in x:
                wrapper(part).pow(2).mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Use instead:
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 8, 3):
        optimizer.zero_grad()
        with wrapper.no_sync():
            wrapper(x[0]).pow(2).mean().backward()
        wrapper(x[1]).pow(2).mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Near miss: the program averages the gradients itself
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 8, 3):
        optimizer.zero_grad()
        with wrapper.no_sync():
            for part in x:
                wrapper(part).pow(2).mean().backward()
        for p in wrapper.parameters():
            torch.distributed.all_reduce(p.grad)
        optimizer.step()
    torch.distributed.destroy_process_group()

Near miss: the context is chosen for each part
    import contextlib
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 2, 8, 3):
        optimizer.zero_grad()
        for at, part in enumerate(x):
            with wrapper.no_sync() if at == 0 else contextlib.nullcontext():
                wrapper(part).pow(2).mean().backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Blind spots:
    A backward call in a function that is called inside the `with`, or a context that is entered by hand, is not judged.
    Nor is a program that reduces more than single numbers over its processes: it may average its model itself.

Source:
    torch.nn.parallel.DistributedDataParallel.no_sync in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.ddp_wrappers import Wrapper, wrappers
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.scopes import Function
from backprobe.rules.analysis.source.syntax import method_called, region_in, site_of, statement_at, tree_of, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="ddp-step-unsynchronised",
    code="BP742",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("module", "node", "backward", "optimizer"),
)

LEAST_STEPS: Final = 2
"""Steps without an averaged gradient: once is no pattern."""

_NAMES: Final = """
all_reduce all_reduce_coalesced all_gather all_gather_into_tensor reduce reduce_scatter reduce_scatter_tensor
average_parameters PostLocalSGDOptimizer
"""
_BY_HAND: Final = frozenset(_NAMES.split())
"""What torch.distributed has for a program that averages gradients or parameters itself."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per `with` under which a wrapper's steps got all their gradients."""
    for wrapper in () if _may_average_by_hand(record) else wrappers(record):
        steps = _steps(record, wrapper)
        contexts = {_context(record, call) for calls in steps for call in calls}
        (context, *others) = contexts or {None}
        if context is not None and not others and len(steps) >= LEAST_STEPS:
            yield _finding(record, wrapper, context, steps)


def _may_average_by_hand(record: Record) -> bool:
    """The program calls a function that can average gradients or parameters, for something other than a number."""
    parts = (part for tree in trees(record).values() for part in tree.nodes)
    return any(method_called(part) in _BY_HAND and not _takes_number(record, part) for part in parts)


def _takes_number(record: Record, part: ast.AST) -> bool:
    """The first argument of a call is a name that only ever held tensors of one element."""
    first = part.args[0] if isinstance(part, ast.Call) and part.args else None
    held = bindings_named(record)[first.id] if isinstance(first, ast.Name) else ()
    shapes = [lookup(record).tensors[row.tensor].shape for row in held]
    return bool(shapes) and all(shape is not None and math.prod(shape) == 1 for shape in shapes)


def _steps(record: Record, wrapper: Wrapper) -> list[list[BackwardCall]]:
    """The backward calls that fed each step of an optimizer over the wrapper's parameters."""
    held = {row.optimizer for row in record.optimizers if any(one.tensor in wrapper.parameters for one in row.tensors)}
    steps = [row.moment for row in record.optimizer_events if row.kind == "step" and row.optimizer in held]
    feeding = [
        call
        for call in record.backward_calls
        if call.accumulate_grad and reaches(record)[call.call].leaves & wrapper.parameters
    ]
    found = [
        [call for call in feeding if before < call.moment_before < moment]
        for before, moment in zip([-1, *steps], steps, strict=False)
    ]
    return [calls for calls in found if calls]


def _context(record: Record, call: BackwardCall) -> ast.Call | None:
    """The `no_sync()` of a `with` around the statement of a backward call, in its function; None if there is none."""
    node = statement_at(record, call.site)
    tree = None if call.site is None else tree_of(record, site_of(record, call.site))
    if node is None or tree is None:
        return None
    for above in tree.ancestors(node):
        if isinstance(above, Function | ast.Lambda | ast.ClassDef):
            return None
        for item in above.items if isinstance(above, ast.With) else ():
            if isinstance(item.context_expr, ast.Call) and method_called(item.context_expr) == "no_sync":
                return item.context_expr
    return None


def _finding(record: Record, wrapper: Wrapper, context: ast.Call, steps: list[list[BackwardCall]]) -> Finding:
    name = wrapper.module.binding or "the wrapper"
    first = steps[0][0]
    row = site_of(record, first.site or 0)
    index = lookup(record)
    asked = (call.site for call in record.watched_calls if call.function.endswith(".no_sync"))
    at = next((one for one in asked if one is not None and index.sites[one].line == context.lineno), row.site)
    return told(
        record,
        RULE,
        at,
        (
            f"All backward calls of the {len(steps)} steps ran under this `no_sync()`.",
            f"The gradients of `{name}` are never averaged: each process trains alone.",
            "Leave the context for the last forward and backward pass of each step.",
        ),
        binding=name,
        moments=[calls[-1].moment_before for calls in steps],
        region=region_in(record, row.source, context),
        related=((f"`{name}` is built here", wrapper.module.site), ("gradients arrive from here", first.site)),
        evidence={"steps": len(steps), "calls": sum(len(calls) for calls in steps), "outside": 0},
        tensors=sorted(wrapper.parameters),
        calls=[call.call for calls in steps for call in calls],
    )
