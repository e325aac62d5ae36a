"""BP601 graph-break-detach: `detach()` or `.data` stands between trained parameters and the loss.

What it finds:
    The only way from trained parameters to a root goes through `detach()`, `detach_()` or `.data`. No backward call of
    the run reaches them. The finding stands at that expression.
    So it is of one term of a loss whose other terms train.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    `detach()` and `.data` give the same values without their history. Nothing warns. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        code = encoder(torch.randn(8, 6)).tanh().detach()  # <- here
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
    for _ in range(3):
        code = encoder(torch.randn(8, 6)).tanh()
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the encoder is frozen, and no optimizer holds it
    import torch
    from torch import nn

    encoder, head = nn.Linear(6, 4), nn.Linear(4, 1)
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        code = encoder(torch.randn(8, 6)).tanh().detach()
        loss = head(code).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: another way from the same parameters stays open, as in an advantage or a stop-gradient
    import torch
    from torch import nn

    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)
    for _ in range(3):
        state, reward = torch.randn(8, 4), torch.randn(8, 1)
        value = critic(state)
        advantage = reward - value.detach()
        loss = -(actor(state).log_softmax(1)[:, :1] * advantage).mean() + (reward - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A way through a library's own code, or through `setattr` and other reflection, is not followed. What is cut in some
    steps only is not found.

Source:
    torch.Tensor.detach in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.returned_gradients import lost_with
from backprobe.rules.analysis.graph.break_findings import breaks_of, replaced, told_break, value_text, without_call
from backprobe.rules.analysis.graph.cuts import derived_from
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.data_flow import GATHERS
from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.framework.finding import Edit, Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-detach",
    code="BP601",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="unsafe",
    needs=("backward", "binding", "module", "optimizer", "grad-life", "raised"),
    explains=(
        "requires-grad-forced",
        "root-without-history",
        "step-without-gradient",
        "grad-read-when-none",
        "gradient-not-derivative",
    ),
    refines=("parameter-never-used", "gradient-never-arrives"),
)

FEW: Final = 3
"""Turns of a statement that are followed: each takes as long as the record."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per expression that cuts trained parameters off for good."""
    for one in breaks_of(record, "detach"):
        if _is_straight_through(record, one) or (one.leaves and lost_with(record).keys() >= set(one.leaves)):
            continue  # the second: what it trains is reached through a gradient whose history was not kept
        edit = _edit(record, one)
        yield told_break(
            record,
            RULE,
            one,
            f"{one.ending.how} cuts {value_text(record, one)} off from {{who}}.",
            f"Drop {one.ending.how}; or, if that is meant, freeze what is behind it and leave it out of the optimizer.",
            [] if edit is None else [Fix(title=f"Drop {one.ending.how}", safety="unsafe", edits=(edit,))],
        )


def _is_straight_through(record: Record, one: Break) -> bool:
    """`x + (round(x) - x).detach()`: the sum has `x` itself, with its history."""
    node = one.ending.node
    above = trees(record)[one.source].parents.get(node)
    cut = node.func if isinstance(node, ast.Call) else node
    inside = cut.value if isinstance(cut, ast.Attribute) else None
    if not isinstance(inside, ast.BinOp) or not isinstance(inside.op, ast.Sub) or not isinstance(above, ast.BinOp):
        return False
    other = above.left if above.right is node else above.right
    return isinstance(above.op, ast.Add) and ast.unparse(other) == ast.unparse(inside.right)


def _edit(record: Record, one: Break) -> Edit | None:
    """The value without its cut; with the `Variable` around it, which cuts as well. None where more stands in the way.

    A collective of `torch.distributed` copies what it is given; a second cut behind this one would have to go as well.
    Where two backward calls walk what was made of it, the second would find the graph freed without the cut.
    """
    call = trees(record)[one.source].parents.get(one.ending.node)
    if isinstance(call, ast.Call) and one.ending.node in call.args:
        called = ast.unparse(call.func).rpartition(".")[2]
        if called in GATHERS:
            return None
        cut = one.ending.node.func if isinstance(one.ending.node, ast.Call) else one.ending.node
        if called == "Variable" and isinstance(cut, ast.Attribute):
            return replaced(record, one, call, ast.unparse(cut.value))
    return None if _is_cut_again(record, one) or _is_walked_twice(record, one) else without_call(record, one)


def _is_cut_again(record: Record, one: Break) -> bool:
    """What the statement gave, or what it made a leaf of, is detached at another statement."""
    rows = [row for row in record.operations if row.function.endswith((".detach", ".data"))]
    given = {row.tensor for row in rows if row.statement == one.site}
    given |= {row.tensor for row in record.bindings if row.site == one.site}
    return any(row.statement != one.site and not given.isdisjoint(row.operands) for row in rows)


def _is_walked_twice(record: Record, one: Break) -> bool:
    """Of one value that the statement gave, two calls walk what was made, of which the first keeps no graph."""
    index = lookup(record)
    for row in [row for row in record.bindings if row.site == one.site][:FEW]:
        known = set(derived_from(record, row.tensor))
        for given in record.operations:  # a call among the arguments of another has a value without a name
            if given.tensor is not None and not known.isdisjoint(given.operands):
                known |= derived_from(record, given.tensor)
        made = {index.node_of[tensor].node for tensor in known if tensor in index.node_of}
        calls = [call for call in record.backward_calls if made & reaches(record)[call.call].met]
        if len(calls) > 1 and not calls[0].retain_graph:
            return True
    return False
