"""BP252 hook-registered-every-step: one more hook is put on the same tensor or module in each turn, and none comes off.

What it finds:
    One statement registers the same hook on one long-lived tensor or module at least three times, the hooks before are
    still there, and all of them run. The finding stands at that statement.

Why it matters:
    The n-th step runs n hooks. What they record comes n times, what they scale is scaled n times, and steps get slower.

What PyTorch does:
    Hooks add up: a registration replaces none. Each returns a handle, whose `remove()` takes that hook off. Hooks on a
    tensor that is made anew in each step are gone with it. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net, seen = nn.Linear(3, 1), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    for batch in torch.randn(4, 10, 3):
        net.register_forward_hook(lambda module, args, out: seen.append(out.shape))  # <- here
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net, seen = nn.Linear(3, 1), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    net.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    for batch in torch.randn(4, 10, 3):
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()

Near miss: each hook is taken off again
    import torch
    from torch import nn

    net, seen = nn.Linear(3, 1), []
    for batch in torch.randn(4, 10, 3):
        handle = net.register_forward_hook(lambda module, args, out: seen.append(out.shape))
        net(batch).square().mean().backward()
        handle.remove()

Near miss: the tensor is made anew in each step
    import torch
    from torch import nn

    net, seen = nn.Linear(3, 1), []
    for batch in torch.randn(4, 10, 3):
        out = net(batch)
        out.register_hook(lambda grad: seen.append(grad.norm()))
        out.square().mean().backward()

Near miss: one hook on each layer
    import torch
    from torch import nn

    net, seen = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1)), []
    for layer in net:
        layer.register_forward_hook(lambda module, args, out: seen.append(out.shape))
    for batch in torch.randn(4, 10, 3):
        net(batch).square().mean().backward()

Blind spots:
    A hook that a different statement registers each time. Two registrations are no pattern yet.

Source:
    torch.nn.Module.register_forward_hook and torch.Tensor.register_hook in PyTorch's documentation; observed with torch
    2.13. Three registrations: a first and a second one may belong to a set-up and a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.source.naming import called, receiver
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Hook, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="hook-registered-every-step",
    code="BP252",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("hook", "module", "backward"),
)

LEAST: Final = 3
"""Registrations by one statement on one object."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement and object."""
    groups: dict[tuple[object, ...], list[Hook]] = {}
    for row in record.hooks:
        if row.site is not None and (row.tensor is not None or row.module is not None):
            groups.setdefault((row.site, row.kind, row.tensor, row.module, row.callable), []).append(row)
    for rows in groups.values():
        if len(rows) >= LEAST and all(_piles_up(record, one, other) for one, other in pairwise(rows)):
            yield _finding(record, rows)


def _piles_up(record: Record, one: Hook, other: Hook) -> bool:
    """The hook was still there when the next one came, and had run by then."""
    since, until = one.moment or 0, other.moment or 0
    if one.removed is not None and one.removed <= until:
        return False
    if one.module is not None:
        return any(since <= moment <= until for moment in _moments_of_calls(record, one.module))
    return any(since <= call.moment_before <= until for call in record.backward_calls)


def _moments_of_calls(record: Record, module: int) -> list[int]:
    """When the calls of a module were made: the moments of their statements, as often as it was called there."""
    sites = {call.site for call in calls_of_modules(record).get(module, ())}
    return [row.moment for row in record.moments if row.site in sites]


def _finding(record: Record, rows: list[Hook]) -> Finding:
    first = rows[0]
    site = first.site or 0
    methods = (method_called(part) or "" for part in parts_of(statement_at(record, site)))
    method = next((one for one in methods if one.startswith("register")), "")
    name = receiver(record, site, method) or ("a module" if first.tensor is None else called(record, first.tensor))
    what = "tensor" if first.tensor is not None else "module"
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` gets one more hook each time this runs: {len(rows)} on the same {what}, none taken off.",
            "All of them run in every step, so what they do is done again and again.",
            "Register it once, before the loop, or keep the handle and call its `remove()`.",
        ),
        binding=name,
        moments=[row.moment or 0 for row in rows],
        related=(("of one such hook the code is here", first.callable_site if first.callable_site != site else None),),
        evidence={"hooks": len(rows), "callable": first.callable, "kind": first.kind},
        tensors=() if first.tensor is None else (first.tensor,),
    )
