"""BP224 units-stay-equal: a layer and the one behind it begin with one number everywhere, so its units never differ.

What it finds:
    All elements of a layer's weight are one number, and so are those of the weight behind it. After the last step the
    units are still equal: each got the same gradient. The finding stands where the first of the two was filled.

Why it matters:
    A layer of a hundred equal units is a layer of one unit. The loss falls a little and stops.

What PyTorch does:
    Equal rows with equal weights behind them have equal gradients, and every optimizer moves them alike. Layers of
    torch start at random for this reason. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    for weight in model.parameters():
        nn.init.constant_(weight, 0.1)  # <- here
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 16, 4):
        optimizer.zero_grad()
        (model(x) - x[:, :1]).pow(2).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    for weight in model.parameters():
        nn.init.normal_(weight, std=0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 16, 4):
        optimizer.zero_grad()
        (model(x) - x[:, :1]).pow(2).mean().backward()
        optimizer.step()

Near miss: only the last layer begins with one number
    import torch
    from torch import nn

    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    nn.init.constant_(model[2].weight, 0.1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 16, 4):
        optimizer.zero_grad()
        (model(x) - x[:, :2]).pow(2).mean().backward()
        optimizer.step()

Near miss: one layer alone, as in a linear regression
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    nn.init.constant_(model.weight, 0.1)
    nn.init.zeros_(model.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(6, 16, 4):
        optimizer.zero_grad()
        (model(x) - x[:, :1]).pow(2).mean().backward()
        optimizer.step()

Blind spots:
    Whether units without a bias are still equal is seen of small weights only, of at most 64 elements. Where both
    weights are zero, BP222 tells it.

Source:
    Goodfellow, Bengio, Courville: Deep Learning, section 8.4, on breaking symmetry; observed with torch 2.13.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.modules.module_tree import calls_of_modules
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.naming import called
from backprobe.rules.analysis.tensors.value_origins import written_last
from backprobe.rules.analysis.training.trained_parameters import in_optimizers
from backprobe.rules.analysis.training.updates import updates_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Module, Record, Statistics
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="units-stay-equal",
    code="BP224",
    since="0.1",
    severity="warning",
    confidence="proven",
    rests_on="run",
    fix="manual",
    needs=("module", "stats", "grad-life", "optimizer"),
)

LEAST_STEPS: Final = 2
"""Updates after which the units are still equal: once is no pattern."""

_SAME: Final = 1e-5
"""Share by which equal units may differ: rounding in another order of sums."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per layer whose units never differ; of several the first in order of their modules."""
    layers = [row for row in record.modules if _weight(record, row) is not None]
    for one, behind in pairwise(layers):
        weight, following = _weight(record, one), _weight(record, behind)
        if weight is None or following is None or not _is_followed(record, (one, weight), (behind, following)):
            continue
        numbers = _number(record, weight), _number(record, following)
        if numbers[0] is None or numbers == (0.0, 0.0) or not _fits(record, weight, following):
            continue
        if numbers[1] is None and not _bias_moves(record, one):
            continue  # what was written through `.data` is measured after the next step only
        if _stay_equal(record, one, weight, following):
            found = _finding(record, one, weight, following)
            if found is not None:
                yield found
                return


def _weight(record: Record, module: Module) -> int | None:
    """The weight of a layer of torch with two dimensions or more, which an optimizer holds."""
    rows = [row.tensor for row in module.parameters if row.name == "weight" and row.tensor is not None]
    shape = lookup(record).tensors[rows[0]].shape if rows else None
    fits = shape is not None and len(shape) >= 2 and module.cls != "Embedding"
    return rows[0] if rows and fits and rows[0] in in_optimizers(record) else None


def _is_followed(record: Record, one: tuple[Module, int], behind: tuple[Module, int]) -> bool:
    """The two layers belong to one model by their names, or run inside the same call of a module."""
    if _root(record, one[1]) == _root(record, behind[1]):
        return True
    calls = calls_of_modules(record)
    around, other = ({call.parent for call in calls.get(module.module, ())} for module, _weight in (one, behind))
    return bool((around & other) - {None})


def _root(record: Record, tensor: int) -> str:
    return (lookup(record).tensors[tensor].fqn or "").partition(".")[0]


