"""BP103 retain-grad-after-backward: a tensor is asked to keep its gradient when the gradient has already passed.

What it finds:
    `retain_grad()` is called after the last backward call that went through the tensor, and its `.grad` is then read
    and is None. The finding stands at the call.

Why it matters:
    The gradient was there and went by; what is read is None.

What PyTorch does:
    `retain_grad()` marks a tensor for backward calls to come. Seen in torch 2.13.

Example:
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward()
    hidden.retain_grad()  # <- here
    print(hidden.grad)

Use instead:
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.retain_grad()
    hidden.sum().backward()
    print(hidden.grad)

Near miss: another backward call follows
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.sum().backward(retain_graph=True)
    hidden.retain_grad()
    hidden.pow(2).sum().backward()
    print(hidden.grad)

Near miss: no backward call came yet
    import torch

    x = torch.ones(3, requires_grad=True)
    hidden = x * 2
    hidden.retain_grad()
    print(hidden.grad)
    hidden.sum().backward()

Blind spots:
    A gradient that is never read is never missed: nothing is said.

Source:
    torch.Tensor.retain_grad in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.reach import arrived_at
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="retain-grad-after-backward",
    code="BP103",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("snapshot", "backward", "grad-read", "node"),
    refines=("non-leaf-grad-read",),
    explains=("grad-read-when-none",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of `retain_grad` that came too late."""
    groups: dict[int, list[tuple[int, int, BackwardCall, int]]] = {}
    for read in record.grad_reads:
        asked = _asked_at(record, read.tensor, read.moment) if read.was_none else None
        if asked is None:
            continue
        calls = _through(record, read.tensor, read.moment)
        site = lookup(record).moments[asked].site
        before = [call for call in calls if call.moment_before < asked]
        if before and len(before) == len(calls) and site is not None:
            groups.setdefault(site, []).append((read.tensor, asked, before[-1], read.site))
    for site, found in groups.items():
        yield _finding(record, site, found)


def _asked_at(record: Record, tensor: int, until: int) -> int | None:
    """The moment at which a non-leaf was first seen to retain its gradient."""
    before = False
    for state in lookup(record).snapshots_of[tensor]:
        if state.moment > until:
            break
        if before and state.retains_grad and not state.is_leaf:
            return state.moment
        before = not state.retains_grad and not state.is_leaf
    return None


def _through(record: Record, tensor: int, until: int) -> list[BackwardCall]:
    """The backward calls before a moment that a gradient came through the tensor in."""
    made = lookup(record).node_of.get(tensor)
    return [
        call
        for call in record.backward_calls
        if call.moment_before < until
        and (any(root.tensor == tensor for root in call.roots) or (made and arrived_at(record, call, made, ran=True)))
    ]


def _finding(record: Record, site: int, found: list[tuple[int, int, BackwardCall, int]]) -> Finding:
    tensor, _asked, call, read = found[0]
    name = called(record, tensor)
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is asked to keep its gradient after the backward call that brought it.",
            "That gradient went by; `.grad` stays None.",
            "Call `retain_grad()` before `backward()`.",
        ),
        binding=name,
        moments=[asked for _tensor, asked, _call, _read in found],
        related=(("the gradient went through here", call.site), ("`.grad` is read here and is None", read)),
        evidence={"tensor": tensor, "backward_call": call.call, "retains_grad": True},
        tensors=[tensor],
        calls=[call.call],
    )
