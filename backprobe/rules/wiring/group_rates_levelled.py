"""BP776 group-rates-levelled: groups are built with different learning rates, and step with one.

What it finds:
    The groups of an optimizer are written with different rates, and the program sets the rates itself,
    `group["lr"] = ...`. At each step with a rate above 0, at least three, all groups have the same. The finding stands
    where the program sets them.

Why it matters:
    The pretrained part trains with the rate of the new head, or the head with that of the pretrained part.

What PyTorch does:
    A step uses what stands in `group["lr"]`. Schedules of torch keep the ratio between the groups. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    body, head = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(
        [{"params": body.parameters(), "lr": 0.001}, {"params": head.parameters(), "lr": 0.1}], lr=0.01
    )
    for epoch, x in enumerate(torch.randn(4, 8, 3)):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * 0.5**epoch  # <- here
        optimizer.zero_grad()
        head(body(x)).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    body, head = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(
        [{"params": body.parameters(), "lr": 0.001}, {"params": head.parameters(), "lr": 0.1}], lr=0.01
    )
    for x in torch.randn(4, 8, 3):
        optimizer.zero_grad()
        head(body(x)).pow(2).mean().backward()
        optimizer.step()
        for group in optimizer.param_groups:
            group["lr"] *= 0.5

Near miss: groups of one rate
    import torch
    from torch import nn

    body, head = nn.Linear(3, 3), nn.Linear(3, 1)
    optimizer = torch.optim.SGD(
        [{"params": body.parameters(), "momentum": 0.5}, {"params": head.parameters(), "momentum": 0.0}], lr=0.01
    )
    for epoch, x in enumerate(torch.randn(4, 8, 3)):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * 0.5**epoch
        optimizer.zero_grad()
        head(body(x)).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Rates that are written as names which happen to hold one number are taken for one rate. Groups that are not written
    in one list are not judged.

Source:
    "Per-parameter options" in the documentation of torch.optim.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.optimizers.rate_writes import rate_writes
from backprobe.rules.analysis.optimizers.schedules import events_of
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import parts_of, statement_at, trees
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Optimizer, OptimizerEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="group-rates-levelled",
    code="BP776",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("optimizer",),
)

LEAST: Final = 3
"""Steps with one rate for all groups."""
_RANGE: Final = 100
"""How many times the last rate of a search for one is the first, at least."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per optimizer."""
    for optimizer in record.optimizers:
        steps = [row for row in events_of(record, optimizer.optimizer, "step") if any(row.learning_rates)]
        levelled = [row for row in steps if len(row.learning_rates) > 1 and len(set(row.learning_rates)) == 1]
        if len(levelled) < LEAST or len(levelled) < len(steps) or _is_range_test(levelled):
            continue
        rates = _written(record, optimizer, len(levelled[0].learning_rates))
        writes = rate_writes(record)
        sets = writes[-1].site if writes else None
        if rates is not None and sets is not None and _differ(rates):
            yield _finding(record, optimizer, levelled, sets, rates)


def _is_range_test(steps: list[OptimizerEvent]) -> bool:
    """The rate only rises, a hundredfold or more: a search for a rate, in which all groups have the same on purpose."""
    rates = [row.learning_rates[0] for row in steps]
    return rates == sorted(rates) and rates[-1] >= _RANGE * rates[0] > 0


def _written(record: Record, optimizer: Optimizer, number: int) -> list[ast.expr] | None:
    """The rates of the one list of that many groups in the sources; the optimizer's own where a group says none."""
    found = [
        entries
        for tree in trees(record).values()
        for part in tree.nodes
        if isinstance(part, ast.List | ast.Tuple)
        and len(entries := [_entries(one) for one in part.elts]) == number
        and all("params" in one for one in entries)
    ]
    if len(found) != 1:
        return None
    own = next(
        (
            key.value
            for part in parts_of(statement_at(record, optimizer.site))
            if isinstance(part, ast.Call)
            for key in part.keywords
            if key.arg == "lr"
        ),
        None,
    )
    rates = [one.get("lr", own) for one in found[0]]
    return [rate for rate in rates if rate is not None] if None not in rates else None


def _entries(node: ast.expr) -> dict[str, ast.expr]:
    """What a group is written with: `{"params": x, "lr": y}` or `dict(params=x, lr=y)`."""
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        return {one.arg: one.value for one in node.keywords if one.arg is not None}
    return {}


def _differ(rates: list[ast.expr]) -> bool:
    """Two numbers that differ; or a rate, and the same one times a number."""
    numbers = [rate.value for rate in rates if isinstance(rate, ast.Constant)]
    if len(set(numbers)) > 1:
        return True
    texts = {ast.dump(rate) for rate in rates}
    parts = [
        (ast.dump(one), other)
        for rate in rates
        if isinstance(rate, ast.BinOp) and isinstance(rate.op, ast.Mult | ast.Div)
        for one, other in ((rate.left, rate.right), (rate.right, rate.left))
    ]
    return any(text in texts and isinstance(by, ast.Constant) and by.value != 1 for text, by in parts)


def _finding(
    record: Record, optimizer: Optimizer, steps: list[OptimizerEvent], site: int, rates: list[ast.expr]
) -> Finding:
    who, written = optimizer_name(record, optimizer.optimizer), [ast.unparse(rate) for rate in rates]
    rate = steps[-1].learning_rates[0]
    return told(
        record,
        RULE,
        site,
        (
            f"The groups of `{who}` are built with the rates {', '.join(written)}; here they become one and the same.",
            f"All {len(steps)} steps ran with one rate for all groups, {rate:.3g} at the last.",
            "Multiply each group's own rate: keep it in the group, as schedules of torch do with `initial_lr`.",
        ),
        binding=who,
        moments=[row.moment for row in steps],
        related=((f"`{who}` is built here", optimizer.site),),
        evidence={"optimizer": who, "written": written, "rate": rate, "steps": len(steps)},
        optimizers=(optimizer.optimizer,),
    )
