"""BP606 graph-break-non-differentiable: the loss goes through an operation that has no derivative.

What it finds:
    The only way from trained parameters to a root goes through an index (`argmax`), a comparison, a count or a cast to
    an integer. No backward call of the run reaches them. The finding stands at that expression; where it chooses the
    module that rows go through, at the statement that writes what the module gives to these rows.
    So it is of one term of a loss whose other terms train, and of codes that `argmin` looks up in the table that was
    compared, and that a module takes without a straight-through estimator.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    Results of integer and boolean dtype cannot require grad: their history ends without a word. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    importance, layer = nn.Parameter(torch.rand(6)), nn.Linear(6, 1)
    optimizer = torch.optim.SGD([importance, *layer.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 6):
        keep = (importance > 0.3).float()  # <- here
        loss = layer(x * keep).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    importance, layer = nn.Parameter(torch.rand(6)), nn.Linear(6, 1)
    optimizer = torch.optim.SGD([importance, *layer.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 6):
        keep = torch.sigmoid(10 * (importance - 0.3))
        loss = layer(x * keep).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: an accuracy beside the loss, and values taken by an index
    import torch
    from torch import nn

    net = nn.Linear(6, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 6):
        logits = net(x)
        best = logits.argmax(1)
        loss = -logits.gather(1, best[:, None]).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print((best == 0).float().mean().item())

Blind spots:
    `round`, `sign` and `floor` have a derivative, which is zero: that is BP220's.

Source:
    Autograd mechanics in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec.structs import replace

from backprobe.rules.analysis.calls.routed_outputs import routed_at
from backprobe.rules.analysis.graph.break_findings import breaks_of, ended_text, told_break
from backprobe.rules.framework.finding import Related
from backprobe.rules.framework.locations import location
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-non-differentiable",
    code="BP606",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
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
    """One finding per expression without a derivative that trained parameters are seen through only."""
    for one in breaks_of(record, "non-differentiable"):
        routed = routed_at(record, one.site)
        finding = told_break(
            record,
            RULE,
            one,
            f"`{ended_text(one)}` has no derivative: it cuts the loss off from {{who}}.",
            "Use a smooth stand-in (softmax, sigmoid, cross entropy of the scores), or a straight-through estimator."
            if routed is None
            else "Multiply what the chosen module gives by the probability of the choice.",
        )
        if routed is not None:
            chosen = Related(message="the choice is made here", location=finding.location)
            at = location(record, routed.site)
            finding = replace(finding, location=at, related=(chosen, *finding.related))
        yield finding
