"""BP849 divergence-averaged-over-classes: `kl_div` with its default reduction divides by the number of classes too.

What it finds:
    A call of `kl_div` whose reduction is "mean", given a distribution over classes for each row, that a backward call
    walks.

Why it matters:
    The divergence of a distribution is a sum over its classes. Divided by their number the term is as many times
    smaller, so that a weight or a squared temperature beside it does not mean what it says.

What PyTorch does:
    `reduction="mean"` divides by the number of all elements; the function warns that "batchmean" is the divergence.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 10)
    for x in torch.randn(3, 8, 4):
        wanted = torch.rand(8, 10).softmax(1)
        loss = nn.functional.kl_div(model(x).log_softmax(1), wanted)  # <- here
        loss.backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 10)
    for x in torch.randn(3, 8, 4):
        wanted = torch.rand(8, 10).softmax(1)
        loss = nn.functional.kl_div(model(x).log_softmax(1), wanted, reduction="batchmean")
        loss.backward()

Near miss: each element by itself
    import torch
    from torch import nn

    model = nn.Linear(4, 10)
    for x in torch.randn(3, 8, 4):
        wanted = torch.rand(8, 10).softmax(1)
        nn.functional.kl_div(model(x).log_softmax(1), wanted, reduction="none").sum(1).mean().backward()

Near miss: a factor makes up for the classes
    import torch
    from torch import nn

    model = nn.Linear(4, 10)
    for x in torch.randn(3, 8, 4):
        wanted = torch.rand(8, 10).softmax(1)
        (10 * nn.functional.kl_div(model(x).log_softmax(1), wanted)).backward()

Blind spots:
    A factor beside the loss that makes up for the classes and for something else: it is assumed that there is none.

Source:
    torch.nn.KLDivLoss in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.losses.activations import dim_of
from backprobe.rules.analysis.losses.loss_calls import LossCall, callee, loss_calls, region_of_call, shape_of
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="divergence-averaged-over-classes",
    code="BP849",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("call", "node", "backward", "stats"),
)

LEAST: Final = 2
"""Calls: once is no pattern."""
_MATRIX: Final = 2
"""Dimensions of rows of classes."""
_EXACT: Final = 1e-4
"""Share by which a float32 product may miss the number of classes."""
_ALONE: Final = (None, "", "'mean'", "mean")


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of the loss in the program."""
    found: dict[int, list[LossCall]] = {}
    for one in loss_calls(record, "kl_div"):
        shape = shape_of(record, one.given) or ()
        is_mean = one.call.arguments.get("reduction") in _ALONE and not one.call.arguments.get("size_average")
        if is_mean and len(shape) > 1 and _classes(record, one) > 1 and not _is_made_up_for(record, one):
            found.setdefault(one.site, []).append(one)
    for site, calls in found.items():
        if len(calls) >= LEAST:
            yield _finding(record, site, calls)


def _classes(record: Record, one: LossCall) -> int:
    """The size of the dimension over which the logarithms are those of a distribution; of the last one if not known."""
    shape = shape_of(record, one.given) or (1,)
    dim = None if one.made_by is None or len(shape) == _MATRIX else dim_of(record, one.made_by)
    return shape[-1 if dim is None else dim]


def _is_made_up_for(record: Record, one: LossCall) -> bool:
    """The result is multiplied by the number of classes before it is walked back."""
    made = node_of(record, one.call.outputs[0]) if one.call.outputs else None
    weights = [] if made is None else [row.grad_output for row in lookup(record).passes_of_node[made]]
    classes = _classes(record, one)
    return any(stats is not None and stats.sum and abs(stats.sum - classes) < _EXACT * classes for stats in weights)


def _finding(record: Record, site: int, calls: list[LossCall]) -> Finding:
    first = calls[0]
    classes = _classes(record, first)
    return told(
        record,
        RULE,
        site,
        (
            f"`{callee(record, first.call)}` averages over the {classes} classes too, by its default reduction.",
            f"The term is {classes} times smaller than the divergence, and so is its part in the loss.",
            'Ask for `reduction="batchmean"`.',
        ),
        binding="kl_div",
        moments=[one.moment for one in calls],
        region=region_of_call(record, first.call),
        evidence={"calls": len(calls), "classes": classes, "assumed": "no weight makes up for the classes"},
    )
