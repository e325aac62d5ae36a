"""BP869 targets-all-ignored: every target of a class loss is to be ignored, and the mean over none is NaN.

What it finds:
    `cross_entropy` or `nll_loss` with a mean got targets that all hold `ignore_index`, and gave NaN.

Why it matters:
    The NaN goes into the total, into every average of the loss and, through backward, into the weights.

What PyTorch does:
    The mean is divided by the number of targets that count: 0 / 0. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    for counted in (2, 0, 3):
        target = torch.full((6,), -100)
        target[:counted] = 1
        loss = nn.functional.cross_entropy(model(torch.randn(6, 4)), target)  # <- here
        print(loss)

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    for counted in (2, 0, 3):
        target = torch.full((6,), -100)
        target[:counted] = 1
        total = nn.functional.cross_entropy(model(torch.randn(6, 4)), target, reduction="sum")
        print(total / (target != -100).sum().clamp_min(1))

Near miss: one target counts
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    target = torch.full((6,), -100)
    target[0] = 1
    nn.functional.cross_entropy(model(torch.randn(6, 4)), target).backward()

Near miss: none counts, and the loss is summed
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    target = torch.full((6,), -100)
    nn.functional.cross_entropy(model(torch.randn(6, 4)), target, reduction="sum").backward()

Blind spots:
    Targets that are given as probabilities have nothing to ignore.

Source:
    torch.nn.CrossEntropyLoss in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.losses.loss_calls import (
    LossCall,
    argument_text,
    callee,
    loss_calls,
    region_of_call,
    tensor_given,
    values_of,
)
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="targets-all-ignored",
    code="BP869",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("call", "stats"),
    explains=("nonfinite-forward", "nonfinite-gradient", "nonfinite-input"),
    refines=("nonfinite-forward",),
)

IGNORED: Final = -100
"""The default of `ignore_index`."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of a loss in the program."""
    by_site: dict[int, list[LossCall]] = {}
    for call in loss_calls(record, "cross_entropy", "nll_loss", is_walked=False):
        if _is_mean_of_none(record, call):
            by_site.setdefault(call.site, []).append(call)
    for site, found in by_site.items():
        yield _finding(record, site, found)


def _ignored(call: LossCall) -> int:
    given = call.call.arguments.get("ignore_index", IGNORED)
    return given if type(given) is int else IGNORED


def _is_mean_of_none(record: Record, call: LossCall) -> bool:
    """All targets hold the index to ignore, and a mean is asked for."""
    target = tensor_given(call.call, "target")
    stats = None if target is None else values_of(record, target, call.moment)
    if stats is None or not stats.counted or "reduction" in call.call.arguments:
        return False
    return stats.kind == "exact" and stats.min == stats.max == _ignored(call)


def _finding(record: Record, site: int, found: list[LossCall]) -> Finding:
    first = found[0]
    name, target = callee(record, first.call), argument_text(record, first.call, 1, "target")
    return told(
        record,
        RULE,
        site,
        (
            f"Every element of `{target}` is {_ignored(first)}, which `{name}` ignores: its mean over none is NaN.",
            "The NaN goes into every sum and average with this loss, and by a backward call into the weights.",
            "Leave such a batch out, or sum and divide by the number of targets that count, at least 1.",
        ),
        binding=target,
        moments=[one.moment for one in found],
        region=region_of_call(record, first.call),
        evidence={"ignore_index": _ignored(first), "calls": len(found)},
        tensors=(*first.call.outputs, first.given),
        calls=(),
    )
