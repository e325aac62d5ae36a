"""BP842 log-variance-as-deviation: what the divergence takes for a log-variance is drawn with as a log-deviation.

What it finds:
    One output of the encoder stands in the divergence as a log-variance, by itself and under one `exp`, and noise is
    multiplied by its whole `exp`, not by that of its half. Or the divergence takes a square for the variance of what
    the noise is scaled with as `exp`.

Why it matters:
    The divergence is that of another distribution than the one which is drawn from: the spread that it asks for is not
    the spread of the samples.

What PyTorch does:
    Nothing: both are formulas like others. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for x in torch.randn(3, 8, 6):
        mean, scale = encoder(x).chunk(2, dim=1)
        z = mean + torch.randn(8, 2) * scale.exp()
        divergence = -0.5 * (1 + scale - mean.pow(2) - scale.exp()).sum(1).mean()  # <- here
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

Near miss: a log-deviation in both
    import torch
    from torch import nn

    encoder, decoder = nn.Linear(6, 4), nn.Linear(2, 6)
    optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.01)
    for x in torch.randn(3, 8, 6):
        mean, scale = encoder(x).chunk(2, dim=1)
        z = mean + torch.randn(8, 2) * scale.exp()
        divergence = -0.5 * (1 + 2 * scale - mean.pow(2) - (2 * scale).exp()).sum(1).mean()
        loss = (decoder(z) - x).pow(2).mean() + divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A log-deviation in the divergence of which half is drawn with, and divergences of `torch.distributions`, are not
    judged.

Source:
    D. Kingma and M. Welling: Auto-encoding variational Bayes, appendix B; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import op, op_of, operands, walked
from backprobe.rules.analysis.losses.gaussian_terms import gaussian_terms, users
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="log-variance-as-deviation",
    code="BP842",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward"),
)

LEAST: Final = 2
"""Sums: once is no pattern."""
_SQUARES: Final = ("Pow", "Square")


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that computes such a divergence."""
    found: dict[int, list[tuple[Node, Node]]] = {}
    for whole, drawn in (*_whole(record), *_squared(record)):
        if whole.site is not None:
            found.setdefault(whole.site, []).append((whole, drawn))
    for site, ones in found.items():
        if len(ones) >= LEAST:
            yield _finding(record, site, ones)


def _whole(record: Record) -> Iterator[tuple[Node, Node]]:
    """The sums whose log-variance noise is scaled with as a whole, with the node that scales."""
    drawn = _drawn(record)
    for one in gaussian_terms(record):
        if one.scale in drawn:
            yield one.top, drawn[one.scale]


def _drawn(record: Record) -> dict[tuple[int, int], Node]:
    """What stands under an `exp` that noise is multiplied by, in a sum: the value and its output, with the product."""
    index, found = lookup(record), dict[tuple[int, int], "Node"]()
    for one in nodes_like(record, lambda kind: op_of(kind) == "Exp"):
        edges = index.edges_of[one.node]
        product = _noise_times(record, one.node) if one.node in walked(record) and edges else None
        if product is not None and edges[0].to_node is not None:
            found[edges[0].to_node, edges[0].input_nr] = product
    return found


def _noise_times(record: Record, node: int) -> Node | None:
    """The product of a node's value with an untracked tensor of its size, which is then added to a tracked value."""
    index = lookup(record)
    for user in users(record).get(node, ()):
        row = index.nodes[user]
        if op(row) != "Mul" or None not in operands(record, user) or row.outputs != index.nodes[node].outputs:
            continue
        sums = [one for one in users(record).get(user, ()) if op(index.nodes[one]) == "Add"]
        if any(None not in operands(record, one) and len(operands(record, one)) == 2 for one in sums):
            return row
    return None


def _squared(record: Record) -> Iterator[tuple[Node, Node]]:
    """A square whose logarithm is in the same sum, of a value that noise is scaled with under an `exp`."""
    index = lookup(record)
    scales = dict(_halves(record))
    for one in nodes_like(record, lambda kind: op_of(kind) in _SQUARES):
        edges = index.edges_of[one.node]
        place = (edges[0].to_node, edges[0].input_nr) if edges and edges[0].to_node is not None else None
        logged = any(_reaches_log(record, user) for user in users(record).get(one.node, ()))
        if one.node in walked(record) and place is not None and place in scales and logged:
            yield one, scales[place]


def _halves(record: Record) -> Iterator[tuple[tuple[int, int], Node]]:
    """What stands under an `exp` that noise is multiplied by, also behind one factor."""
    index = lookup(record)
    for place, product in _drawn(record).items():
        yield place, product
        if op(index.nodes[place[0]]) in ("Mul", "Div"):
            for edge in index.edges_of[place[0]]:
                if edge.to_node is not None:
                    yield (edge.to_node, edge.input_nr), product


def _reaches_log(record: Record, node: int) -> bool:
    """It is a logarithm, or adds a constant under one."""
    kind = op(lookup(record).nodes[node])
    if kind == "Add" and len([one for one in operands(record, node) if one is not None]) == 1:
        return any(op(lookup(record).nodes[one]) == "Log" for one in users(record).get(node, ()))
    return kind == "Log"


def _finding(record: Record, site: int, ones: list[tuple[Node, Node]]) -> Finding:
    _first, drawn = ones[0]
    return told(
        record,
        RULE,
        site,
        (
            "The divergence and the draw read one output of the model in two ways, as log-variance and log-deviation.",
            "The divergence is that of another distribution than the one which is drawn from.",
            "Draw with `(0.5 * s).exp()` if `s` is a log-variance; else write the divergence with `2 * s`.",
        ),
        binding="log-variance",
        moments=[one.first_seen for one, _drawn in ones],
        related=(("noise is scaled here", drawn.site if drawn.site != site else None),),
        evidence={"sums": len(ones), "assumed": "the divergence is meant to be that of what is drawn"},
    )
