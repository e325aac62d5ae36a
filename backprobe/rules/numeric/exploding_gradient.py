"""BP508 exploding-gradient: the gradient grows a thousandfold through one repeated statement, or from layer to layer.

What it finds:
    A statement that runs several times in one forward pass, as a recurrence does, hands its gradient on larger each
    time: over at least four turns to more than a thousand times, in three backward calls, and nothing clips it. One
    call is enough where it grew more than a millionfold and the next values overflowed. A statement in no loop counts
    if it multiplies with one weight again and again, as the method of a cell does, or with a matrix that is no weight,
    as the layers of a graph network do. The finding stands where the program made that matrix, or gave that weight
    values with a gain above 1; else at the statement that repeats. Or one statement draws the weights
    of four layers and more so large that each doubles what it is given, and the gradient grows a hundredfold through
    them: the finding stands there.

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
        recurrent.weight.copy_(torch.eye(8) * 3)  # <- here
    optimizer = torch.optim.SGD([*recurrent.parameters(), *readout.parameters()], lr=1e-12)
    for x in torch.randn(4, 4, 8):
        h = x
        for _ in range(12):
            h = recurrent(h)
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

Near miss: two terms of a loss, each through its own layers
    import torch
    from torch import nn

    torch.manual_seed(0)
    near, far = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    for layer in (*near, *far):
        nn.init.orthogonal_(layer.weight, gain=1.5)
    optimizer = torch.optim.SGD([*near.parameters(), *far.parameters()], lr=1e-4)
    for x in torch.randn(4, 4, 8):
        loss = 1e2 * near(x).mean() + 1e-3 * far(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Growth through layers whose weights several statements drew, or inside `nn.RNN` and its like, is not seen.

Source:
    Pascanu, Mikolov, Bengio, On the difficulty of training recurrent neural networks, 2013. The limit 1e3 was measured:
    over the correct programs of the corpora a repeated statement grows its gradient at most 45 times.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement, value_of
from backprobe.rules.analysis.tensors.bad_values import bad_since
from backprobe.rules.analysis.tensors.layer_growth import (
    Growth,
    are_in_turn,
    constant_factor,
    grown_layers,
    is_product,
    through_statements,
    weight_of,
)
from backprobe.rules.analysis.tensors.value_origins import extreme_start
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

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

_GAIN = 0.2
"""Of what `extreme_start` takes for extreme: a weight that is applied again and again grows with a gain above 1."""


_SMALL: Final = 0.1
"""Norm of a gradient that has not exploded, however much smaller the last turn's was."""


_LAYERS: Final = 100
"""The limit of growth where one statement gave all layers weights that each double what they are given."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that its gradient explodes in."""
    if any(row.kind.startswith("clip") for row in record.optimizer_events):
        return
    found: dict[int, dict[int, list[float]]] = {}
    seen: dict[int, set[int]] = {}
    calls = lookup(record).calls
    for (number, site, _which), norms in through_statements(record).items():
        if len(norms) > _LEAST:
            seen.setdefault(site, set()).add(number)
        if _explodes(norms):
            found.setdefault(site, {}).setdefault(number, norms)
    layers = [one for one in grown_layers(record, _LAYERS) if one.norms[-1] > _SMALL]
    for site, rows in found.items():
        if len(rows) >= _LEAST or _burst(record, rows, seen[site]):
            finding = _finding(record, site, [(calls[number], norms) for number, norms in rows.items()])
            is_chain = are_in_turn(record, site, next(iter(rows)), len(next(iter(rows.values()))))
            if is_chain and not any(_is_of_layers(record, site, one) for one in layers):
                yield finding
    for one in layers:
        yield _of_layers(record, one)


def _is_of_layers(record: Record, site: int, growth: Growth) -> bool:
    """The statement multiplies with the weights of those layers."""
    rows = (node for node in nodes_like(record, is_product) if node.site == site)
    return any(weight_of(record, node) in growth.weights for node in rows)


