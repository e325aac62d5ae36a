"""BP816 ratio-of-one-policy: a probability ratio whose two sides are one graph is 1 and trains nothing.

What it finds:
    `exp(new - old)` of two log-probabilities that both have a history over the same leaves, and whose difference is
    zero in every element: the old one is computed with the policy that is being trained, and is not detached.

Why it matters:
    The gradients of the two sides cancel exactly. The ratio is 1 in each step, its clipping never acts, and the policy
    gets no gradient from this term, although a loss is shown.

What PyTorch does:
    The derivative of `exp(a - b)` goes to `a` with one sign and to `b` with the other. Where both lead to the same
    leaves by the same operations, the sum in each `.grad` is zero. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    policy = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for states, advantage in zip(torch.randn(4, 8, 4), torch.randn(4, 8)):
        new = policy(states).log_softmax(-1)[:, 0]
        old = policy(states).log_softmax(-1)[:, 0]
        ratio = (new - old).exp()  # <- here
        optimizer.zero_grad()
        (-ratio * advantage).mean().backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    policy = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    for states, advantage in zip(torch.randn(4, 8, 4), torch.randn(4, 8)):
        new = policy(states).log_softmax(-1)[:, 0]
        old = new.detach()
        ratio = (new - old).exp()
        optimizer.zero_grad()
        (-ratio * advantage).mean().backward()
        optimizer.step()

Near miss: the two sides are two networks that begin alike
    import copy
    import torch
    from torch import nn

    policy = nn.Linear(4, 3)
    other = copy.deepcopy(policy)
    optimizer = torch.optim.SGD([*policy.parameters(), *other.parameters()], lr=0.1)
    for states in torch.randn(4, 8, 4):
        ratio = (policy(states).log_softmax(-1) - other(states).log_softmax(-1)).exp()
        optimizer.zero_grad()
        (ratio * states[:, :3]).mean().backward()
        optimizer.step()

Blind spots:
    With dropout the two sides differ in value, and are not told.

Source:
    Schulman et al.: Proximal Policy Optimization Algorithms, equation 6, where the old policy is a constant; observed
    with torch 2.13.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.graph.reach import leaves_behind
from backprobe.rules.analysis.graph.retained_values import walks
from backprobe.rules.analysis.graph.walks import op
from backprobe.rules.analysis.rows.lookup import lookup, nodes_like
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="ratio-of-one-policy",
    code="BP816",
    since="0.1",
    severity="warning",
    confidence="proven",
    fix="manual",
    needs=("node", "backward", "stats"),
)

LEAST: Final = 2
"""Steps in which both sides were equal and tracked: once may be a start."""

_SIDES: Final = 2
_SHIFTS: Final = frozenset({"Max", "Amax", "Min", "Amin", "Logsumexp"})
"""What a difference takes off so that its power does not overflow: over an axis of one it is the value itself."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that makes such a ratio."""
    found: dict[int, list[tuple[Node, frozenset[int]]]] = {}
    for node in nodes_like(record, "ExpBackward0".__eq__):
        leaves = _leaves_of_both(record, node)
        if leaves and node.site is not None and _is_one(record, node):
            found.setdefault(node.site, []).append((node, leaves))
    marks = walks(record)
    for site, rows in found.items():
        if len({bisect_right(marks, node.first_seen) for node, _leaves in rows}) >= LEAST:
            yield _finding(record, site, rows)


def _leaves_of_both(record: Record, node: Node) -> frozenset[int]:
    """The leaves behind the difference that the node raises to a power, if both sides have the same ones."""
    index = lookup(record)
    below = [edge.to_node for edge in index.edges_of[node.node] if edge.to_node is not None]
    if len(below) != 1 or not index.nodes[below[0]].type.startswith(("SubBackward", "RsubBackward")):
        return frozenset()
    sides = [edge.to_node for edge in index.edges_of[below[0]] if edge.to_node is not None]
    if len(sides) != _SIDES:
        return frozenset()
    made = {op(index.nodes[one]) for one in sides}
    if len(made) > 1 or made & _SHIFTS:
        return frozenset()
    first, second = (leaves_behind(record, one) for one in sides)
    return first if first == second else frozenset()


def _is_one(record: Record, node: Node) -> bool:
    """Each element of the result is 1: the sides were equal."""
    made = [row.tensor for row in record.tensor_nodes if row.node == node.node]
    values = [row.value for one in made for row in lookup(record).snapshots_of[one] if row.value is not None]
    return bool(values) and all(value.min == value.max == 1 for value in values)


def _finding(record: Record, site: int, rows: list[tuple[Node, frozenset[int]]]) -> Finding:
    node, leaves = rows[0]
    made = [row.tensor for row in record.tensor_nodes if row.node == node.node]
    name = next((row.name for one in made for row in lookup(record).bindings_of[one]), "the ratio")
    return told(
        record,
        RULE,
        site,
        (
            f"`{name}` is 1 in every element, {len(rows)} times: both sides of the difference are one graph.",
            f"Their gradients cancel: nothing comes from it to {together(record, sorted(leaves))}.",
            "Keep the old log-probabilities from when the data was made, under `no_grad`, or detach them.",
        ),
        binding=name,
        moments=[row.first_seen for row, _leaves in rows],
        evidence={"evaluations": len(rows), "value": 1.0, "leaves": sorted(leaves)[:16]},
        tensors=[*made[:1], *sorted(leaves)],
    )
