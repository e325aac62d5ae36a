"""BP813 method-not-called: a statement names a method and does not call it.

What it finds:
    A statement is nothing but `x.requires_grad_`, `model.eval`, `schedule.step` or the like: the brackets are missing.
    It ran, and did nothing.

Why it matters:
    The tensor is not tracked, the model stays in training mode, the learning rate stays where it was; and the program
    reads as if that were not so.

What PyTorch does:
    Python looks the method up and throws it away. Nothing warns. Seen in torch 2.13 on Python 3.11.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        schedule.step  # <- here

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        schedule.step()

Near miss: the method is handed on, to be called later
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    at_the_end = [schedule.step]
    for epoch in range(3):
        optimizer.zero_grad()
        model(torch.randn(8, 4)).pow(2).mean().backward()
        optimizer.step()
        for action in at_the_end:
            action()

Near miss: an attribute is shown at the end
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
    model.training

Blind spots:
    `optimizer.step`, `optimizer.zero_grad` and `loss.backward` are told by BP706, BP210 and BP707, whose findings say
    what is lost.

Source:
    The Python language reference on expression statements; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_tree import module_keys, parameters_below
from backprobe.rules.analysis.modules.second_names import module_names
from backprobe.rules.analysis.optimizers.schedules import schedules
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup
from backprobe.rules.analysis.source.expressions import insertion
from backprobe.rules.analysis.source.syntax import region_in, statement
from backprobe.rules.framework.finding import Fix
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record, Site
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="method-not-called",
    code="BP813",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="unsafe",
    needs=("site",),
    refines=(
        "input-without-requires-grad",
        "scheduler-never-stepped",
        "evaluating-in-train-mode",
        "training-in-eval-mode",
        "grad-mode-left-off",
        "grad-read-when-none",
        "non-leaf-grad-read",
    ),
)

_OF_TENSORS: Final = frozenset({"requires_grad_", "detach_", "retain_grad", "zero_", "clamp_", "copy_", "mul_", "add_"})
_OF_MODULES: Final = frozenset(
    {"eval", "train", "requires_grad_", "zero_grad", "cuda", "cpu", "double", "float", "half"}
)
_OF_SCHEDULES: Final = frozenset({"step"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    seen: set[ast.Attribute] = set()
    for site in record.sites:
        node = statement(record, site)
        part = node.value if isinstance(node, ast.Expr) else None
        if not isinstance(part, ast.Attribute) or site.kind == "enter" or part in seen:
            continue
        seen.add(part)
        tensors = _about(record, part)
        if tensors is not None:
            yield _finding(record, site, part, *tensors)


def _about(record: Record, part: ast.Attribute) -> tuple[list[int], list[int]] | None:
    """The tensors and optimizers that the method would have acted on; None if the name holds nothing of that kind."""
    name, method = ast.unparse(part.value), part.attr
    if method in _OF_TENSORS and (rows := bindings_named(record)[name]):
        return sorted({row.tensor for row in rows})[:16], []
    if method in _OF_MODULES and name in _modules(record):
        return parameters_below(record, name)[:64], []
    for optimizer in record.optimizers if method in _OF_SCHEDULES else ():
        if any(row.name == name for row in schedules(record, optimizer)):
            return [], [optimizer.optimizer]
    return None


def _modules(record: Record) -> set[str]:
    """The names that modules have."""
    named = {row.name for rows in module_names(record).values() for row in rows}
    return named | set(module_keys(record))


def _finding(record: Record, site: Site, part: ast.Attribute, tensors: list[int], optimizers: list[int]) -> Finding:
    text, region = ast.unparse(part), region_in(record, site.source, part)
    moment = next((row.moment for row in record.moments if row.site == site.site), 0)
    edit = insertion(record, site, region.end_line, region.end_col, "()")
    calls = [row.call for row in record.backward_calls] if tensors else []
    return told(
        record,
        RULE,
        site.site,
        (
            f"This names the method `{text}` and does not call it.",
            f"`{ast.unparse(part.value)}` stays as it was.",
            f"Write `{text}()`.",
        ),
        binding=ast.unparse(part.value),
        moments=[moment],
        region=region,
        evidence={"method": part.attr, "runs": sum(1 for row in record.moments if row.site == site.site)},
        fixes=[Fix(title="Call it", safety="unsafe", edits=(edit,))],
        tensors=[one for one in tensors if one in lookup(record).tensors],
        calls=calls[:16],
        optimizers=optimizers,
    )
