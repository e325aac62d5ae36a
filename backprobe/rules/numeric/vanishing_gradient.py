"""BP507 vanishing-gradient: the first layers get a gradient 100,000 times smaller than the last one's.

What it finds:
    Over at least four weights between loss and input, the gradient against the weight falls from layer to layer, to
    less than 1e-5 of the last layer's, in three backward calls. The finding stands where the activation that shrinks it
    is written, or at the model's call.

Why it matters:
    The first layers stay where they were initialised, and the last ones learn on random features.

What PyTorch does:
    The derivative of a sigmoid is at most 1/4, so that twelve of them shrink a gradient by 4**12. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    layers = []
    for _ in range(12):
        layers += [nn.Linear(16, 16), nn.Sigmoid()]  # <- here
    model = nn.Sequential(*layers, nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in torch.randn(4, 32, 16):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    layers = []
    for _ in range(12):
        layers += [nn.Linear(16, 16), nn.LayerNorm(16), nn.GELU()]
    model = nn.Sequential(*layers, nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in torch.randn(4, 32, 16):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a few sigmoids in a shallow network
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x in torch.randn(4, 32, 16):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: residual blocks whose last layer starts at zero
    import torch
    from torch import nn

    blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)) for _ in range(6))
    for block in blocks:
        nn.init.zeros_(block[2].weight)
    head = nn.Linear(8, 1)
    optimizer = torch.optim.SGD([*blocks.parameters(), *head.parameters()], lr=0.05)
    for x in torch.randn(4, 32, 8):
        hidden = x
        for block in blocks:
            hidden = hidden + block(hidden)
        loss = (head(hidden) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: a deep network of plain ReLU layers
    import torch
    from torch import nn

    layers = []
    for _ in range(6):
        layers += [nn.Linear(32, 32), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in torch.randn(4, 32, 32):
        loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A recurrence that forgets shares one weight over all its steps: only its sum is seen.

Source:
    Hochreiter, Untersuchungen zu dynamischen neuronalen Netzen, 1991; Glorot and Bengio, 2010. The limit 1e-5 was
    measured: over the correct programs of the corpora the least ratio is 1.2e-4, in a network for Burgers' equation.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from backprobe.rules.analysis.calls.chosen_classes import chosen_class
from backprobe.rules.analysis.graph.reach import between, leading_to, reaches
from backprobe.rules.analysis.graph.walks import RESHAPES, op
from backprobe.rules.analysis.losses.loss_curves import relative_gradients
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.scopes import names
from backprobe.rules.analysis.source.syntax import region_in, site_at, trees
from backprobe.rules.analysis.tensors.value_origins import small_start
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import BackwardCall, Record
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="vanishing-gradient",
    code="BP507",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("stats", "node", "backward", "module"),
    thresholds={"ratio": 1e-5},
)
_LEAST = 3
"""Backward calls in which it vanishes; weights between which it must fall are one more."""

_SHRINKING = {"Sigmoid": "SigmoidBackward0", "Tanh": "TanhBackward0", "Softsign": "DivBackward0"}


def check(record: Record) -> Iterator[Finding]:
    """One finding per backward statement whose gradients vanish on their way."""
    found: dict[int, list[tuple[BackwardCall, list[tuple[int, float]]]]] = {}
    for call in record.backward_calls:
        stepped = _stepped_after(record, call)
        every = relative_gradients(record).get(call.call, [])
        ratios = every if stepped is None else [row for row in every if row[0] in stepped]
        if call.site is not None and _vanishes(ratios):
            found.setdefault(call.site, []).append((call, ratios))
    for rows in found.values():
        where = _where(record, rows[0][0]) if _is_one_way(record, *rows[0]) else None
        if len(rows) < _LEAST or where is None:
            continue
        start = small_start(record, [leaf for leaf, _ratio in rows[0][1]], _first_backward(record), _LEAST)
        yield _finding(record, rows, *(where if start is None else (start, None, "")), is_start=start is not None)


def _stepped_after(record: Record, call: BackwardCall) -> frozenset[int] | None:
    """Return what the next steps after a backward call change, up to the call behind them; None: nothing steps.

    Another network that the loss passes through has a scale of its own, and so has an input that wants a gradient.
    """
    steps = [row for row in record.optimizer_events if row.kind == "step" and row.moment > call.moment_before]
    if not steps:
        return None
    end = next((row.moment_before for row in record.backward_calls if row.moment_before > steps[0].moment), None)
    numbers = {row.optimizer for row in steps if end is None or row.moment < end}
    return frozenset(
        row.tensor for optimizer in record.optimizers if optimizer.optimizer in numbers for row in optimizer.tensors
    )


def _first_backward(record: Record) -> int:
    return min(call.moment_before for call in record.backward_calls)


def _vanishes(ratios: list[tuple[int, float]]) -> bool:
    """It falls from the loss to the input, layer by layer, past the limit; a zero was made so, and did not vanish."""
    values = [ratio for _leaf, ratio in ratios]
    if len(values) <= _LEAST or not all(values):
        return False
    falls = sum(after < before for before, after in pairwise(values))
    return values[-1] < threshold(RULE, "ratio") * values[0] and 4 * falls >= 3 * (len(values) - 1)


def _is_one_way(record: Record, call: BackwardCall, ratios: list[tuple[int, float]]) -> bool:
    """The gradient of the last weight went through the first one's operation: of two terms each has its own scale."""
    index, met = lookup(record), reaches(record)[call.call].met
    own = {index.nodes[one].variable: one for one in met}  # a leaf's node may be another one in each call
    nearest, farthest = (own.get(leaf) for leaf, _ratio in (ratios[0], ratios[-1]))
    if nearest is None or farthest is None:
        return False
    takers = leading_to(record).get((nearest, 0), [])
    while takers and all(
        op(index.nodes[one]) in RESHAPES for one in takers
    ):  # a linear layer takes its weight transposed
        takers = [above for one in takers for above in leading_to(record).get((one, 0), [])]
    return any(between(record, taker, farthest) for taker in takers if taker in met)


