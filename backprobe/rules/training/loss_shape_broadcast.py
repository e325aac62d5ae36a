"""BP808 loss-shape-broadcast: a loss compares a column with a row, each prediction with every target.

What it finds:
    In a regression loss the prediction has shape [N, 1] and the target [N], or the other way round. The difference has
    N x N elements, and their mean or sum is differentiated. The same of a loss for each sample, [N, 1], that is
    multiplied by a weight for each, [N], advantages say, and of an equation that is to be zero, [N, 1], to which a
    source for each, [N], is added. The finding stands where the two meet; if that is in a
    function that was handed both, where the module is called that gives the column.

Why it matters:
    Every prediction is pulled to the mean of all targets. The loss stays near the variance of the targets, and nothing
    is learned from the inputs. A weight that meets every sample weights none: the mean of all products is the product
    of the two means.

What PyTorch does:
    Shapes are aligned from the right, so [N] counts as [1, N], and [N, 1] minus [1, N] is [N, N]. The losses of
    `torch.nn` warn ("Using a target size ..."), arithmetic does not. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        target = x.sum(1)
        prediction = model(x)
        loss = nn.functional.mse_loss(prediction, target)  # <- here
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 3):
        target = x.sum(1)
        prediction = model(x).squeeze(1)
        loss = nn.functional.mse_loss(prediction, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: all pairs are meant, and the new dimensions are written out
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    scores = model(torch.randn(6, 3)).squeeze(1)
    ranks = torch.arange(6.0)
    margins = scores[:, None] - ranks[None, :]
    margins.pow(2).mean().backward()

Near miss: one target for all
    import torch
    from torch import nn

    model = nn.Linear(3, 1)
    prediction = model(torch.randn(6, 3))
    (prediction - torch.ones(1)).pow(2).mean().backward()

Near miss: the difference is no loss but goes on into a layer
    import torch
    from torch import nn

    model, centers, out = nn.Linear(3, 1), torch.linspace(-1, 1, 6), nn.Linear(6, 1)
    features = torch.exp(-(model(torch.randn(6, 3)) - centers).pow(2))
    out(features).mean().backward()

Near miss: a weight for each sample, as a column
    import torch
    from torch import nn

    model, weights = nn.Linear(3, 1), torch.rand(6)
    errors = (model(torch.randn(6, 3)) - torch.ones(6, 1)).pow(2)
    (errors * weights.unsqueeze(1)).mean().backward()

Near miss: a matrix of all pairs is compared
    import torch
    from torch import nn

    model, anchors = nn.Linear(3, 1), torch.rand(6)
    gaps = anchors[:, None] - anchors[None, :]
    ((model(torch.randn(6, 3)) - anchors) - gaps).pow(2).mean().backward()

Blind spots:
    Where neither side has a name in the statement, as in `(model(x[rows]) - y[rows]).pow(2)`, the other's shape is told
    from the result, and only where it is square. An operand that writes its dimensions out (`[None, :]`) is meant.

Source:
    "Broadcasting semantics" and torch.nn.MSELoss in PyTorch's documentation; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of
from backprobe.rules.analysis.losses.broadcasts import Broadcast, broadcasts
from backprobe.rules.analysis.losses.loss_calls import shape_of
from backprobe.rules.analysis.modules.module_outputs import call_around
from backprobe.rules.analysis.source.scopes import Function, parameters_of, scope_of
from backprobe.rules.analysis.source.syntax import site_of, statement, tree_of
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="loss-shape-broadcast",
    code="BP808",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "call", "backward"),
)

_EFFECT: Final = {
    "difference": "Each prediction is compared with every target, so all are pulled to the targets' mean.",
    "product": "Each sample is multiplied by every weight, so that in the mean all have the same one.",
    "sum": "Each value meets that of every sample, so all are pulled to the mean of what is added.",
}


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that broadcasts."""
    by_site: dict[int, list[Broadcast]] = {}
    for one in broadcasts(record):
        by_site.setdefault(one.site, []).append(one)
    for site, found in by_site.items():
        if not _follows(record, found[0], by_site.keys()):
            yield _finding(record, site, found)


def _follows(record: Record, one: Broadcast, sites: Iterable[int]) -> bool:
    """One of the two is made of what came out of another statement that broadcasts."""
    others = [other for other in sites if other != one.site]
    results = {name for other in others for name in site_of(record, other).targets}
    return bool(results & {name.partition(".")[0].partition("[")[0] for name in (one.left_name, one.right_name)})


def _finding(record: Record, site: int, found: list[Broadcast]) -> Finding:
    first = found[0]
    left, right, result = _sizes(first.left), _sizes(first.right), _sizes(first.result)
    column = first.left_name if len(first.left) > len(first.right) else first.right_name
    made = _made_outside(record, first)
    return told(
        record,
        RULE,
        site if made is None else made,
        (
            f"`{first.left_name}` is {left} and `{first.right_name}` is {right}: their {first.kind} is {result}.",
            _EFFECT[first.kind],
            f"Give both one shape: `{column}.squeeze(-1)`."
            if made is None
            else f"Give what becomes `{column}` the other's shape: `.squeeze(-1)`.",
        ),
        binding=first.left_name,
        moments=[one.moment for one in found],
        region=first.region if made is None else None,
        related=(
            ("here the two meet", None if made is None else site),
            (f"`{first.left_name}` comes from here", first.made_at if made is None and first.made_at != site else None),
        ),
        evidence={"left": list(first.left), "right": list(first.right), "result": list(first.result)},
        tensors=first.tensors,
    )


def _made_outside(record: Record, first: Broadcast) -> int | None:
    """Where the module that gives the column is called, if the two meet in a function that was handed both.

    A loss of two values of one shape is right: what is handed in is not.
    """
    site = site_of(record, first.site)
    node, tree = statement(record, site), tree_of(record, site)
    function = None if node is None or tree is None else scope_of(tree, node)
    columns = [one for one in first.tensors if shape_of(record, one) == max(first.left, first.right, key=len)]
    if not isinstance(function, Function) or not {first.left_name, first.right_name} <= set(parameters_of(function)):
        return None
    made = None if len(columns) != 1 else node_of(record, columns[0])
    call = None if made is None else call_around(record, made)
    if call is None or call.site is None or site_of(record, call.site).function == site.function:
        return None
    return call.site


def _sizes(shape: tuple[int, ...]) -> str:
    return "[" + ", ".join(str(size) for size in shape) + "]"
