"""BP508 exploding-gradient: the gradient grows a thousandfold on its way through one repeated statement.

What it finds:
    A statement that runs several times in one forward pass, as a recurrence does, hands its gradient on larger each
    time: over at least four turns to more than a thousand times, in three backward calls, and nothing clips it. The
    finding stands at that statement.

Why it matters:
    The first steps of the sequence decide everything, and one long sequence throws the weights away.

What PyTorch does:
    It multiplies by the transposed weight once per turn; a largest singular value above 1 grows as its power. Seen in
    torch 2.13.

Example:
    import torch
    from torch import nn

    recurrent, readout = nn.Linear(8, 8, bias=False), nn.Linear(8, 1)
    with torch.no_grad():
        recurrent.weight.copy_(torch.eye(8) * 3)
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-12)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(12):
            h = recurrent(h)  # <- here
        loss = readout(h).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    recurrent, readout = nn.Linear(8, 8, bias=False), nn.Linear(8, 1)
    with torch.no_grad():
        recurrent.weight.copy_(torch.eye(8))
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-3)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(12):
            h = torch.tanh(recurrent(h))
        loss = readout(h).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the norm is clipped
    import torch
    from torch import nn

    recurrent, readout = nn.Linear(8, 8, bias=False), nn.Linear(8, 1)
    with torch.no_grad():
        recurrent.weight.copy_(torch.eye(8) * 3)
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-3)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(12):
            h = recurrent(h)
        loss = readout(h).mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_([*recurrent.parameters(), *readout.parameters()], 1.0)
        optimizer.step()

Near miss: a few turns of mild growth
    import torch
    from torch import nn

    recurrent, readout = nn.Linear(8, 8, bias=False), nn.Linear(8, 1)
    with torch.no_grad():
        recurrent.weight.copy_(torch.eye(8) * 1.2)
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-3)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(8):
            h = recurrent(h)
        loss = readout(h).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a loss that is a large sum
    import torch
    from torch import nn

    recurrent, readout = nn.Linear(8, 8), nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-9)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(8):
            h = torch.tanh(recurrent(h))
        loss = 1e6 * readout(h).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Growth through different layers, or inside `nn.RNN` and its like, is not seen.

Source:
    Pascanu, Mikolov, Bengio, On the difficulty of training recurrent neural networks, 2013. The limit 1e3 was measured:
    over the correct programs of the corpora a repeated statement grows its gradient at most 45 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, value_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="exploding-gradient",
    code="BP508",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("stats", "node", "backward", "optimizer"),
    explains=("divergence", "nonfinite-forward", "nonfinite-gradient"),
    thresholds={"growth": 1e3},
)
_LEAST = 3
"""Backward calls in which it explodes; turns of the statement, one more."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that its gradient explodes in."""
    if any(row.kind.startswith("clip") for row in record.optimizer_events):
        return
    found: dict[int, dict[int, list[float]]] = {}
    calls = lookup(record).calls
    for (number, site, _kind), norms in _through_statements(record).items():
        if _explodes(norms):
            found.setdefault(site, {}).setdefault(number, norms)
    for site, rows in found.items():
        if len(rows) >= _LEAST:
            yield _finding(record, site, [(calls[number], norms) for number, norms in rows.items()])


def _through_statements(record: Record) -> dict[tuple[int, int, str], list[float]]:
    """The norms of the gradients that a statement's products of matrices got, in order, by call, site and kind.

    By kind, since a turn may add the product of its input, `h @ w + layer(x)`, which gets the same gradient.
    """
    index = lookup(record)
    found: dict[tuple[int, int, str], list[tuple[int, float]]] = {}
    for node in nodes_like(record, lambda kind: kind.startswith(("Addmm", "Mm", "Bmm", "Mv"))):
        if node.site is None or node.site not in _repeated(record):
            continue
        for row in index.passes_of_node[node.node]:
            measured = row.grad_output
            if row.position is not None and measured is not None and measured.norm is not None:
                found.setdefault((row.call, node.site, node.type), []).append((row.position, measured.norm))
    return {place: [norm for _position, norm in sorted(rows)] for place, rows in sorted(found.items())}


@table
def _repeated(record: Record) -> frozenset[int]:
    """Statements inside a loop: of others several products are several layers."""
    return frozenset(site.site for site in record.sites if site.loop_line is not None)


def _explodes(norms: list[float]) -> bool:
    """It grows nearly every turn, past the limit."""
    if len(norms) <= _LEAST or not norms[0]:
        return False
    rises = sum(after > before for before, after in pairwise(norms))
    return norms[-1] > threshold(RULE, "growth") * norms[0] and 4 * rises >= 3 * (len(norms) - 1)


def _finding(record: Record, site: int, rows: list[tuple[BackwardCall, list[float]]]) -> Finding:
    call, norms = rows[0]
    row = site_of(record, site)
    value = value_of(statement(record, row))
    name = row.targets[0] if row.targets else "the state"
    factor = norms[-1] / norms[0]
    each = factor ** (1 / (len(norms) - 1))
    return told(
        record,
        RULE,
        site,
        (
            f"The gradient of `{name}` grows {factor:.2g} times over {len(norms)} turns of this statement.",
            f"Each turn multiplies it by {each:.2g} (limit {threshold(RULE, 'growth'):g} in all); nothing clips it.",
            "Start from a smaller or orthogonal weight, clip the norm, use a gated cell, or unroll fewer turns.",
        ),
        binding=name,
        moments=[one.moment_before for one, _norms in rows],
        region=None if value is None else region_in(record, row.source, value),
        related=(("this backward call sends it", call.site),),
        evidence={"growth": factor, "limit": threshold(RULE, "growth"), "turns": len(norms), "calls": len(rows)},
        tensors=[root.tensor for one, _norms in rows for root in one.roots if root.tensor is not None],
        calls=[one.call for one, _norms in rows],
    )