def _fits(record: Record, weight: int, following: int) -> bool:
    """The units of the first are what the second takes in; there are several."""
    one, other = lookup(record).tensors[weight].shape or (), lookup(record).tensors[following].shape or ()
    return len(one) > 1 and len(other) > 1 and one[0] == other[1] and one[0] > 1


def _constant(stats: Statistics | None) -> bool:
    if stats is None or stats.min is None or stats.max is None:
        return False
    return stats.max - stats.min <= _SAME * max(abs(stats.max), abs(stats.min))


def _number(record: Record, tensor: int) -> float | None:
    """The number that all elements were when the first gradient came; None if they differed."""
    arrivals = [row.moment for row in lookup(record).leaf_grads_of[tensor] if row.call is not None]
    if not arrivals:
        return None
    seen = [row for row in lookup(record).snapshots_of[tensor] if row.value is not None]
    stepped = next((update.moment for update in updates_of(record).get(tensor, ())), arrivals[0])
    before = [row for row in seen if row.moment < stepped]
    value = before[-1].value if before else None
    return value.min if value is not None and _constant(value) else None


def _stay_equal(record: Record, layer: Module, weight: int, following: int) -> bool:
    """After the last step the units are equal: their biases, their rows, or what the next layer makes of them."""
    steps = updates_of(record).get(weight, ())
    if len(steps) < LEAST_STEPS:
        return False
    last = steps[-1].moment
    biases = [row.tensor for row in layer.parameters if row.name == "bias" and row.tensor is not None]
    for bias in biases:
        seen = [row.value for row in lookup(record).snapshots_of[bias] if row.value is not None and row.moment >= last]
        if seen:
            return _constant(seen[-1]) and _numel(record, bias) > 1
    return _rows_equal(record, weight, last, by_row=True) or _rows_equal(record, following, last, by_row=False)


def _bias_moves(record: Record, layer: Module) -> bool:
    """Its bias holds several elements and changes with the steps: then their equal values say that they move alike."""
    for row in layer.parameters:
        if row.name == "bias" and row.tensor is not None and _numel(record, row.tensor) > 1:
            seen = {one.value.min for one in lookup(record).snapshots_of[row.tensor] if one.value is not None}
            return len(seen) > LEAST_STEPS
    return False


def _numel(record: Record, tensor: int) -> int:
    return lookup(record).tensors[tensor].numel


def _rows_equal(record: Record, tensor: int, since: int, *, by_row: bool) -> bool:
    """All rows of a small weight are the same; or all its columns."""
    kept = [row for row in record.small_values if row.tensor == tensor and row.of == "value" and row.moment >= since]
    if not kept or kept[-1].dtype != "float32" or len(kept[-1].shape) != 2:
        return False
    height, width = kept[-1].shape
    numbers = struct.unpack(f"<{height * width}f", kept[-1].elements)
    rows = [numbers[at * width : (at + 1) * width] for at in range(height)]
    lines = rows if by_row else list(zip(*rows, strict=True))
    return len(lines) > 1 and all(
        abs(one - other) <= _SAME * max(abs(one), abs(other), 1e-12)
        for line in lines[1:]
        for one, other in zip(lines[0], line, strict=True)
    )


def _finding(record: Record, layer: Module, weight: int, following: int) -> Finding | None:
    arrivals = [row.moment for row in lookup(record).leaf_grads_of[weight] if row.call is not None]
    written = written_last(record, weight, arrivals[0])
    other = written_last(record, following, arrivals[0])
    if written is None:
        return None
    shape = lookup(record).tensors[weight].shape or (0,)
    name, behind = called(record, weight), called(record, following)
    return told(
        record,
        RULE,
        written.site,
        (
            f"`{name}` and `{behind}` begin with one number everywhere: the {shape[0]} units between are equal.",
            "They get equal gradients and stay equal in every step: this is a layer of one unit.",
            "Start the weights at random (`nn.init.kaiming_uniform_`, or what the layer does by itself).",
        ),
        binding=name,
        moments=arrivals,
        related=((f"`{behind}` is filled here", None if other is None or other.site == written.site else other.site),),
        evidence={"units": shape[0], "number": _number(record, weight), "class": layer.cls},
        tensors=(weight, following),
    )
