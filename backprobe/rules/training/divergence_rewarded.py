"""BP841 divergence-rewarded: the divergence of a Gaussian code from its prior is made larger by the loss.

What it finds:
    The sum `1 + s - m ** 2 - exp(s)` of means and log-variances enters the loss with the sign that makes its negative,
    the divergence from the standard normal distribution, grow with each step.

Why it matters:
    The code is driven away from the prior without bound; the loss falls for ever and samples from the prior mean
    nothing.

What PyTorch does:
    Nothing: a sign is the program's. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for x in torch.randn(3, 8, 6):
        mean, scale = encoder(x).chunk(2, dim=1)
        z = mean + torch.randn(8, 2) * (0.5 * scale).exp()
        divergence = 0.5 * (1 + scale - mean.pow(2) - scale.exp()).sum(1).mean()  # <- here
        loss = (decoder(z) - x).pow(2).mean() + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for x in torch.randn(3, 8, 6):
        mean, scale = encoder(x).chunk(2, dim=1)
        z = mean + torch.randn(8, 2) * (0.5 * scale).exp()
        divergence = -0.5 * (1 + scale - mean.pow(2) - scale.exp()).sum(1).mean()
        loss = (decoder(z) - x).pow(2).mean() + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the evidence bound is maximised
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01, maximize=True)
    for x in torch.randn(3, 8, 6):
        mean, scale = encoder(x).chunk(2, dim=1)
        z = mean + torch.randn(8, 2) * (0.5 * scale).exp()
        bound = 0.5 * (1 + scale - mean.pow(2) - scale.exp()).sum(1).mean() - (decoder(z) - x).pow(2).mean()
        optimizer.zero_grad()
        bound.backward()
        optimizer.step()

Blind spots:
    A divergence of `torch.distributions`, and one whose exponential is used elsewhere too, are not judged.

Source:
    D. Kingma and M. Welling: Auto-encoding variational Bayes, appendix B; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.gaussian_terms import GaussianTerm, gaussian_terms, signs
from backprobe.rules.analysis.losses.maximised import is_maximised
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="divergence-rewarded",
    code="BP841",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward", "stats", "optimizer"),
)

LEAST: Final = 2
"""Sums: once is no pattern."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that computes such a sum."""
    found: dict[int, list[GaussianTerm]] = {}
    for one in gaussian_terms(record):
        site, seen = one.top.site, signs(record, one.exponential.node) | signs(record, one.square.node)
        if seen == {1}:
            return  # another one is made smaller: an introspective autoencoder sets the two against each other
        if site is not None and seen == {-1}:
            found.setdefault(site, []).append(one)
    if is_maximised(record):
        return
    for site, ones in found.items():
        if len(ones) >= LEAST:
            yield _finding(record, site, ones)


def _finding(record: Record, site: int, ones: list[GaussianTerm]) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            "The divergence of the code from its prior enters the loss with a minus: each step makes it larger.",
            "The code is driven away from the prior without bound, and samples from the prior mean nothing.",
            "Add it instead: `-0.5 * (1 + s - m ** 2 - exp(s))`.",
        ),
        binding="divergence",
        moments=[one.top.first_seen for one in ones],
        evidence={"sums": len(ones), "assumed": "the divergence is to become smaller"},
    )
