"""BP778 average-weights-swapped: a running average follows its source at once, or moves away from it.

What it finds:
    A statement averages a tensor that no optimizer holds with a trained parameter whose copy it began as. Measured by
    the sums of both, the source has a weight of more than 0.8 in each of at least five updates, without being copied;
    or a weight below 0: the average goes the other way. The finding stands at that statement.

Why it matters:
    An average that keeps a hundredth of itself is no average: a target network is as restless as what it should
    steady. With a negative weight it runs away.

What PyTorch does:
    It computes what is written. `lerp_(source, w)` gives the source the weight `w`. Seen in torch 2.13.

Example:
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, keep = nn.Linear(4, 1), 0.99
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(8, 16, 4):
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters()):
                old.mul_(1 - keep).add_(new, alpha=keep)  # <- here

Use instead:
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, keep = nn.Linear(4, 1), 0.99
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(8, 16, 4):
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters()):
                old.mul_(keep).add_(new, alpha=1 - keep)

Near miss: a copy, by a function that can also average
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)
    net, tau = nn.Linear(4, 1), 1.0
    target = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(8, 16, 4):
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(target.parameters(), net.parameters()):
                old.copy_(tau * new + (1 - tau) * old)

Near miss: a decay that grows from a small one
    import copy
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Linear(4, 1)
    average = copy.deepcopy(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step, x in enumerate(torch.randn(8, 16, 4)):
        optimizer.zero_grad()
        (net(x) - 1).pow(2).mean().backward()
        optimizer.step()
        keep = (1 + step) / (10 + step)
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters()):
                old.lerp_(new, 1 - keep)

Near miss: a layer that keeps running statistics is called twice in one statement
    import torch
    from torch import nn

    torch.manual_seed(1)
    net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    for x in torch.randn(10, 32, 8):
        first, second = net(x + 0.1 * torch.randn_like(x)), net(x + 0.1 * torch.randn_like(x))
        optimizer.zero_grad()
        (first - second).pow(2).mean().sub(first.var(0).mean()).backward()
        optimizer.step()

Blind spots:
    An average that did not begin as a copy of its source is not measured, nor one whose sums hardly differ.

Source:
    Polyak averaging as in Lillicrap et al., Continuous control with deep reinforcement learning, 2016: the source's
    weight is 0.001. Decays in use lie between 0.9 and 0.9999.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="average-weights-swapped",
    code="BP778",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("stats", "optimizer", "module"),
    thresholds={"weight": 0.8},
)

LEAST: Final = 5
"""Updates in which the weight was measured."""

_SMALL: Final = 1e-4
"""Share of the norm by which the sums must differ, so that rounding leaves two digits of the weight."""

_EQUAL: Final = 4e-7
"""Share of the norm within which two sums are one: the source was copied."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that averages."""
    writes: dict[int, dict[int, list[InplaceEvent]]] = {}
    held = in_optimizers(record)
    for row in record.inplace_events if held else ():
        by_module = (row.tensor, row.site) in _written_by_modules(record)
        if row.done_by == "statement" and row.site is not None and row.tensor not in held and not by_module:
            writes.setdefault(row.site, {}).setdefault(row.tensor, []).append(row)
    for site, targets in writes.items():
        if _is_average(statement_at(record, site)):
            found = [(target, *_weights(record, target, rows)) for target, rows in targets.items()]
            known = [(target, weights) for target, weights, copied in found if len(weights) >= LEAST and not copied]
            every = [weight for _target, weights in known for weight in weights]
            least = threshold(RULE, "weight")
            if every and (all(least < one < 2 - least for one in every) or all(one < 0 for one in every)):
                yield _finding(record, site, known, every)


@table
def _written_by_modules(record: Record) -> frozenset[tuple[int, int | None]]:
    """Return buffers with the statements that call their module, which updates them itself."""
    called_at: dict[int, set[int | None]] = {}
    for call in record.module_calls:
        called_at.setdefault(call.module, set()).add(call.site)
    return frozenset(
        (buffer.tensor, site)
        for module in record.modules
        for buffer in module.buffers
        if buffer.tensor is not None
        for site in called_at.get(module.module, ())
    )


def _is_average(node: ast.stmt | None) -> bool:
    """It scales and adds, or interpolates."""
    called_here = {method_called(part) for part in parts_of(node)}
    products = sum(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult) for part in parts_of(node))
    return bool(called_here & {"lerp_", "lerp"} or {"mul_", "add_"} <= called_here or products > 1) or (
        products == 1 and bool(called_here & {"sub_", "add_"})
    )


def _weights(record: Record, target: int, rows: list[InplaceEvent]) -> tuple[list[float], bool]:
    """The weight of the source in each update that can be measured, and whether it was only copied."""
    source = _source(record, target)
    history = [(row.moment, row.value) for row in lookup(record).snapshots_of[target] if row.value is not None]
    if source is None:
        return [], False
    found, copied = list[float](), True
    for row in rows:
        before = next((value for moment, value in reversed(history) if moment < row.moment), None)
        after = next((value for moment, value in history if moment == row.moment), None)
        given = _last_value(record, source, row.moment)
        if before is None or after is None or given is None or None in (before.sum, after.sum, given.sum, given.norm):
            continue
        way, done, norm = (given.sum or 0) - (before.sum or 0), (after.sum or 0) - (before.sum or 0), given.norm or 1.0
        if abs(way) > _SMALL * norm:
            found.append(done / way)
            copied = copied and abs(way - done) <= _EQUAL * norm
    return found, copied


def _source(record: Record, target: int) -> int | None:
    """The trained parameter that it was a copy of when it was first measured; None if none or several fit."""
    index = lookup(record)
    first = next((row for row in index.snapshots_of[target] if row.value is not None), None)
    if first is None or first.value is None or not first.value.norm:
        return None
    found: list[int] = []
    for one in in_optimizers(record):
        if index.tensors[one].shape == index.tensors[target].shape:
            value = _last_value(record, one, first.moment)
            if value is not None and (value.norm, value.sum) == (first.value.norm, first.value.sum):
                found.append(one)
    return found[0] if len(found) == 1 else None


def _last_value(record: Record, tensor: int, moment: int) -> Statistics | None:
    rows = [row.value for row in lookup(record).snapshots_of[tensor] if row.value is not None and row.moment <= moment]
    return rows[-1] if rows else None


def _finding(record: Record, site: int, known: list[tuple[int, list[float]]], every: list[float]) -> Finding:
    target = known[0][0]
    source = _source(record, target)
    name = called(record, target)
    whose = "its source" if source is None else f"`{called(record, source)}`"
    middle = sorted(every)[len(every) // 2]
    away = middle < 0
    moments = [row.moment for row in lookup(record).inplace_of[target] if row.site == site]
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` moves away from {whose}: its weight here is {middle:.3g}."
            if away
            else f"`{name}` follows {whose} at once: its weight here is {middle:.3g}, the average keeps the rest.",
            "It runs further off with each update." if away else "What should change slowly changes with every step.",
            "Subtract the difference instead of adding it." if away else "Swap the two weights.",
        ),
        binding=name,
        moments=moments,
        evidence={"weight": middle, "updates": len(every), "limit": threshold(RULE, "weight")},
        tensors=[one for one, _weights in known][:16],
    )
