"""BP740 ddp-forward-bypassed: a module inside `DistributedDataParallel` is trained without calling the wrapper.

What it finds:
    Backward calls reach the parameters of a module that a `DistributedDataParallel` wraps, and in no forward pass
    with gradients was the wrapper itself called: the program calls the module inside it, or a method of that one.

Why it matters:
    The gradients of the processes are never averaged. Each process trains a model of its own, on its share of the data.

What PyTorch does:
    The wrapper's `forward` prepares the reduction of the gradients for the backward pass that follows. A call of the
    inner module goes past it, and nothing is said. Seen in torch 2.13 with one process and gloo.

Example:
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = wrapper.module(x).pow(2).mean()  # <- here
        loss.backward()
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
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        loss = wrapper(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    torch.distributed.destroy_process_group()

Near miss: the inner module is evaluated
    import tempfile

    import torch
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel

    place = f"file://{tempfile.mktemp()}"
    torch.distributed.init_process_group("gloo", init_method=place, rank=0, world_size=1)
    wrapper = DistributedDataParallel(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(wrapper.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        optimizer.zero_grad()
        wrapper(x).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            print(wrapper.module(x).mean().item())
    torch.distributed.destroy_process_group()

Blind spots:
    A program that averages the gradients itself after each backward pass looks the same.

Source:
    torch.nn.parallel.DistributedDataParallel in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.modules.ddp_wrappers import Wrapper, wrappers
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, text_in
from backprobe.rules.framework.finding import Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import ModuleCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="ddp-forward-bypassed",
    code="BP740",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="safe",
    needs=("module", "node", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per wrapper that is never called, at the call of what is inside."""
    for wrapper in wrappers(record):
        own = {call.module for call in record.module_calls if call.grad_mode}  # a first look trains nothing
        if wrapper.module.module in own:
            continue
        calls = [call for call in record.module_calls if call.module == wrapper.inner.module and call.grad_mode]
        trained = [call for call in calls if _is_differentiated(record, call, wrapper)]
        by_site: dict[int, list[ModuleCall]] = {}
        for call in trained:
            if call.site is not None:
                by_site.setdefault(call.site, []).append(call)
        if not trained:
            for call in _calls_of_parts(record, wrapper):
                site = _where_method_is_called(record, call)
                if site is not None and _is_differentiated(record, call, wrapper):
                    by_site.setdefault(site, []).append(call)
        for site, found in by_site.items():
            yield _finding(record, wrapper, site, found)


def _calls_of_parts(record: Record, wrapper: Wrapper) -> list[ModuleCall]:
    """The outermost calls with gradients of what is inside the inner module."""
    parts = {
        module.module for module in record.modules if any(row.tensor in wrapper.parameters for row in module.parameters)
    }
    inside = {call.parent for call in record.module_calls if call.module in parts and call.parent is not None}
    own = {wrapper.inner.module, wrapper.module.module}
    return [
        call
        for call in record.module_calls
        if call.grad_mode and call.parent is None and call.module not in own
        if call.module in parts or call.module_call in inside
    ]


def _where_method_is_called(record: Record, call: ModuleCall) -> int | None:
    """The statement that led to a call of a part; the call itself, if no function is around it."""
    if call.site is None:
        return None
    stacks = {row.stack: row.site for row in record.stacks}
    moment = next((row for row in record.moments if row.site == call.site), None)
    return call.site if moment is None or moment.stack is None else stacks.get(moment.stack, call.site)


def _is_differentiated(record: Record, call: ModuleCall, wrapper: Wrapper) -> bool:
    """A backward call that stores into the wrapped parameters met a node that this call of the module made."""
    index = lookup(record)
    for one in record.backward_calls:
        reach = reaches(record)[one.call]
        stores = one.accumulate_grad and bool(reach.leaves & wrapper.parameters)
        if stores and any(call.lo <= (index.nodes[node].seq or -1) < call.hi for node in reach.met):
            return True
    return False


def _finding(record: Record, wrapper: Wrapper, number: int, calls: list[ModuleCall]) -> Finding:
    name, index = wrapper.module.binding or "the wrapper", lookup(record)
    site = site_of(record, number)
    node = _call(record, number, wrapper)
    region = None if node is None else region_in(record, site.source, node.func)
    written = "the module inside it" if region is None else f"`{text_in(record, site.source, region)}`"
    met = [one for one in record.backward_calls if reaches(record)[one.call].leaves & wrapper.parameters]
    return told(
        record,
        RULE,
        number,
        (
            f"{written[:1].upper()}{written[1:]} is called here, and never `{name}` itself.",
            f"Only the forward pass of `{name}` makes the processes average their gradients: each one trains alone.",
            f"Call `{name}(...)`.",
        ),
        binding=name,
        moments=[one.moment_before for one in met],
        region=None if node is None else region_in(record, site.source, node),
        related=((f"`{name}` is built here", wrapper.module.site), ("gradients arrive from here", met[0].site)),
        evidence={"calls": len(calls), "calls_of_the_wrapper": 0, "inner": index.sites[number].line},
        fixes=_fixes(record, wrapper, number, region),
        tensors=sorted(wrapper.parameters),
    )


def _call(record: Record, number: int, wrapper: Wrapper) -> ast.Call | None:
    """The call of the inner module: the one whose function is no method of torch, if it is the only one."""
    node = statement(record, site_of(record, number))
    names = {wrapper.inner.binding, wrapper.first_name}
    found = [part for part in ast.walk(node or ast.Pass()) if isinstance(part, ast.Call)]
    found = [
        one
        for one in found
        if ast.unparse(one.func) in names or (isinstance(one.func, ast.Attribute) and one.func.attr == "module")
    ]
    return found[0] if len(found) == 1 else None


def _fixes(record: Record, wrapper: Wrapper, number: int, region: Region | None) -> Iterator[Fix]:
    """`model(x)` for `model.module(x)`; none where the program trains parts of it in other calls too.

    The wrapper waits for the gradients of its own call alone: those of another method would come as a surprise.
    """
    site, made = site_of(record, number), wrapper.module.site
    if region is None or wrapper.module.binding is None or made is None or _has_other_calls(record, wrapper):
        return
    if site_of(record, made).function in (site.function, "<module>"):
        edit = replacement(record, site, region, wrapper.module.binding)
        yield Fix(title=f"Call `{wrapper.module.binding}`", safety="safe", edits=(edit,))


def _has_other_calls(record: Record, wrapper: Wrapper) -> bool:
    """A part of the inner module runs with gradients outside of the inner module's calls."""
    parts = {one.module for one in record.modules if any(row.tensor in wrapper.parameters for row in one.parameters)}
    outermost = {call.module for call in record.module_calls if call.grad_mode and call.parent is None}
    return bool(outermost & parts - {wrapper.inner.module, wrapper.module.module})
