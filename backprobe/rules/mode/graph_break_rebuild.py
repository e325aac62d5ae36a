"""BP605 graph-break-rebuild: a tensor is made anew from tensors that have a history.

What it finds:
    The only way from trained parameters to a root goes through `torch.tensor(...)`, `torch.Tensor(...)` or
    `new_tensor(...)` of tracked tensors, or through `all_gather`. No backward call of the run reaches them. The finding
    stands at that call.
    So it is of one term of a loss whose other terms train.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    `torch.tensor` copies values into a new leaf, also out of a list of tensors. It warns if a tensor itself is given.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    experts, mixing = nn.ModuleList(nn.Linear(4, 1) for _ in range(3)), nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*experts.parameters(), mixing], lr=0.1)
    for x in torch.randn(3, 4):
        scores = torch.tensor([expert(x).squeeze() for expert in experts])  # <- here
        loss = (scores * mixing.softmax(0)).sum().pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    experts, mixing = nn.ModuleList(nn.Linear(4, 1) for _ in range(3)), nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([*experts.parameters(), mixing], lr=0.1)
    for x in torch.randn(3, 4):
        scores = torch.stack([expert(x).squeeze() for expert in experts])
        loss = (scores * mixing.softmax(0)).sum().pow(2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a tensor of plain numbers
    import torch
    from torch import nn

    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 5, 4):
        goal = torch.tensor([sum(row) for row in x.tolist()])
        loss = (net(x).squeeze(1) - goal).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    `copy.deepcopy`, pickling and files are not followed.

Source:
    torch.tensor in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.break_findings import breaks_of, replaced, told_break
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-rebuild",
    code="BP605",
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


def check(record: Record) -> Iterator[Finding]:
    """One finding per call that copies tracked values into a new tensor."""
    for one in breaks_of(record, "rebuild"):
        yield told_break(
            record,
            RULE,
            one,
            f"{one.ending.how} copies values into a new tensor without a history, cut off from {{who}}.",
            "Put tensors together with `torch.stack` or `torch.cat`; a single one needs no copy.",
            list(_fixes(record, one)),
        )


def _fixes(record: Record, one: Break) -> Iterator[Fix]:
    node = one.ending.node
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        given = node.args[0]
        has_numbers = any(isinstance(part, ast.Constant) for part in getattr(given, "elts", ()))
        if isinstance(given, ast.List | ast.ListComp) and not has_numbers and ast.unparse(node.func) == "torch.tensor":
            edit = replaced(record, one, node.func, "torch.stack")
            yield Fix(title="Stack the tensors", safety="unsafe", edits=(edit,))
