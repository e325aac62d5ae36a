"""BP802 double-sigmoid: a loss that applies a sigmoid itself is given the result of a sigmoid.

What it finds:
    What `binary_cross_entropy_with_logits` gets was computed by a sigmoid, with nothing but views between the two.
    The finding stands at that sigmoid: its call, or the line that builds a part of a Sequential.

Why it matters:
    Probabilities taken for logits lie between 0 and 1, so the loss sees probabilities between 0.5 and 0.73: no
    output can be confidently negative, the loss cannot fall below 0.31, and gradients are small.

What PyTorch does:
    The loss is the binary cross entropy of the sigmoid of its input. It cannot know that it was given
    probabilities, and says nothing. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    criterion = nn.BCEWithLogitsLoss()
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        score = torch.sigmoid(model(x))  # <- here
        criterion(score, (x[:, :1] > 0).float()).backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    criterion = nn.BCEWithLogitsLoss()
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        score = model(x)
        criterion(score, (x[:, :1] > 0).float()).backward()

Near miss: a gate before the last layer
    import torch
    from torch import nn

    inner, gate, out = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 1)
    x = torch.randn(8, 4)
    h = inner(x) * torch.sigmoid(gate(x))
    nn.functional.binary_cross_entropy_with_logits(out(h), torch.ones(8, 1)).backward()

Near miss: the probability is only shown
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    logit = model(torch.randn(8, 4))
    print(torch.sigmoid(logit).mean())
    nn.functional.binary_cross_entropy_with_logits(logit, torch.ones(8, 1)).backward()

Blind spots:
    A loss of the program's own that applies a sigmoid by itself is not looked through.

Source:
    torch.nn.BCEWithLogitsLoss in PyTorch's documentation; 0.31 is log(1 + 1 / e), from logit 1 and target 1;
    observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.losses.activations import Place, trains_elsewhere, use_of
from backprobe.rules.analysis.losses.loss_calls import LossCall, callee, loss_calls, region_of_call
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="double-sigmoid",
    code="BP802",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "call", "backward"),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per sigmoid that feeds such a loss."""
    by_place: dict[tuple[int, str], list[tuple[Place, LossCall]]] = {}
    for call in loss_calls(record, "binary_cross_entropy_with_logits"):
        if call.made_by is not None and op(lookup(record).nodes[call.made_by]) == "Sigmoid":
            place = use_of(record, call.made_by)
            if place is not None:
                by_place.setdefault((place.site, place.text), []).append((place, call))
    for found in by_place.values():
        yield _finding(record, found)


def _finding(record: Record, found: list[tuple[Place, LossCall]]) -> Finding:
    place, call = found[0]
    name = callee(record, call.call)
    wanted = trains_elsewhere(record, call.given, call.site)
    return told(
        record,
        RULE,
        call.site if wanted else place.site,
        (
            f"`{place.text}` feeds `{name}`, which applies a sigmoid itself.",
            "The loss sees probabilities between 0.5 and 0.73 only: it stays above 0.31, and gradients are small.",
            f"Give `{name}` the logits; apply the sigmoid only where probabilities are shown.",
        ),
        binding=place.text,
        moments=[one.moment for _place, one in found],
        region=region_of_call(record, call.call) if wanted else place.region,
        related=(
            ("it is applied here", place.site if wanted and call.site != place.site else None),
            ("the module is built here", place.built),
            (f"`{name}` applies a sigmoid again", None if wanted or call.site == place.site else call.site),
        ),
        evidence={"calls": len(found), "assumed": "the loss is meant for these probabilities"},
        tensors=(call.given,),
    )
