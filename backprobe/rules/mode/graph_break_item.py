"""BP603 graph-break-item: a value becomes a Python number and goes back into the loss.

What it finds:
    The only way from trained parameters to a root goes through `.item()`, `float()`, `.tolist()` or a function of
    `math`. No backward call of the run reaches them. The finding stands at that expression.
    So it is of one term of a loss whose other terms train; and of a number that was made of a trained tensor alone and
    scales a term, where the tensor itself is added too, and nothing else of the loss trains it.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    A Python number has no history. `.item()` and `.tolist()` say nothing; `float()` of a tracked tensor warns once.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net, log_scale = nn.Linear(4, 4), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), log_scale], lr=0.1)
    for _ in range(3):
        scale = log_scale.exp().item()  # <- here
        loss = scale * net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net, log_scale = nn.Linear(4, 4), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), log_scale], lr=0.1)
    for _ in range(3):
        scale = log_scale.exp()
        loss = scale * net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: numbers for a log, and a schedule that follows the loss
    import torch
    from torch import nn

    net = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    factor = 1.0
    for _ in range(3):
        loss = factor * net(torch.randn(8, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
        factor = 0.5 if float(loss) < 0.1 else 1.0

Near miss: what has a loss of its own is a number in the other one
    import torch
    from torch import nn

    net, log_alpha = nn.Linear(4, 1), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), log_alpha], lr=0.1)
    for x in torch.randn(3, 8, 4):
        size = net(x).pow(2).mean()
        loss = log_alpha.exp().item() * size - log_alpha * (size.detach() - 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Numbers that go through a file, a class of the program with its own arithmetic, or a library are not followed.
    Of the elements of one parameter some of which stay tensors, none is told.

Source:
    torch.Tensor.item in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.break_findings import breaks_of, ended_text, replaced, told_break, without_call
from backprobe.rules.analysis.source.syntax import trees
from backprobe.rules.analysis.terms.lost_factors import lost_factors
from backprobe.rules.framework.finding import Edit, Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-item",
    code="BP603",
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
    refines=("parameter-never-used",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per expression that makes a number of what should have stayed a tensor."""
    every = {one.ending.node: one for one in (*lost_factors(record), *breaks_of(record, "item"))}
    for one in every.values():
        edit = _without(record, one)
        yield told_break(
            record,
            RULE,
            one,
            f"`{ended_text(one)}` is a Python number in the loss: it is cut off from {{who}}.",
            "Keep it a tensor on the way to the loss; take the number where it is printed.",
            [] if edit is None else [Fix(title="Keep it a tensor", safety="unsafe", edits=(edit,))],
        )


def _without(record: Record, one: Break) -> Edit | None:
    """`x.item()` -> `x`, `float(x)` -> `x`; a list has to become another thing than its elements."""
    node = one.ending.node
    gathers = ast.Expr | ast.ListComp | ast.GeneratorExp | ast.List
    if any(isinstance(above, gathers) for above in trees(record)[one.source].ancestors(node)):
        return None  # a list of numbers becomes a tensor again further on
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        return replaced(record, one, node, ast.unparse(node.args[0]))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return without_call(record, one)
    return None