def _of_layers(record: Record, growth: Growth) -> Finding:
    index, norms = lookup(record), growth.norms
    factor = norms[-1] / norms[0]
    each = factor ** (1 / (len(norms) - 1))
    calls = [index.calls[number] for number in growth.calls]
    return told(
        record,
        RULE,
        growth.site,
        (
            f"This statement gives {len(norms)} layers weights that are too large for their number of inputs.",
            f"The gradient grows {factor:.2g} times through them, {each:.2g} times in each; nothing clips it.",
            "Draw them with a deviation of one by the root of the inputs: `kaiming_normal_`, `xavier_normal_`.",
        ),
        binding=called(record, growth.weights[-1]),
        moments=[call.moment_before for call in calls],
        related=(("this backward call sends it", calls[0].site),),
        evidence={"growth": factor, "limit": _LAYERS, "layers": len(norms), "calls": len(calls)},
        tensors=[root.tensor for call in calls for root in call.roots if root.tensor is not None],
        calls=[call.call for call in calls],
    )


def _burst(record: Record, rows: dict[int, list[float]], seen: set[int]) -> bool:
    """The first call's gradients grew past the square of the limit, and after its step a forward pass overflowed."""
    norms = rows.get(min(seen), [])
    large = bool(norms) and norms[-1] > threshold(RULE, "growth") ** 2 * norms[0]
    began = lookup(record).calls[min(seen)].moment_before
    return large and any(moment > began for moment in bad_since(record).values())


def _explodes(norms: list[float]) -> bool:
    """It grows nearly every turn, past the limit."""
    if len(norms) <= _LEAST or not norms[0]:
        return False
    rises = sum(after > before for before, after in pairwise(norms))
    grows = norms[-1] > threshold(RULE, "growth") * norms[0] and 4 * rises >= 3 * (len(norms) - 1)
    return grows and norms[-1] > _SMALL


def _finding(record: Record, site: int, rows: list[tuple[BackwardCall, list[float]]]) -> Finding:
    call, norms = rows[0]
    row = site_of(record, site)
    value = value_of(statement(record, row))
    name = row.targets[0] if row.targets else "the state"
    weights = {
        weight
        for node in nodes_like(record, is_product)
        if node.site == site and (weight := weight_of(record, node)) is not None
    }
    matrix = constant_factor(record, site)
    least = 1.0 if matrix is not None else _GAIN
    start = extreme_start(record, sorted(weights), call.moment_before, least=least)
    matrix = matrix if start is None else None
    start = start or matrix
    factor = norms[-1] / norms[0]
    each = factor ** (1 / (len(norms) - 1))
    return told(
        record,
        RULE,
        site if start is None else start.site,
        (
            f"The gradient of `{name}` grows {factor:.2g} times over {len(norms)} runs of this statement.",
            f"Each run multiplies it by {each:.2g} (limit {threshold(RULE, 'growth'):g} in all); nothing clips it.",
            "Start from a smaller or orthogonal weight, clip the norm, use a gated cell, or unroll fewer steps."
            if start is None
            else "This statement makes the matrix of each run: divide it by its row sums, as a graph's by its degrees."
            if matrix is not None
            else f"This statement gives `{called(record, start.tensor)}` its values: start it smaller, or orthogonal.",
        ),
        binding=name,
        moments=[one.moment_before for one, _norms in rows],
        region=None if value is None or start is not None else region_in(record, row.source, value),
        related=(
            ("it grows in this statement", None if start is None else site),
            ("this backward call sends it", call.site),
        ),
        evidence={"growth": factor, "limit": threshold(RULE, "growth"), "turns": len(norms), "calls": len(rows)},
        tensors=[root.tensor for one, _norms in rows for root in one.roots if root.tensor is not None],
        calls=[one.call for one, _norms in rows],
    )
