"""BP864 softmax-over-wrong-axis: weights are normalised over one dimension and summed over another.

What it finds:
    The result of a softmax is multiplied with values and summed, and the sum runs over another dimension than the
    softmax: in a matrix product, over the keys of attention; or, where the softmax runs over the first dimension, the
    batch, in any sum of weighted values, or where probabilities are normalised again over their last dimension.

Why it matters:
    The weights of one sum do not add up to 1. Samples of a batch, or queries, compete with each other: the result for
    one depends on the others, and a causal mask no longer holds.

What PyTorch does:
    `softmax(dim=d)` normalises over d, whatever it means; `a @ b` sums over the last dimension of a. Nothing is said.
    Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    q, k, v = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(4, 5)
    for x in torch.randn(3, 8, 6, 4):
        scores = q(x) @ k(x).transpose(1, 2)
        weights = torch.softmax(scores, dim=1)  # <- here
        (weights @ v(x)).pow(2).mean().backward()

Use instead:
    import torch
    from torch import nn

    q, k, v = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(4, 5)
    for x in torch.randn(3, 8, 6, 4):
        scores = q(x) @ k(x).transpose(1, 2)
        weights = torch.softmax(scores, dim=-1)
        (weights @ v(x)).pow(2).mean().backward()

Near miss: the weights are turned before the product
    import torch
    from torch import nn

    q, k, v = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(4, 5)
    for x in torch.randn(3, 8, 6, 4):
        context = k(x).softmax(dim=1).transpose(1, 2) @ v(x)
        (q(x).softmax(dim=-1) @ context).pow(2).mean().backward()

Near miss: a bag of instances has no batch
    import torch
    from torch import nn

    encode, score = nn.Linear(4, 5), nn.Linear(5, 1)
    for x in torch.randn(3, 8, 4):
        hidden = encode(x)
        weights = torch.softmax(score(hidden), dim=0)
        (weights * hidden).sum(dim=0).pow(2).mean().backward()

Near miss: slots compete for the inputs and are normalised anew
    import torch
    from torch import nn

    q, k, v = nn.Linear(4, 5), nn.Linear(4, 5), nn.Linear(4, 5)
    for x in torch.randn(3, 8, 6, 4):
        share = torch.softmax(q(x)[:, :3] @ k(x).transpose(1, 2), dim=1)
        share = share / share.sum(dim=-1, keepdim=True)
        (share @ v(x)).pow(2).mean().backward()

Blind spots:
    Where the sizes of dimensions that are swapped are equal, the dimension cannot be followed. `einsum` is followed as
    far as it becomes a matrix product.

Source:
    Vaswani et al., "Attention Is All You Need" (2017), equation 1; observed with torch 2.13.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import leading_to
from backprobe.rules.analysis.graph.walks import op, op_of, operands, walked
from backprobe.rules.analysis.losses.activations import Place, dim_of, place_of
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule
from backprobe.rules.framework.tables import table

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="softmax-over-wrong-axis",
    code="BP864",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "call", "backward"),
    refines=("softmax-over-batch",),
)

LEAST: Final = 2
"""Softmaxes of one place: once is no pattern."""
_SAME: Final = frozenset({
    "View", "UnsafeView", "Reshape", "ReshapeAlias", "Expand", "Clone", "Alias", "ToCopy", "NativeDropout",
})  # fmt: skip
"""Operations after which a dimension is where its size and neighbours are."""
_TURNS: Final = frozenset({"Transpose", "T", "Permute"})


def check(record: Record) -> Iterator[Finding]:
    """One finding per softmax that never runs over what is summed."""
    by_place: dict[tuple[int, str], list[tuple[Place, Node, tuple[int, int]]]] = {}
    others: dict[tuple[int, str], int] = {}
    for node in nodes_like(record, lambda kind: op_of(kind) == "Softmax"):
        place = place_of(record, node.node) if node.node in walked(record) else None
        if place is None:
            continue
        key, wrong = (place.site, place.text), _wrong_sum(record, node)
        if wrong is None:
            others[key] = others.get(key, 0) + 1
        else:
            by_place.setdefault(key, []).append((place, node, wrong))
    for key, found in by_place.items():
        if len(found) >= LEAST and key not in others:
            yield _finding(record, found)


def _wrong_sum(record: Record, node: Node) -> tuple[int, int] | None:
    """The dimension of the softmax and the one that is summed, if they differ; None if not, or if not known."""
    shape = node.outputs[0].shape if node.outputs else ()
    dim = dim_of(record, node.node)
    if dim is None or len(shape) < 2 or shape[dim] < 2 or _is_parameter(record, node):
        return None
    for at, where, size in _followed(record, node.node, dim, shape):
        summed = _summed(record, at, size)
        if summed is not None and where is not None and summed != where:
            is_product = op(lookup(record).nodes[at]) in ("Bmm", "Mm")
            if is_product or dim == 0:
                return dim, summed
        if summed is not None:
            return None
    return None


def _is_parameter(record: Record, node: Node) -> bool:
    """What is normalised is a parameter: a matrix of the model's own may have its distributions in columns."""
    below = [one for one in operands(record, node.node) if one is not None]
    return any(lookup(record).nodes[one].variable is not None for one in below)


