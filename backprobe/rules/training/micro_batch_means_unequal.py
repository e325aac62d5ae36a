"""BP865 micro-batch-means-unequal: micro-batches of very different sizes are averaged as if they were equal.

What it finds:
    Several backward calls feed each step, each with the mean of a class loss over its own targets and all with the same
    factor, though in every step the greatest number of targets that count is at least 1.5 times the smallest. The
    finding stands at the loss; of a function that others ask for a sum, at the call that asks it for the mean.

Why it matters:
    The step follows a mean of means: a token of a short text counts many times more than one of a long text. The result
    is not that of one large batch, and depends on how the data was cut.

What PyTorch does:
    `reduction="mean"` divides by the targets of this call. Accumulation adds what it is given. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        for tokens in (12, 3):
            loss = nn.functional.cross_entropy(model(torch.randn(tokens, 4)), torch.arange(tokens) % 3)  # <- here
            (loss / 2).backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        for tokens in (12, 3):
            target = torch.arange(tokens) % 3
            loss = nn.functional.cross_entropy(model(torch.randn(tokens, 4)), target, reduction="sum")
            (loss / 15).backward()
        optimizer.step()

Near miss: the last batch of the data is a small one
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for i, size in enumerate((8, 8, 8, 2)):
        nn.functional.cross_entropy(model(torch.randn(size, 4)), torch.arange(size) % 3).div(2).backward()
        if i % 2:
            optimizer.step()
            optimizer.zero_grad()

Near miss: each mean is weighted with its number
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        for tokens in (12, 3):
            loss = nn.functional.cross_entropy(model(torch.randn(tokens, 4)), torch.arange(tokens) % 3)
            (loss * tokens / 15).backward()
        optimizer.step()

Near miss: two tasks
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(torch.randn(12, 4)), torch.arange(12) % 3).backward()
        nn.functional.cross_entropy(model(torch.randn(3, 4)), torch.arange(3) % 3).backward()
        optimizer.step()

Blind spots:
    Of more than 64 targets it is only known how many are ignored if these are marked by 0, or if there are none.

Source:
    "Fixing gradient accumulation", Hugging Face (2024). 1.5 in every step: batches of samples differ in the last only.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.calls.handed_arguments import Handed, all_handed_in
from backprobe.rules.analysis.gradients.arrivals import came_to
from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.losses.loss_calls import (
    LossCall,
    callee,
    loss_calls,
    region_of_call,
    shape_of,
    tensor_given,
    values_of,
    written,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import keyword
from backprobe.rules.analysis.source.naming import optimizer_name
from backprobe.rules.analysis.source.syntax import site_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.options import threshold
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table
from backprobe.rules.training.targets_all_ignored import IGNORED

if TYPE_CHECKING:
    from backprobe.record import OptimizerEvent, Record, SmallValue
    from backprobe.rules.framework.finding import Finding, Region

RULE = Rule(
    name="micro-batch-means-unequal",
    code="BP865",
    since="0.1",
    severity="warning",
    confidence="heuristic",
    fix="manual",
    needs=("call", "node", "stats", "optimizer", "backward"),
    thresholds={"ratio": 1.5},
)

LEAST: Final = 2
"""Steps, and calls in each."""
_SAME: Final = 1e-3
"""By how much the factors of the calls may differ, as a share: rounding."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One call: how many targets count, and the gradient that came to its result."""

    call: LossCall
    count: int
    factor: float


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of a loss in the program."""
    by_place: dict[tuple[int, Region | None], list[_Part]] = {}
    for call in loss_calls(record, "cross_entropy", "nll_loss"):
        part = None if "reduction" in call.call.arguments else _part(record, call)
        if part is not None:
            by_place.setdefault((call.site, region_of_call(record, call.call)), []).append(part)
    for (site, _region), parts in by_place.items():
        for optimizer in record.optimizers:
            steps = [
                event for event in record.optimizer_events
                if event.kind == "step" and event.optimizer == optimizer.optimizer
            ]  # fmt: skip
            windows = _windows(parts, steps)
            uneven = [window for window in windows if _is_uneven(window)]
            is_often = len(uneven) >= LEAST and 2 * len(uneven) > len(windows)
            if is_often and all(_has_one_factor(window) for window in windows):
                yield _finding(record, site, optimizer.optimizer, uneven)
                break


def _part(record: Record, call: LossCall) -> _Part | None:
    node = node_of(record, call.call.outputs[0]) if call.call.outputs else None
    arrived = [] if node is None else came_to(record, node)
    arrived = [row for row in arrived if lookup(record).calls[row.call].accumulate_grad]  # else it feeds no step
    came = arrived[0].grad_output if len(arrived) == 1 else None
    count = _counted(record, call)
    return None if came is None or came.sum is None or not count else _Part(call, count, came.sum)


def _counted(record: Record, call: LossCall) -> int | None:
    """The targets that are not ignored; None where the values that are kept do not tell how many there are."""
    target = tensor_given(call.call, "target")
    shape = shape_of(record, target)
    if target is None or shape is None or not lookup(record).tensors[target].dtype.startswith("int"):
        return None
    given = call.call.arguments.get("ignore_index", IGNORED)
    ignored = given if type(given) is int else IGNORED
    rows = [row for row in _kept(record).get(target, ()) if row.moment <= call.moment]
    if rows and rows[-1].dtype == "int64":
        values = struct.unpack(f"<{len(rows[-1].elements) // 8}q", rows[-1].elements)
        return sum(1 for value in values if value != ignored)
    measured = values_of(record, target, call.moment)
    if measured is None or measured.kind != "exact" or measured.min is None or measured.max is None:
        return None if "ignore_index" in call.call.arguments else lookup(record).tensors[target].numel
    if ignored == 0:
        return measured.counted - measured.zeros
    return measured.counted if not measured.min <= ignored <= measured.max else None


@table
def _kept(record: Record) -> dict[int, list[SmallValue]]:
    """The elements that were kept of each small tensor, in order of moments."""
    found: dict[int, list[SmallValue]] = {}
    for row in record.small_values:
        if row.of == "value":
            found.setdefault(row.tensor, []).append(row)
    return {tensor: sorted(rows, key=lambda row: row.moment) for tensor, rows in found.items()}


def _windows(parts: list[_Part], steps: list[OptimizerEvent]) -> list[list[_Part]]:
    """The calls that fed each step."""
    found: list[list[_Part]] = []
    start = -1
    for step in steps:
        inside = [part for part in parts if start < part.call.moment <= step.moment]
        start = step.moment
        if inside:
            found.append(inside)
    return found


def _is_uneven(window: list[_Part]) -> bool:
    """Very different numbers of targets."""
    counts = [part.count for part in window]
    return len(window) >= LEAST and max(counts) >= threshold(RULE, "ratio") * min(counts)


def _has_one_factor(window: list[_Part]) -> bool:
    factors = [part.factor for part in window]
    return max(factors) - min(factors) <= _SAME * abs(max(factors))


def _mean_asked(record: Record, site: int, part: _Part) -> Handed | None:
    """The one call that asks a function for the mean, where others ask it for another reduction."""
    call = written(record, part.call.call)
    given = None if call is None else keyword(call, "reduction")
    if given is None or not isinstance(given.value, ast.Name):
        return None
    handed = all_handed_in(record, site_of(record, site), given.value.id)
    means = [one for one in handed if isinstance(one.part, ast.Constant) and one.part.value == "mean"]
    return means[0] if len(means) == 1 and len(handed) > 1 else None


def _finding(record: Record, site: int, optimizer: int, windows: list[list[_Part]]) -> Finding:
    first = windows[0]
    counts = [part.count for part in first]
    name, who = callee(record, first[0].call.call), optimizer_name(record, optimizer)
    asked = _mean_asked(record, site, first[0])
    return told(
        record,
        RULE,
        site if asked is None else asked.site.site,
        (
            f"`{name}` takes means of {min(counts)} to {max(counts)} targets for one step of `{who}`, of equal weight.",
            "A target in a small micro-batch counts more than one in a large one: it is not the mean over all.",
            'Use `reduction="sum"` and divide by the number of targets in all micro-batches of the step.',
        ),
        binding=name,
        moments=[part.call.moment for window in windows for part in window],
        region=region_of_call(record, first[0].call.call) if asked is None else None,
        related=(("the means are taken here", None if asked is None else site),),
        evidence={
            "targets": counts[:16],
            "factor": first[0].factor,
            "steps": len(windows),
            "ratio": threshold(RULE, "ratio"),
        },
        optimizers=(optimizer,),
    )
