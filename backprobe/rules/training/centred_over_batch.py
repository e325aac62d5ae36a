"""BP846 centred-over-batch: the mean of the whole batch is subtracted where each row's own is meant.

What it finds:
    A tracked matrix with a row per example has its mean over all elements, or over the rows, subtracted from it, and a
    column with one value per example is added, as a dueling network does. Or an advantage, a difference of two values
    per example, is averaged to one number before it weights the log-probabilities.

Why it matters:
    What the network says of one example depends on which others are in the batch, and differs when it is asked alone.
    An averaged advantage treats all actions of the batch as equally good.

What PyTorch does:
    `mean()` without `dim` is over everything. Broadcasting adds the result to each row. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    value, advantage = nn.Linear(4, 1), nn.Linear(4, 3)
    optimizer = torch.optim.SGD([*value.parameters(), *advantage.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 4):
        each = advantage(x)
        q = value(x) + each - each.mean()  # <- here
        loss = (q - x[:, :3]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    value, advantage = nn.Linear(4, 1), nn.Linear(4, 3)
    optimizer = torch.optim.SGD([*value.parameters(), *advantage.parameters()], lr=0.1)
    for x in torch.randn(3, 8, 4):
        each = advantage(x)
        q = value(x) + each - each.mean(1, keepdim=True)
        loss = (q - x[:, :3]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: returns are normalised over the batch
    import torch
    from torch import nn

    actor = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(actor.parameters(), lr=0.1)
    for x in torch.randn(3, 8, 4):
        policy = torch.distributions.Categorical(logits=actor(x))
        action = policy.sample()
        gain = x.gather(1, action[:, None]).squeeze(1)
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        loss = -(policy.log_prob(action) * gain).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Blind spots:
    Means that are taken in another statement than the sum, behind a name, are followed one step only.

Source:
    Z. Wang et al.: Dueling network architectures for deep reinforcement learning, equation 9.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.walks import behind_shapes, op, op_of, operands, walked
from backprobe.rules.analysis.losses.gaussian_terms import users
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.tensors.operation_chains import takers
from backprobe.rules.analysis.tensors.parents import made_by, operations_by_number
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Operation, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="centred-over-batch",
    code="BP846",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="manual",
    needs=("node", "backward", "parents"),
)

LEAST: Final = 2
"""Means: once is no pattern."""
_CHAIN: Final = frozenset({"Add", "Sub"})
_PAIR: Final = 2


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that takes such a mean."""
    found: dict[int, list[int]] = {}
    for node in nodes_like(record, lambda kind: op_of(kind) == "Mean"):
        if node.site is not None and node.node in walked(record) and _is_of_all_rows(record, node):
            found.setdefault(node.site, []).append(node.first_seen)
    for site, moments in found.items():
        if len(moments) >= LEAST:
            yield _finding(
                record, site, moments, "values", "Take it over the last dimension: `mean(-1, keepdim=True)`."
            )
    averaged: dict[int, list[int]] = {}
    for row in record.operations:
        if row.function.rpartition(".")[2] == "mean" and row.shape == () and _is_averaged_advantage(record, row):
            averaged.setdefault(row.statement, []).append(row.moment or 0)
    for site, moments in averaged.items():
        if len(moments) >= LEAST:
            yield _finding(record, site, moments, "advantages", "Leave the `mean()` out: each action has its own.")


def _is_of_all_rows(record: Record, mean: Node) -> bool:
    """The mean is subtracted from what it is the mean of, in a sum with a column of one value for each row."""
    index = lookup(record)
    below = operands(record, mean.node)
    of = below[0] if len(below) == 1 else None
    if of is None or not index.nodes[of].outputs or not mean.outputs:
        return False
    shape = index.nodes[of].outputs[0].shape
    if len(shape) != _PAIR or min(shape) < _PAIR or mean.outputs[0].shape not in ((), (1, shape[1]), (shape[1],)):
        return False
    for user in users(record).get(mean.node, ()):
        if op(index.nodes[user]) != "Sub" or operands(record, user)[-1] != mean.node:
            continue
        beside = [*operands(record, user)[:1], *_added_to(record, user)]
        parts = {part for one in beside if one is not None for part in _summed(record, one)}
        columns = [one for one in parts if _shape(record, one) == (shape[0], 1)]
        if of in parts and columns:
            return True
    return False


def _added_to(record: Record, node: int) -> Iterator[int | None]:
    for user in users(record).get(node, ()):
        if op(lookup(record).nodes[user]) == "Add":
            yield from (one for one in operands(record, user) if one != node)


def _summed(record: Record, node: int) -> Iterator[int]:
    """A node, or the summands of it."""
    yield node
    if op(lookup(record).nodes[node]) in _CHAIN:
        yield from (one for one in operands(record, node) if one is not None)


def _shape(record: Record, node: int) -> tuple[int, ...] | None:
    outputs = lookup(record).nodes[node].outputs
    return tuple(outputs[0].shape) if outputs else None


def _is_averaged_advantage(record: Record, mean: Operation) -> bool:
    """An untracked difference per example is averaged, and weights log-probabilities per example."""
    if mean.requires_grad or mean.tensor is None:
        return False
    below = [operations_by_number(record)[one] for one in mean.inner if one in operations_by_number(record)]
    below += [made_by(record)[one] for one in mean.operands if one in made_by(record)]
    if (
        len(below) != 1
        or below[0].function != "-"
        or len(below[0].shape or ()) != 1
        or (below[0].shape or (1,))[0] < _PAIR
    ):
        return False
    if len(below[0].operands) + len(below[0].inner) != _PAIR:
        return False
    size = (below[0].shape or (1,))[0]
    return any(
        row.function == "*" and row.shape == (size,) and _picks(record, row)
        for row in takers(record).get(mean.tensor, ())
    )


def _picks(record: Record, product: Operation) -> bool:
    """The other factor was picked by index out of logarithms of probabilities."""
    index = lookup(record)
    for tensor in [product.tensor] if product.tensor is not None else []:
        made = index.node_of.get(tensor)
        for one in operands(record, made.node) if made is not None else ():
            node = None if one is None else one
            for _turn in range(_PAIR):
                if node is not None and op(index.nodes[node]) in ("Gather", "Index"):
                    inside = [behind_shapes(record, below) for below in operands(record, node)[:1]]
                    return any(part is not None and op(index.nodes[part]) in ("LogSoftmax", "Sub") for part in inside)
                below = [] if node is None else operands(record, node)
                node = below[0] if len(below) == 1 else None
    return False


def _finding(record: Record, site: int, moments: list[int], what: str, remedy: str) -> Finding:
    return told(
        record,
        RULE,
        site,
        (
            f"The mean of the {what} is taken over the examples of the batch too.",
            "What comes out for one example depends on which others are beside it.",
            remedy,
        ),
        binding="mean",
        moments=sorted(moments),
        evidence={"means": len(moments), "assumed": "examples are not meant to depend on each other"},
    )
