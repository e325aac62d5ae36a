"""BP767 parameter-in-two-groups: a parameter is handed to an optimizer in two of its groups.

What it finds:
    The constructor of an optimizer, or `add_param_group`, raised because a parameter is in more than one group. The
    finding stands at the last group of a list that the program writes, else at the call.

Why it matters:
    The program stops here. Two groups give the parameter two learning rates, and a step would move it twice.

What PyTorch does:
    `Optimizer.add_param_group` compares the tensors of a new group with those of all others and raises a ValueError:
    "some parameters appear in more than one parameter group". Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    groups = [{"params": model.parameters()}, {"params": model[1].parameters(), "lr": 0.01}]  # <- here
    optimizer = torch.optim.SGD(groups, lr=0.1)

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    groups = [{"params": model[0].parameters()}, {"params": model[1].parameters(), "lr": 0.01}]
    optimizer = torch.optim.SGD(groups, lr=0.1)

Near miss: a parameter that two modules share is listed once by `parameters()`
    import torch
    from torch import nn

    table, out = nn.Embedding(5, 4), nn.Linear(4, 5, bias=False)
    out.weight = table.weight
    both = nn.ModuleList([table, out])
    optimizer = torch.optim.SGD([{"params": both.parameters(), "lr": 0.1}])
    out(table(torch.arange(5))).logsumexp(1).sum().backward()
    optimizer.step()

Blind spots:
    The same parameter in two optimizers raises nothing and is not judged: a shared trunk may be meant to be.

Source:
    torch.optim.Optimizer.add_param_group in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.parameter_lists import last_group
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.analysis.tensors.autograd_errors import level_of, raised_with_text
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="parameter-in-two-groups",
    code="BP767",
    since="0.1",
    severity="error",
    confidence="proven",
    fix="manual",
    needs=("raised",),
)

_TEXT: Final = "appear in more than one parameter group"


def check(record: Record) -> Iterator[Finding]:
    """One finding per constructor or `add_param_group` that raised."""
    for raised in raised_with_text(record, _TEXT):
        region = None if raised.site is None else last_group(record, site_of(record, raised.site))
        is_apart = region is not None and region.start_line != site_of(record, raised.site or 0).line
        yield told(
            record,
            RULE,
            raised.site or 0,
            (
                "A parameter stands in two groups of this optimizer.",
                "Each group has a learning rate of its own, so torch refuses it.",
                "Leave the parameters of one group out of the other: compare them by `id`.",
            ),
            binding="groups",
            moments=[raised.moment or 0],
            region=region,
            related=(("raised here", raised.site if is_apart else None),),
            evidence={"raised": raised.message},
            level=level_of(record, raised),
        )
