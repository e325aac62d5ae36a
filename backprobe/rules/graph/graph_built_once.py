"""BP303 graph-built-once: what every turn of the loop walks was computed once, before the loop.

What it finds:
    A backward call raised because a part of its graph was made before the loop, and the call of the first turn freed
    it. The finding stands at the statement that made it; related are its use in the loop and the call that raised.
    Or nothing raises, as the value is detached: `alpha = log_alpha.exp().detach()` before the loop, while an optimizer
    steps on `log_alpha` in it, and the losses read `alpha`.

Why it matters:
    The program stops in its second turn. With `retain_graph=True` it would run and be wrong: the parameters move, while
    the value computed from them stays what it was at the start.

What PyTorch does:
    A backward call frees what the nodes saved, whoever made them. The second turn walks the same nodes and raises
    `RuntimeError: Trying to backward through the graph a second time`. Seen in torch 2.13.

Example:
    import torch

    scale = torch.ones(3, requires_grad=True)
    head = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([scale, head], lr=0.1)
    table = torch.sin(torch.arange(3.0) * scale)  # <- here
    for x in torch.ones(3, 3):
        loss = ((x + table) * head).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch

    scale = torch.ones(3, requires_grad=True)
    head = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([scale, head], lr=0.1)
    for x in torch.ones(3, 3):
        table = torch.sin(torch.arange(3.0) * scale)
        loss = ((x + table) * head).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the table is a constant
    import torch

    scale = torch.ones(3, requires_grad=True)
    head = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([head], lr=0.1)
    with torch.no_grad():
        table = torch.sin(torch.arange(3.0) * scale)
    for x in torch.ones(3, 3):
        loss = ((x + table) * head).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a distance to where training began
    import torch

    scale = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([scale], lr=0.1)
    start = scale.exp().detach()
    for x in torch.ones(3, 3):
        loss = ((x * scale.exp()).sum() - 1).pow(2) + (scale.exp() - start).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A program that walks one loss twice without changing a parameter between is BP301's: nothing says that the loop was
    to compute it anew. A part that was never bound to a name is not followed.

Source:
    torch.Tensor.backward in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from backprobe.rules.analysis.graph.carried_graphs import Carried, WalkedAgain, walked_again
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.tensors.autograd_errors import level_of
from backprobe.rules.analysis.training.stale_values import StaleValue, stale_values
from backprobe.rules.framework.finding import Finding
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record

RULE = Rule(
    name="graph-built-once",
    code="BP303",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised", "backward", "node", "binding"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward call of a later turn that walked what was made before the loop."""
    for again in walked_again(record):
        if again.cause == "built-once" and again.carried is not None:
            yield _finding(record, again, again.carried)
    for stale in stale_values(record):
        yield _of_constant(record, stale)


def _of_constant(record: Record, one: StaleValue) -> Finding:
    who, name = together(record, [one.leaf]), one.name
    finding = told(
        record,
        RULE,
        one.site,
        (
            f"`{name}` is computed once from {who}, which an optimizer changes in every iteration.",
            f"What the losses read as `{name}` is the value from before the first step.",
            "Compute it in the loop.",
        ),
        binding=name,
        moments=[one.moment],
        related=(("each iteration reads it here", one.read), ("this step changes what it was made of", one.step)),
        evidence={"leaf": one.leaf, "updates": one.updates, "assumed": f"{name} is to follow"},
        tensors=[one.leaf],
        level="warning",
    )
    return msgspec.structs.replace(finding, confidence="likely")


def _finding(record: Record, again: WalkedAgain, carried: Carried) -> Finding:
    made = lookup(record).bindings_of[carried.tensor][0].site
    return told(
        record,
        RULE,
        made,
        (
            f"`{carried.name}` is computed once, and every iteration of the loop walks its graph again.",
            "The backward call of the first iteration frees that graph; the second one raises.",
            "Compute it in the loop, from the parameters as they are then; a constant is made under `torch.no_grad()`.",
        ),
        binding=carried.name,
        moments=[again.second.moment_before],
        related=(
            (f"each iteration uses `{carried.name}` here", carried.site),
            ("this backward call raises in the second iteration", again.second.site),
        ),
        evidence={
            "tensor": carried.tensor,
            "call": again.second.call,
            "freed_by_call": again.first.call,
            "nodes": [lookup(record).nodes[node].type for node in again.nodes[:8]],
        },
        tensors=[carried.tensor],
        calls=[again.second.call],
        level=level_of(record, again.raised),
    )
