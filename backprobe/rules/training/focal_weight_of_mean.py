"""BP818 focal-weight-of-mean: a loss is weighted by a function of itself after it was averaged over the batch.

What it finds:
    A cross entropy is averaged first, and the scalar is then multiplied by a power or another function of `exp(-loss)`,
    as a focal loss weights each sample. The loss was walked by a backward call.

Why it matters:
    A focal weight says how hard each sample is. Computed from the mean it is one number for the whole batch: no sample
    is weighted, and what changes is the step's size alone.

What PyTorch does:
    The losses of `torch.nn.functional` average unless they are told `reduction="none"`; their result has no dimension
    left over which a later `.mean()` could average. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        entropy = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))  # <- here
        loss = ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        entropy = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1), reduction="none")
        loss = ((1 - torch.exp(-entropy)) ** 2 * entropy).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the weight is another parameter's
    import torch
    from torch import nn

    net, scale = nn.Linear(4, 3), nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([*net.parameters(), scale], lr=0.1)
    for x in torch.randn(3, 8, 4):
        entropy = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        loss = torch.exp(-scale) * entropy + scale
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the perplexity is only shown
    import torch
    from torch import nn

    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        print(torch.exp(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: one sample at a time
    import torch
    from torch import nn

    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in torch.randn(3, 1, 4):
        entropy = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        loss = (1 - torch.exp(-entropy)) ** 2 * entropy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    A weight that is detached, or computed from the probabilities' own mean, is not seen.

Source:
    Lin et al., Focal Loss for Dense Object Detection, arXiv:1708.02002, equation 5, which is of one example; the losses
    of torch.nn.functional in PyTorch's documentation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import node_of, op, operands, walked
from backprobe.rules.analysis.losses.loss_calls import LossCall, callee, loss_calls, region_of_call, tensor_given
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="focal-weight-of-mean",
    code="BP818",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "call", "backward"),
)

_LOSSES: Final = ("cross_entropy", "nll_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits")

_BETWEEN: Final = frozenset({"Neg", "Exp", "Rsub", "Sub", "Add", "Pow", "Mul", "Div"})
"""What a focal weight is computed by."""

_LONGEST: Final = 12
"""Operations between the loss and a factor of its weight."""

_SIDES: Final = 2


def check(record: Record) -> Iterator[Finding]:
    """One finding per call of the loss in the program."""
    products = nodes_like(record, "MulBackward0".__eq__)
    means = {} if not products else _means(record)
    by_site: dict[int, list[LossCall]] = {}
    for node in products if means else ():
        sides = [one for one in operands(record, node.node) if one is not None]
        if len(sides) != _SIDES or node.node not in walked(record):
            continue
        (first, one), (second, other) = (_source(record, side, means) for side in sides)
        if first is not None and first == second and (one or other):
            by_site.setdefault(means[first].site, []).append(means[first])
    for site, calls in by_site.items():
        yield _finding(record, site, calls)


def _means(record: Record) -> dict[int, LossCall]:
    """The calls that gave one number for several targets, by the node that gave it."""
    index, found = lookup(record), dict[int, LossCall]()
    for call in loss_calls(record, *_LOSSES):
        target = tensor_given(call.call, "target")
        made = node_of(record, call.call.outputs[0]) if call.call.outputs else None
        if target is None or made is None or (index.tensors[target].numel or 0) < _SIDES:
            continue
        if index.tensors[call.call.outputs[0]].shape == ():
            found[made] = call
    return found


def _source(record: Record, node: int, means: dict[int, LossCall]) -> tuple[int | None, bool]:
    """The averaged loss that a factor is a function of, and whether by `exp`; None: of something else too."""
    index, powers = lookup(record), False
    for _ in range(_LONGEST):
        if node in means:
            return node, powers
        made = op(index.nodes[node])
        below = [one for one in operands(record, node) if one is not None]
        if made not in _BETWEEN or len(below) != 1:
            return None, False
        powers = powers or made == "Exp"
        node = below[0]
    return None, False


def _finding(record: Record, site: int, calls: list[LossCall]) -> Finding:
    name = callee(record, calls[0].call)
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` averages over the batch here, and the average is then weighted by a function of itself.",
            "The weight is one number for all samples: none counts more than another.",
            'Use `reduction="none"` here, weight each sample, and average after that.',
        ),
        binding=name,
        moments=[one.moment for one in calls],
        region=region_of_call(record, calls[0].call),
        evidence={"function": calls[0].call.function, "calls": len(calls)},
    )
