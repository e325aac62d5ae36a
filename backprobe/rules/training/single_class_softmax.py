"""BP806 single-class-softmax: a softmax over one class is 1, whatever its input.

What it finds:
    A softmax or a cross entropy over a dimension of size 1, in every call, in a graph that is walked. The finding
    stands at the softmax: its call, or the line that builds its module; of a cross entropy, at its call.

Why it matters:
    The output is a constant, so its gradient is zero: nothing before it ever learns.

What PyTorch does:
    A softmax divides each element by the sum over its dimension; with one element the result is 1, and its
    logarithm 0. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        guess = nn.functional.softmax(model(x), dim=1)  # <- here
        (guess - (x[:, :1] > 0).float()).pow(2).mean().backward()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    for x in torch.randn(3, 8, 4):
        model.zero_grad()
        guess = torch.sigmoid(model(x))
        (guess - (x[:, :1] > 0).float()).pow(2).mean().backward()

Near miss: attention over one key at times
    import torch
    from torch import nn

    score, out = nn.Linear(4, 1), nn.Linear(4, 1)
    for length in (1, 3, 5):
        keys = torch.randn(8, length, 4)
        weights = torch.softmax(score(keys), dim=1)
        out((weights * keys).sum(1)).mean().backward()

Near miss: the class dimension is another one
    import torch
    from torch import nn

    model = nn.Linear(4, 3)
    guess = torch.softmax(model(torch.randn(1, 4)), dim=1)
    guess[:, 0].sum().backward()

Blind spots:
    In eager code the dimension is taken from the call; where it is a variable and no value was measured, nothing is
    said.

Source:
    torch.nn.Softmax in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from backprobe.rules.analysis.graph.walks import op_of, walked
from backprobe.rules.analysis.losses.activations import dim_of, use_of
from backprobe.rules.analysis.losses.loss_calls import callee, class_dim, loss_calls, region_of_call, shape_of
from backprobe.rules.analysis.rows.lookup import nodes_like
from backprobe.rules.framework.finding import Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="single-class-softmax",
    code="BP806",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "call", "backward"),
)

_Place = tuple[int, str]


def check(record: Record) -> Iterator[Finding]:
    """One finding per softmax in the program."""
    found: dict[_Place, list[tuple[bool, Region | None, int]]] = {}
    for node in nodes_like(record, lambda kind: op_of(kind) in ("Softmax", "LogSoftmax")):
        if node.node in walked(record) and node.outputs:
            dim, place = dim_of(record, node.node), use_of(record, node.node)
            if place is not None:
                is_single = dim is not None and node.outputs[0].shape[dim] == 1
                found.setdefault((place.site, place.text), []).append((is_single, place.region, node.first_seen))
    for call in loss_calls(record, "cross_entropy"):
        shape = shape_of(record, call.given) or ()
        classes = class_dim(shape)
        is_single = classes is not None and len(shape) > 1 and shape[classes] == 1
        key = (call.site, callee(record, call.call))
        found.setdefault(key, []).append((is_single, region_of_call(record, call.call), call.moment))
    for (site, text), rows in found.items():
        if all(is_single for is_single, _region, _moment in rows):
            yield _finding(record, site, text, rows)


def _finding(record: Record, site: int, text: str, rows: list[tuple[bool, Region | None, int]]) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            f"`{text}` runs over one class: a softmax of one element is 1, whatever it is given.",
            "Its gradient is zero, so nothing before it ever learns.",
            "For two classes from one output use a sigmoid (`BCEWithLogitsLoss`), else give it an output per class.",
        ),
        binding=text,
        moments=[moment for _single, _region, moment in rows],
        region=rows[0][1],
        evidence={"classes": 1, "calls": len(rows)},
    )