def _where(record: Record, call: BackwardCall) -> tuple[int, Region | None, str] | None:
    """Where the activation that shrinks the gradient is written: as a module, or as a call in a statement."""
    index = lookup(record)
    ran = [index.nodes[row.node] for row in index.passes_of_call[call.call] if row.position is not None]
    for cls, kind in _SHRINKING.items():
        nodes = [node for node in ran if node.type == kind]
        if len(nodes) < _LEAST:
            continue
        written = [(number, call) for number, file in names(record).items() for call in file.calls.get(cls, ())]
        for number, part in sorted(written, key=lambda one: (one[0], one[1].lineno)):
            site = _site(record, number, part)
            if site is not None:
                return site, region_in(record, number, part), cls
        chosen = None if written else chosen_class(record, cls)
        at = None if chosen is None else _site(record, *chosen)
        if chosen is not None and at is not None:
            return at, region_in(record, *chosen), cls
        most = Counter(node.site for node in nodes if node.site is not None).most_common(1)
        if most:  # of a recurrence its loop, not what starts it
            return most[0][0], None, cls
    made = [node.site for node in ran if node.site is not None and node.type.startswith(("Addmm", "Mm", "Convolution"))]
    return (made[0], None, "") if made else None


def _site(record: Record, source: int, written: ast.expr) -> int | None:
    """The site of the statement around an expression; a class that nothing was recorded in has none."""
    for above in trees(record)[source].ancestors(written):
        if isinstance(above, ast.stmt):
            row = site_at(record, above)
            if row is not None:
                return row.site
    behind = [
        one for one in record.sites if one.source == source and one.line >= written.lineno and one.kind != "module"
    ]
    return min(behind, key=lambda one: one.line).site if behind else None


def _finding(
    record: Record,
    rows: list[tuple[BackwardCall, list[tuple[int, float]]]],
    site: int,
    region: Region | None,
    cls: str,
    *,
    is_start: bool,
) -> Finding:
    """At the activation, or at the statement that gave the layers weights that are too small."""
    ratios = rows[0][1]
    first, last = called(record, ratios[-1][0]), called(record, ratios[0][0])
    part = ratios[-1][1] / ratios[0][1]
    shrinks = f"each {cls} on the way makes it smaller" if cls else "it falls from layer to layer"
    return told(
        record,
        RULE,
        site,
        (
            f"The gradient of `{first}` is {part:.1g} times that of `{last}`, each against its weight: it vanishes.",
            f"Over {len(ratios)} weights {shrinks} (limit {threshold(RULE, 'ratio'):g}): the first do not learn.",
            "This statement gives the layers weights that are too small for their number of inputs: use "
            "`kaiming_normal_` or `xavier_normal_`."
            if is_start
            else "Use ReLU, GELU or SiLU, put a norm between the layers, or add skip connections.",
        ),
        binding=first.partition(".")[0],
        moments=[call.moment_before for call, _ratios in rows],
        region=region,
        related=(("this backward call sends it", rows[0][0].site),),
        evidence={"ratio": part, "limit": threshold(RULE, "ratio"), "weights": len(ratios), "calls": len(rows)},
        tensors=[leaf for leaf, _ratio in ratios],
        calls=[call.call for call, _ratios in rows],
    )
