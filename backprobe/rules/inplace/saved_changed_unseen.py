"""BP411 saved-changed-unseen: a saved tensor was written past autograd, and the gradient is wrong without an error.

What it finds:
    A write through `.data` or NumPy changed the elements of a tensor that a node had saved, and a backward call used it
    afterwards. The finding stands at the write; related are the statement whose node had saved it and the call.

Why it matters:
    The gradient is computed with values that the forward pass never had. Nothing raises, and training goes on with it.

What PyTorch does:
    An in-place operation raises `_version`, and a node compares versions before it uses what it saved. A write through
    `.data` or a NumPy array that shares the memory raises no version: the check passes. Seen in torch 2.13.

Example:
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    gain.data.clamp_(max=1.0)  # <- here
    loss.backward()

Use instead:
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    loss.backward()
    with torch.no_grad():
        gain.clamp_(max=1.0)

Near miss: written after the backward call
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    loss = gain.pow(3).sum()
    loss.backward()
    gain.data.clamp_(max=1.0)

Near miss: written before the forward pass
    import torch

    gain = torch.full((3,), 2.0, requires_grad=True)
    gain.data.clamp_(max=1.0)
    loss = gain.pow(2).sum()
    loss.backward()

Near miss: no node saved it
    import torch

    offset = torch.full((3,), 2.0, requires_grad=True)
    loss = (torch.ones(3) + offset).sum()
    offset.data.clamp_(max=1.0)
    loss.backward()

Blind spots:
    A write is seen by the values before and after each statement: one that a later statement undoes is told all the
    same. At the tiers that measure nothing this rule does not run.

Source:
    "In-place correctness checks" in PyTorch's notes on autograd mechanics; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.finding import Finding
from backprobe.rules.lookup import lookup
from backprobe.rules.naming import called
from backprobe.rules.reach import reaches
from backprobe.rules.rule import Rule
from backprobe.rules.steps import state_at
from backprobe.rules.told import told

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, InplaceEvent, Node, Record

RULE = Rule(
    name="saved-changed-unseen",
    code="BP411",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("saved", "version", "node", "stats"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that wrote unseen into what a backward call then used."""
    found: dict[int, list[tuple[InplaceEvent, Node, BackwardCall]]] = {}
    for event in record.inplace_events:
        if event.site is None or event.version_after != event.version_before or not _changed(record, event):
            continue
        used = _used(record, event)
        if used is not None:
            found.setdefault(event.site, []).append((event, *used))
    for site, rows in found.items():
        yield _finding(record, site, rows)


def _changed(record: Record, event: InplaceEvent) -> bool:
    """The measured values before and after differ, where both are recorded."""
    after = state_at(record, event.tensor, event.moment)
    before = state_at(record, event.tensor, event.moment - 1)
    if before is None or after is None or before.value is None or after.value is None:
        return False
    return before.value != after.value


def _used(record: Record, event: InplaceEvent) -> tuple[Node, BackwardCall] | None:
    """The first node that had saved this memory before the write, and a call that ran it after."""
    index = lookup(record)
    storage = index.tensors[event.tensor].storage
    newest = _newest_before(record, event.moment)
    for row in record.saved:
        node = index.nodes[row.node]
        same = row.tensor == event.tensor or (storage is not None and row.storage == storage)
        if not same or node.seq is None or node.seq > newest or "BatchNorm" in node.type:
            continue  # a batch norm writes its running statistics itself, and saves them though its gradient reads none
        for call in record.backward_calls:
            if call.moment_before >= event.moment and node.node in reaches(record)[call.call].ran:
                return node, call
    return None


def _newest_before(record: Record, moment: int) -> int:
    """The sequence number of the youngest node that was surely made by a moment: it made a tensor seen by then."""
    index = lookup(record)
    numbers = (
        index.nodes[row.node].seq or 0
        for row in record.tensor_nodes
        if index.tensors[row.tensor].moment <= moment and row.node in index.nodes
    )
    return max(numbers, default=-1)


def _finding(record: Record, site: int, rows: list[tuple[InplaceEvent, Node, BackwardCall]]) -> Finding:
    event, node, call = rows[0]
    name = called(record, event.tensor)
    return told(
        record,
        RULE,
        site,
        (
            f"This statement changes `{name}` past autograd, after `{node.type}` had saved it for its gradient.",
            "The backward call computes with values that the forward pass never had: the gradient is wrong.",
            "Change it after the backward call, under `torch.no_grad()`; then torch would tell.",
        ),
        binding=name,
        moments=[one.moment for one, _node, _call in rows],
        related=((f"`{node.type}` saved `{name}` here", node.site), ("this backward call uses it", call.site)),
        evidence={"tensor": event.tensor, "version": event.version_after, "saved_by": node.type, "call": call.call},
        tensors=[event.tensor],
        calls=[call.call for _event, _node, call in rows],
    )
