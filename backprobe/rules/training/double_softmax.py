"""BP801 double-softmax: a loss that applies softmax itself is given the result of a softmax.

What it finds:
    What `cross_entropy` gets was computed by a softmax over the classes, with nothing but views between the two. The
    finding stands at that softmax: its call, or the line that builds a part of a Sequential.

Why it matters:
    A softmax of probabilities is nearly flat. The loss cannot fall below a floor (0.55 for three classes, 1.46 for
    ten), the gradients are small, and training is slow or stops early.

What PyTorch does:
    `cross_entropy` is `nll_loss` of `log_softmax`: it wants logits, any real numbers. It cannot know that it was given
    probabilities, and says nothing. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        probabilities = torch.softmax(model(x), dim=1)  # <- here
        loss = criterion(probabilities, x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        logits = model(x)
        loss = criterion(logits, x.argmax(1) % 3)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: attention weights are followed by a product
    import torch
    from torch import nn

    keys = nn.Linear(4, 4)
    x = torch.randn(8, 4)
    weights = torch.softmax(keys(x), dim=1)
    nn.functional.cross_entropy(weights @ torch.randn(4, 3), x.argmax(1) % 3).backward()

Near miss: the softmax is only shown
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    x = torch.randn(8, 4)
    logits = model(x)
    print(torch.softmax(logits, dim=1).max())
    nn.functional.cross_entropy(logits, x.argmax(1) % 3).backward()

Near miss: the targets are probabilities
    import torch
    from torch import nn

    model, teacher = nn.Linear(4, 3), nn.Linear(4, 3)
    x = torch.randn(8, 4)
    nn.functional.cross_entropy(model(x), torch.softmax(teacher(x), dim=1).detach()).backward()

Blind spots:
    A loss of the program's own that applies `log_softmax` by itself is not looked through. A softmax over another
    dimension than the classes is left to BP807.

Source:
    torch.nn.CrossEntropyLoss in PyTorch's documentation; the floor is log(1 + (C - 1) / e) for C classes, from logits 1
    and 0; observed with torch 2.13.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.losses.activations import Place, dim_of, trains_elsewhere, use_of
from backprobe.rules.analysis.losses.loss_calls import (
    LossCall,
    callee,
    class_dim,
    loss_calls,
    region_of_call,
    shape_of,
)
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="double-softmax",
    code="BP801",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "call", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per softmax that feeds a cross entropy."""
    by_place: dict[tuple[int, str], list[tuple[Place, LossCall]]] = {}
    for call in loss_calls(record, "cross_entropy"):
        place = _softmax_before(record, call)
        if place is not None:
            by_place.setdefault((place.site, place.text), []).append((place, call))
    for found in by_place.values():
        yield _finding(record, found)


def _softmax_before(record: Record, call: LossCall) -> Place | None:
    """Where the softmax over the classes stands that made what the loss was given."""
    if call.made_by is None:
        return None
    row, shape = lookup(record).nodes[call.made_by], shape_of(record, call.given) or ()
    classes = class_dim(shape)
    if op(row) != "Softmax" or classes is None or not row.outputs:
        return None
    dim, made = dim_of(record, call.made_by), row.outputs[0].shape
    if dim is not None and (made[dim] != shape[classes] or (made == shape and dim != classes)):
        return None
    return use_of(record, call.made_by)


def _finding(record: Record, found: list[tuple[Place, LossCall]]) -> Finding:
    place, call = found[0]
    name = callee(record, call.call)
    wanted = trains_elsewhere(record, call.given, call.site)
    shape = shape_of(record, call.given) or (2,)
    classes = shape[class_dim(shape) or 0]
    floor = math.log(1 + (classes - 1) / math.e)
    return told(
        record,
        RULE,
        call.site if wanted else place.site,
        (
            f"`{place.text}` feeds `{name}`, which applies softmax itself.",
            f"A softmax of probabilities is nearly flat: with {classes} classes the loss stays above {floor:.2f}.",
            f"Give `{name}` the logits; apply softmax only where probabilities are shown.",
        ),
        binding=place.text,
        moments=[one.moment for _place, one in found],
        region=region_of_call(record, call.call) if wanted else place.region,
        related=(
            ("it is applied here", place.site if wanted and call.site != place.site else None),
            ("the module is built here", place.built),
            (f"`{name}` applies softmax again", None if wanted or call.site == place.site else call.site),
        ),
        evidence={"classes": classes, "calls": len(found), "assumed": "the loss is meant for these probabilities"},
        tensors=(call.given,),
    )