def _followed(
    record: Record, start: int, dim: int, shape: tuple[int, ...]
) -> Iterator[tuple[int, int | None, tuple[int, ...]]]:
    """The nodes that use the weights, each with the place of the dimension in what it gets, and the sizes of that."""
    waiting: list[tuple[int, int | None, tuple[int, ...]]] = [(start, dim, shape)]
    seen: set[int] = set()
    while waiting:
        node, where, size = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        for user in leading_to(record).get((node, 0), ()):
            row = lookup(record).nodes[user]
            out = row.outputs[0].shape if row.outputs else ()
            if op(row) in _TURNS:
                waiting.append((user, _turned(size, out, where), out))
            elif op(row) in _SAME or (op(row) in ("Mul", "Div") and out == size and _is_dropout(record, user)):
                waiting.append((user, _kept(size, out, where), out))
            elif op(row) == "Mul" and len(out) == len(size):
                yield from ((one, where, out) for one in leading_to(record).get((user, 0), ()) if _is_sum(record, one))
            else:
                yield user, where, size


def _is_dropout(record: Record, node: int) -> bool:
    """One operand alone is tracked, and it is as large as the result: a mask or a number is multiplied."""
    return len([one for one in operands(record, node) if one is not None]) == 1


def _is_sum(record: Record, node: int) -> bool:
    return op(lookup(record).nodes[node]) == "Sum"


def _turned(size: tuple[int, ...], out: tuple[int, ...], where: int | None) -> int | None:
    """Where a dimension lies after a transpose: by its size, if no other has it."""
    if where is None or size.count(size[where]) != 1 or len(out) != len(size):
        return None
    return out.index(size[where]) if out.count(size[where]) == 1 else None


def _kept(size: tuple[int, ...], out: tuple[int, ...], where: int | None) -> int | None:
    """Where a dimension lies after a change of shape that keeps the last two, or adds and takes off those of size 1."""
    if where is None or out == size:
        return where
    if size[-2:] == out[-2:] and where >= len(size) - 2:
        return len(out) - len(size) + where
    if size[-2:] == out[-2:] and len(out) > 2:
        return 0  # among the dimensions in front, which a product does not sum over
    plain = [at for at, length in enumerate(size) if length != 1]
    new = [at for at, length in enumerate(out) if length != 1]
    if [size[at] for at in plain] == [out[at] for at in new] and where in plain:
        return new[plain.index(where)]
    return None


def _summed(record: Record, node: int, size: tuple[int, ...]) -> int | None:
    """The dimension that a node sums over in what it is given; None if it sums over none or several."""
    row = lookup(record).nodes[node]
    out = row.outputs[0].shape if row.outputs else ()
    if op(row) in ("Bmm", "Mm"):
        is_first = _first_sizes(record, node) == size
        return len(size) - 1 if is_first and out[:-1] == size[:-1] else None
    if op(row) != "Sum" or not out:
        return None
    fitting = [at for at in range(len(size)) if out in (size[:at] + size[at + 1 :], (*size[:at], 1, *size[at + 1 :]))]
    return fitting[0] if len(fitting) == 1 else None


def _first_sizes(record: Record, node: int) -> tuple[int, ...] | None:
    """The sizes of the first operand of a product, where it is tracked."""
    first = _operand_slots(record).get((node, 0))
    row = None if first is None else lookup(record).nodes[first]
    return row.outputs[0].shape if row is not None and row.outputs else None


@table
def _operand_slots(record: Record) -> dict[tuple[int, int], int | None]:
    return {(edge.node, edge.slot): edge.to_node for edge in record.edges}


def _finding(record: Record, found: list[tuple[Place, Node, tuple[int, int]]]) -> Finding:
    place, node, (dim, summed) = found[0]
    shape = node.outputs[0].shape
    return told(
        record,
        RULE,
        place.site,
        (
            f"`{place.text}` normalises over dimension {dim}, of {shape[dim]}; the weighted sum runs over another one.",
            "The weights of one sum do not add up to 1, and depend on the other rows of the batch.",
            "Normalise over the dimension that is summed: `dim=-1` for attention of queries to keys.",
        ),
        binding=place.text,
        moments=[row.first_seen for _place, row, _wrong in found],
        region=place.region,
        evidence={"shape": list(shape), "dim": dim, "summed": summed, "times": len(found)},
    )
