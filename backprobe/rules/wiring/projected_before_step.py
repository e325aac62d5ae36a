"""BP771 projected-before-step: weights are clipped, masked or normalised between the backward call and the step.

What it finds:
    Between a backward call and the optimizer's step a statement brings parameters back into a set: it clamps them, sets
    masked ones to zero, or gives them norm 1. The step comes after, and takes them out of the set again.

Why it matters:
    The next forward pass does not see what the statement made: weights lie outside the limit, masked ones are not zero.
    Besides, the gradient belongs to the weights from before the write.

What PyTorch does:
    `step()` adds its update to the values that it finds. It knows nothing of a limit. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    critic = nn.Linear(4, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        critic(x).mean().backward()
        for weight in critic.parameters():
            weight.data.clamp_(-0.05, 0.05)  # <- here
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    critic = nn.Linear(4, 1)
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        critic(x).mean().backward()
        optimizer.step()
        for weight in critic.parameters():
            weight.data.clamp_(-0.05, 0.05)

Near miss: weights are made smaller before the step, as AdamW does it
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        with torch.no_grad():
            model.weight.mul_(0.99)
        optimizer.step()

Near miss: it is the gradient that is clamped
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        for weight in model.parameters():
            weight.grad.clamp_(-0.1, 0.1)
        optimizer.step()

Near miss: an optimizer of the program's own limits the weights at the end of its step
    import torch

    class NonNegative(torch.optim.Adagrad):
        @torch.no_grad()
        def step(self, closure=None):
            super().step(closure)
            for group in self.param_groups:
                for weight in group["params"]:
                    weight.clamp_(min=0)

    weights = torch.rand(4, requires_grad=True)
    optimizer = NonNegative([weights], lr=0.1)
    for x in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        (x @ weights - x[:, 0] + x[:, 1]).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    A projection that is written as sums and products of its own is not known for one, nor one in the closure of a step.

Source:
    Arjovsky, Chintala, Bottou: Wasserstein GAN, algorithm 1, which clips after the update; observed with torch 2.13.
"""

from __future__ import annotations

import ast
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.call_stacks import is_called_by
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import optimizer_name, together
from backprobe.rules.analysis.source.scopes import last_name
from backprobe.rules.analysis.source.syntax import parts_of, statement_at
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import Update, updates_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import InplaceEvent, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="projected-before-step",
    code="BP771",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("version", "grad-life", "optimizer"),
)

LEAST: Final = 2
"""Steps before which it happened: once may be a start."""

_PROJECTIONS: Final = frozenset({
    "clamp", "clamp_", "clip", "clip_", "clamp_min", "clamp_min_", "clamp_max", "clamp_max_", "renorm", "renorm_",
    "relu_", "normalize", "masked_fill_",
})  # fmt: skip
"""Functions and methods that bring values back into a set, and change none that lies in it."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement."""
    found: dict[int, list[tuple[InplaceEvent, Update]]] = {}
    written: dict[tuple[int, int], int] = {}
    taken_back: set[int] = set()
    for event in record.inplace_events:
        step = None if event.done_by != "statement" or event.site is None else _step_after(record, event)
        if step is None or event.site is None:
            continue
        first, is_projection = written.get((event.tensor, step.moment)), _is_projection(record, event)
        if first is not None or not is_projection:
            found.pop(event.site, None)  # written again before the step: a trial that is taken back
            taken_back |= {first} if first is not None and not is_projection else set()
            continue
        written[event.tensor, step.moment] = event.site
        found.setdefault(event.site, []).append((event, step))
    for site, rows in found.items():
        if site not in taken_back and len({step.moment for _event, step in rows}) >= LEAST:
            yield _finding(record, site, rows)


def _step_after(record: Record, event: InplaceEvent) -> Update | None:
    """The optimizer step that comes next, if the last backward call before the write brought the gradient it uses.

    None also where the write is a part of that step: a class of the program's own limits the weights at its end.
    """
    if event.tensor not in in_optimizers(record):
        return None
    steps = [one for one in updates_of(record).get(event.tensor, ()) if one.optimizer is not None]
    at = bisect_right(steps, event.moment, key=lambda one: one.moment)
    before = steps[at - 1].moment if at else -1
    rows = lookup(record).leaf_grads_of[event.tensor]
    came = [row for row in rows if row.call is not None and before < row.moment < event.moment]
    if at == len(steps) or not came or is_called_by(record, event.moment, steps[at].site):
        return None
    later = [row for row in rows if event.moment <= row.moment < steps[at].moment]
    return None if later else steps[at]


def _is_projection(record: Record, event: InplaceEvent) -> bool:
    """The statement limits or normalises values, or multiplies them by a tensor that is not their gradient: a mask."""
    node = statement_at(record, event.site)
    if node is None or any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in parts_of(node)):
        return False
    calls = [part for part in parts_of(node) if isinstance(part, ast.Call)]
    if any(last_name(call.func) in _PROJECTIONS for call in calls):
        return True
    by = [call.args[0] for call in calls if last_name(call.func) == "mul_" and call.args]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Mult):
        by.append(node.value)
    return any(_is_mask(record, event, one) for one in by)


def _is_mask(record: Record, event: InplaceEvent, factor: ast.expr) -> bool:
    """A tensor of the parameter's shape that holds zeros and ones alone."""
    index, shape = lookup(record), lookup(record).tensors[event.tensor].shape
    for row in record.operations:
        if row.statement == event.site and (row.moment or 0) <= event.moment:
            for one in row.operands:
                values = [seen.value for seen in index.snapshots_of[one] if seen.value is not None]
                if one != event.tensor and index.tensors[one].shape == shape and values:
                    last = values[-1]
                    whole = last.counted - last.zeros
                    if last.zeros and last.min == 0 and last.max == 1 and last.sum == whole:
                        return not isinstance(factor, ast.Constant)
    return False


def _finding(record: Record, site: int, rows: list[tuple[InplaceEvent, Update]]) -> Finding:
    event, step = rows[0]
    tensors = sorted({one.tensor for one, _step in rows})
    came = [row for row in lookup(record).leaf_grads_of[event.tensor] if row.call and row.moment < event.moment]
    who = optimizer_name(record, step.optimizer)
    return told(
        record,
        RULE,
        site,
        (
            f"This statement limits {together(record, tensors)} before `{who}` steps: the step moves them out again.",
            "The next forward pass does not see what it made, and the gradient belongs to the weights before it.",
            f"Move it after `{who}.step()`.",
        ),
        binding=who,
        moments=sorted({one.moment for one, _step in rows}),
        related=(
            ("the gradient came from here", came[-1].site if came else None),
            ("this step comes after", step.site),
        ),
        evidence={"tensors": tensors[:16], "steps": len({one.moment for _event, one in rows})},
        tensors=tensors,
    )
