"""BP511 update-below-precision: steps are smaller than what the parameter's dtype can tell apart, so it never changes.

What it finds:
    A parameter in bfloat16 or float16 has a gradient at ten steps of an optimizer or more, and after each of them
    every element is what it was. The finding stands at the statement that gave it that dtype.

Why it matters:
    The parameter is not trained at all, though its gradient is right, its rate is not 0 and its version rises.

What PyTorch does:
    A step is added in the parameter's own dtype. Beside 1.0 bfloat16 knows 0.996 and 1.008: whatever is added that is
    smaller than half of the distance is rounded away, at every step anew. `torch.autocast` converts float32 weights
    where they are used, so that steps are added in float32. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.LayerNorm(4)
    model.to(torch.bfloat16)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(8, 4, dtype=torch.bfloat16)
    for step in range(12):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.LayerNorm(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    x = torch.randn(8, 4)
    for step in range(12):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = model(x)
        (y.float() - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: steps that are large enough
    import torch
    from torch import nn

    model = nn.LayerNorm(4).to(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    x = torch.randn(8, 4, dtype=torch.bfloat16)
    for step in range(12):
        optimizer.zero_grad()
        (model(x) - 1).pow(2).mean().backward()
        optimizer.step()

Near miss: a step adds to a float32 copy
    import torch
    from torch import nn

    model = nn.Linear(4, 1).to(torch.bfloat16)
    master = [p.detach().float().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(master, lr=1e-4)
    x = torch.randn(8, 4, dtype=torch.bfloat16)
    for step in range(12):
        model.zero_grad()
        model(x).pow(2).mean().backward()
        for p, m in zip(model.parameters(), master):
            m.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for p, m in zip(model.parameters(), master):
                p.copy_(m)

Blind spots:
    A parameter of which some elements move now and then is not judged, nor one too large to be measured in full. A
    gradient a thousand times smaller than the greatest one is taken for rounding.

Source:
    P. Micikevicius and others, Mixed Precision Training (2018), section 3.1; observed with torch 2.13.
"""

from __future__ import annotations

import ast
import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeGuard

from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import capital, optimizer_name, together
from backprobe.rules.analysis.source.syntax import method_called, parts_of, statement_at
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Optimizer, Record, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="update-below-precision",
    code="BP511",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("stats", "version", "optimizer"),
)

