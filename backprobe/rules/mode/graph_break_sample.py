"""BP607 graph-break-sample: the loss depends on a distribution's parameters only through `sample()`.

What it finds:
    The only way from trained parameters to a root goes through `sample()` of a distribution. No backward call of the
    run reaches them, through `log_prob` or otherwise. The finding stands at that call.
    So it is if other terms of the loss train them, but what follows the sample cannot.

Why it matters:
    The forward pass is right, the loss may even fall, and the parameters behind the cut never learn anything.

What PyTorch does:
    `sample()` runs under no_grad. `rsample()` computes the sample from the parameters and noise, so that a gradient
    goes through it; a distribution that has it says so by `has_rsample`. Seen in torch 2.13.

Example:
    import torch
    from torch import nn
    from torch.distributions import Normal

    encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 6):
        posterior = Normal(encoder(x), 1.0)
        latent = posterior.sample()  # <- here
        loss = (decoder(latent) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn
    from torch.distributions import Normal

    encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 6):
        posterior = Normal(encoder(x), 1.0)
        latent = posterior.rsample()
        loss = (decoder(latent) - x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a policy gradient, which reaches the parameters through log_prob
    import torch
    from torch import nn
    from torch.distributions import Categorical

    policy = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for state in torch.randn(3, 8, 4):
        choices = Categorical(logits=policy(state))
        action = choices.sample()
        reward = (action == 0).float()
        loss = -(choices.log_prob(action) * (reward - reward.mean())).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A sampler of the program's own or of another library is not known.

Source:
    torch.distributions in PyTorch's documentation, "Pathwise derivative"; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.break_findings import breaks_of, ended_text, replaced, told_break
from backprobe.rules.analysis.terms.samples import WITHOUT_RSAMPLE
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.analysis.graph.breaks import Break
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="graph-break-sample",
    code="BP607",
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
    """One finding per `sample()` that stands between trained parameters and every root."""
    for one in breaks_of(record, "sample"):
        discrete = _is_discrete(record, one)
        advice = "Give the loss a `log_prob` of the sample" if discrete else "Draw it with `rsample()`"
        yield told_break(
            record,
            RULE,
            one,
            f"`{ended_text(one)}` runs without gradients: the sample is cut off from {{who}}.",
            f"{advice}; or, if that is meant, leave its parameters out of the optimizer.",
            [] if discrete else list(_fixes(record, one)),
        )


def _is_discrete(record: Record, one: Break) -> bool:
    """The distribution that was sampled there has discrete values."""
    names = {
        row.function.split(".")[-2] for row in record.watched_calls if row.site == one.site and "." in row.function
    }
    return bool(names & WITHOUT_RSAMPLE)


def _fixes(record: Record, one: Break) -> Iterator[Fix]:
    node = one.ending.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sample":
        text = f"{ast.unparse(node.func.value)}.rsample"
        yield Fix(title="Draw it with `rsample()`", safety="unsafe", edits=(replaced(record, one, node.func, text),))
