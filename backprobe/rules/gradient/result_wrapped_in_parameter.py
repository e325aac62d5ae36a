"""BP231 result-wrapped-in-parameter: `nn.Parameter()` of what trained parameters gave cuts them off.

What it finds:
    The only way from trained parameters to a root goes through `nn.Parameter(...)`, in each step anew. No backward call
    of the run reaches them. The finding stands at that call.

Why it matters:
    The new parameter gets the gradient and is thrown away with it; what computed its values never learns anything.

What PyTorch does:
    A Parameter is a leaf: it takes the values of the tensor that it is given and leaves the history behind. Nothing
    warns. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    hyper, layer = nn.Linear(3, 8), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*hyper.parameters(), layer.bias], lr=0.1)
    for x in torch.randn(3, 6, 4):
        weight = nn.Parameter(hyper(torch.randn(3)).view(2, 4))  # <- here
        loss = (nn.functional.linear(x, weight, layer.bias) - x[:, :2]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    hyper, layer = nn.Linear(3, 8), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*hyper.parameters(), layer.bias], lr=0.1)
    for x in torch.randn(3, 6, 4):
        weight = hyper(torch.randn(3)).view(2, 4)
        loss = (nn.functional.linear(x, weight, layer.bias) - x[:, :2]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a parameter that starts at what another network says, and is then trained itself
    import torch
    from torch import nn

    net = nn.Linear(4, 3).requires_grad_(False)
    latent = nn.Parameter(net(torch.randn(1, 4)))
    optimizer = torch.optim.SGD([latent], lr=0.1)
    for _ in range(3):
        loss = (latent - 1).pow(2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A parameter made once, before the loop, of a network that an optimizer holds and nothing else uses: that may be its
    start value.

Source:
    torch.nn.parameter.Parameter in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.break_findings import breaks_of, replaced, told_break
from backprobe.rules.analysis.source.syntax import site_of, statement
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="result-wrapped-in-parameter",
    code="BP231",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="unsafe",
    needs=("backward", "binding", "module", "optimizer", "grad-life", "raised"),
    explains=("requires-grad-forced", "step-without-gradient", "grad-read-when-none"),
    refines=(
        "parameter-never-used",
        "gradient-never-arrives",
        "parameters-not-in-optimizer",
        "parameters-replaced-after-optimizer",
        "module-built-each-forward",
    ),
)

_LEAST = 2
"""Times that the call ran: once may be a start value."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per call that makes a parameter of a result."""
    for one in breaks_of(record, "parameter"):
        if _runs(record, one.site) < _LEAST:
            continue
        yield told_break(
            record,
            RULE,
            one,
            f"{one.ending.how} makes a new leaf of what {{who}} gave, and leaves its history behind.",
            "Use the tensor itself; a module takes computed weights through `torch.func.functional_call`.",
            list(_fixes(record, one)),
        )


def _runs(record: Record, site: int) -> int:
    """How often a statement ended."""
    return sum(1 for row in record.moments if row.site == site and row.kind == "after-statement")


def _fixes(record: Record, one: Break) -> Iterator[Fix]:
    """A name may hold the tensor itself; the attribute of a module that has such a parameter may not."""
    node, around = one.ending.node, statement(record, site_of(record, one.site))
    to_names = isinstance(around, ast.Assign) and all(isinstance(target, ast.Name) for target in around.targets)
    is_wrap = isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords
    if isinstance(node, ast.Call) and is_wrap and (to_names or isinstance(around, ast.Return)):
        edit = replaced(record, one, node, ast.unparse(node.args[0]))
        yield Fix(title="Use the tensor itself", safety="unsafe", edits=(edit,))
