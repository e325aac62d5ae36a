"""BP807 softmax-over-batch: a softmax runs over the samples of a batch instead of the classes.

What it finds:
    What a class loss gets was computed by a softmax or log_softmax over dimension 0, which is as long as the
    targets, while the classes are in another one.

Why it matters:
    The probabilities of one sample do not sum to 1; those of one class over the batch do. Samples compete with each
    other, and the result for one depends on what else is in the batch.

What PyTorch does:
    `softmax(dim=0)` normalises over the first dimension, whatever it means. `nn.Softmax()` without `dim` guesses: 0
    for one and three dimensions, else 1. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        scores = torch.log_softmax(model(x), dim=0)  # <- here
        nn.functional.nll_loss(scores, x.argmax(1) % 3).backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        scores = torch.log_softmax(model(x), dim=1)
        nn.functional.nll_loss(scores, x.argmax(1) % 3).backward()

Near miss: each text is matched with its image, both ways
    import torch
    from torch import nn

    one, other = nn.Linear(4, 3), nn.Linear(4, 3)
    x = torch.randn(8, 4)
    scores = one(x) @ other(x).t()
    target = torch.arange(8)
    loss = nn.functional.nll_loss(scores.log_softmax(1), target)
    (loss + nn.functional.nll_loss(scores.log_softmax(0).t(), target)).backward()

Near miss: one sample without a batch
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    nn.functional.nll_loss(model(torch.randn(4)).log_softmax(0), torch.tensor(1)).backward()

Blind spots:
    A square score matrix is left alone: it may be a contrast of a batch with itself.

Source:
    torch.nn.LogSoftmax in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import op, operands
from backprobe.rules.analysis.losses.activations import Place, dim_of, place_of
from backprobe.rules.analysis.losses.loss_calls import LossCall, callee, loss_calls, shape_of, tensor_given
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="softmax-over-batch",
    code="BP807",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "call", "backward"),
    refines=("nll-without-log",),
)


def check(record: Record) -> Iterator[Finding]:
    """One finding per softmax that runs over the batch."""
    by_place: dict[tuple[int, str], list[tuple[Place, LossCall]]] = {}
    for call in loss_calls(record, "nll_loss", "cross_entropy", "kl_div"):
        made_by = None if call.made_by is None else _behind_log(record, call.made_by)
        if made_by is not None and _runs_over_batch(record, call, made_by):
            place = place_of(record, made_by)
            if place is not None:
                by_place.setdefault((place.site, place.text), []).append((place, call))
    for found in by_place.values():
        yield _finding(record, found)


def _behind_log(record: Record, node: int) -> int:
    """What the logarithm is taken of, small numbers added and bounds put to it: `torch.log(p + 1e-8)`."""
    while op(lookup(record).nodes[node]) in ("Log", "Add", "Clamp", "ClampMin"):
        tracked = [one for one in operands(record, node) if one is not None]
        if len(tracked) != 1:
            break
        node = tracked[0]
    return node


def _runs_over_batch(record: Record, call: LossCall, made_by: int) -> bool:
    """Dimension 0 is normalised, is as long as the targets, and is not the classes'."""
    row, shape = lookup(record).nodes[made_by], shape_of(record, call.given)
    target = shape_of(record, tensor_given(call.call, "target"))
    is_softmax = op(row) in ("Softmax", "LogSoftmax") and bool(row.outputs)
    if not is_softmax or shape is None or row.outputs[0].shape != shape:
        return False
    is_matrix = len(shape) > 1 and shape[0] != shape[1]
    return is_matrix and target is not None and target[:1] == shape[:1] and dim_of(record, made_by) == 0


def _finding(record: Record, found: list[tuple[Place, LossCall]]) -> Finding:
    place, call = found[0]
    shape = list(shape_of(record, call.given) or (0, 0))
    name = callee(record, call.call)
    return told(
        record,
        RULE,
        place.site,
        (
            f"`{place.text}` normalises over dimension 0, the {shape[0]} samples, not over the {shape[1]} classes.",
            "The probabilities of a sample do not sum to 1, and depend on what else is in the batch.",
            "Use `dim=1`, or `dim=-1` where the classes come last.",
        ),
        binding=place.text,
        moments=[one.moment for _place, one in found],
        region=place.region,
        related=((f"`{name}` takes dimension 0 as the samples", call.site if call.site != place.site else None),),
        evidence={"shape": shape, "dim": 0, "assumed": "the targets count samples"},
        tensors=(call.given,),
    )