LEAST: Final = 10
"""Steps that change nothing: a small step now and then is no pattern."""
_SMALL: Final = 1e-3
"""A gradient's size per element, of the greatest one's: what is smaller may be rounding of a gradient that is 0."""
_BITS: Final = {"bfloat16": 8, "float16": 11}
"""Binary digits of a number of that dtype."""
_CASTS: Final = frozenset({"to", "bfloat16", "half", "type"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer and statement that made its parameters so coarse."""
    tensors = lookup(record).tensors
    for optimizer in record.optimizers:
        held = {row.tensor: row.group for row in optimizer.tensors if tensors[row.tensor].dtype in _BITS}
        sizes = {tensor: _gradient_size(record, tensor) for tensor in held}
        by_site: defaultdict[int, dict[int, list[InplaceEvent]]] = defaultdict(dict)
        for tensor, group in held.items():
            steps = _steps_without_effect(record, optimizer.optimizer, tensor, group)
            site = _made_coarse_at(record, tensor, steps[0].moment) if len(steps) >= LEAST else None
            if site is not None and sizes[tensor] > _SMALL * max(sizes.values()):
                by_site[site][tensor] = steps
        for site, found in by_site.items():
            yield _finding(record, optimizer, site, found)


def _gradient_size(record: Record, tensor: int) -> float:
    """The greatest finite gradient that it was seen with, per element."""
    measured = (row.grad_stats for row in lookup(record).snapshots_of[tensor])
    return max((one.norm / math.sqrt(one.counted) for one in measured if _is_usable(one) and one.norm), default=0.0)


def _is_usable(one: Statistics | None) -> TypeGuard[Statistics]:
    """It was measured, and is finite and not 0."""
    return one is not None and one.counted > 0 and not one.nan and not one.inf and bool(one.norm)


def _steps_without_effect(record: Record, optimizer: int, tensor: int, group: int) -> list[InplaceEvent]:
    """The steps that had a gradient and a rate; empty if one of them, or anything else, changed an element."""
    index = lookup(record)
    steps = {row.moment: row for row in index.inplace_of[tensor] if row.optimizer == optimizer}
    first = min(steps, default=0)
    if len(steps) < LEAST or any(row.moment > first and row.optimizer is None for row in index.inplace_of[tensor]):
        return []
    values, found, with_gradient = set[tuple[object, ...]](), list["InplaceEvent"](), False
    for state in index.snapshots_of[tensor]:
        one = state.value
        if one is not None and state.moment < first:
            values.clear()
            if _is_exact(record, tensor, one):
                values.add(_numbers(one))
        elif one is not None:
            values.add(_numbers(one))
            step = steps.get(state.moment)
            if len(values) != 1 or not _is_exact(record, tensor, one):
                return []
            if step is not None and with_gradient and _rate(record, optimizer, state.moment, group):
                found.append(step)
        if state.grad == "none":
            with_gradient = False
        elif state.grad_stats is not None:
            with_gradient = _is_usable(state.grad_stats)
    return found


def _numbers(one: Statistics) -> tuple[object, ...]:
    return one.norm, one.sum, one.min, one.max, one.zeros


def _is_exact(record: Record, tensor: int, one: Statistics) -> bool:
    """Every element was looked at, and none is NaN or infinite."""
    whole = one.kind == "exact" and one.counted == lookup(record).tensors[tensor].numel > 0
    return whole and not one.nan and not one.inf and None not in (one.norm, one.sum, one.min, one.max)


def _rate(record: Record, optimizer: int, moment: int, group: int) -> float:
    """The learning rate of a group at a step; 1 where it was not read."""
    rates = _rates(record).get((optimizer, moment), ())
    return rates[group] if group < len(rates) else 1.0


@table
def _rates(record: Record) -> dict[tuple[int | None, int], tuple[float, ...]]:
    steps = (row for row in record.optimizer_events if row.kind == "step")
    return {(row.optimizer, row.moment): row.learning_rates for row in steps}


def _made_coarse_at(record: Record, tensor: int, first: int) -> int | None:
    """The statement that converted it, by a method of its module; else the one that made it."""
    writes = [row for row in lookup(record).inplace_of[tensor] if row.moment < first and row.site is not None]
    for row in reversed(writes):
        if any(method_called(part) in _CASTS for part in _calls_of(record, row.site)):
            return row.site
    return lookup(record).tensors[tensor].site


def _calls_of(record: Record, site: int | None) -> list[ast.Call]:
    return [part for part in parts_of(statement_at(record, site)) if isinstance(part, ast.Call)]


def _finding(record: Record, optimizer: Optimizer, site: int, found: dict[int, list[InplaceEvent]]) -> Finding:
    held = sorted(found)
    steps, dtype = found[held[0]], lookup(record).tensors[held[0]].dtype
    who = optimizer_name(record, optimizer.optimizer)
    rest = "no element of it" if len(held) == 1 else "no element of them"
    return told(
        record,
        RULE,
        site,
        (
            f"{capital(together(record, held))} got {len(steps)} steps of `{who}`, and {rest} has changed.",
            f"A number in {dtype} has {_BITS[dtype]} binary digits: what a step adds is rounded away.",
            "Keep parameters in float32, and use `torch.autocast` for the speed of half precision.",
        ),
        binding=together(record, held).strip("`"),
        moments=[row.moment for row in steps],
        related=(("this step changes nothing", steps[0].site if steps[0].site != site else None),),
        evidence={"steps": len(steps), "parameters": len(held), "dtype": dtype},
        tensors=held,
        optimizers=(optimizer.optimizer,),
    )
