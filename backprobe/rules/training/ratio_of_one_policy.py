"""BP816 ratio-of-one-policy: a probability ratio whose two sides are one graph is 1 and trains nothing.

What it finds:
    `exp(new - old)` of two log-probabilities that both have a history over the same leaves, and whose difference is
    zero in every element: the old one is computed with the policy that is being trained, and is not detached. Or an old
    one without a history that is computed again for each update on the same data, so that the ratio never leaves 1.

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
from backprobe.rules.analysis.rows.lookup import bindings_named, lookup, nodes_like
from backprobe.rules.analysis.source.naming import together
from backprobe.rules.analysis.source.syntax import site_of
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
    for site, again in _renewed(record).items():
        yield _finding_renewed(record, site, again)


def _renewed(record: Record) -> dict[int, list[Node]]:
    """Ratios of 1 by the statement that makes the old side, where the same data was updated on before.

    The same data: what the ratio is multiplied by is one tensor in several updates. After a step the new side differs
    from what it was, so an old side that was kept would differ from it.
    """
    index = lookup(record)
    steps = [row.moment for row in record.optimizer_events if row.kind == "step"]
    factors: dict[int, set[int]] = {}
    for node in nodes_like(record, "MulBackward0".__eq__):
        for edge in index.edges_of[node.node]:
            if edge.to_node is not None and index.nodes[edge.to_node].type == "ExpBackward0":
                saved = {row.tensor for row in index.saved_of[node.node] if row.tensor is not None}
                factors.setdefault(edge.to_node, set()).update(saved)
    updates: dict[tuple[int, int], dict[int, Node]] = {}
    for number, together_with in factors.items():
        node = index.nodes[number]
        place = _old_side(record, node) if steps and _is_one(record, node) else None
        for factor in together_with if place is not None else ():
            updates.setdefault((place or 0, factor), {})[bisect_right(steps, node.first_seen)] = node
    found: dict[int, list[Node]] = {}
    for (place, _factor), rows in updates.items():
        if len(rows) >= LEAST:
            found.setdefault(place, []).extend(rows.values())
    return found


def _old_side(record: Record, node: Node) -> int | None:
    """The statement that bound the side without a history, of a difference of which only one side has one."""
    index = lookup(record)
    below = [edge.to_node for edge in index.edges_of[node.node] if edge.to_node is not None]
    difference = index.nodes[below[0]] if len(below) == 1 else None
    if difference is None or op(difference) != "Sub" or difference.site is None:
        return None
    if sum(edge.to_node is not None for edge in index.edges_of[difference.node]) != 1:
        return None
    shape = difference.outputs[0].shape if difference.outputs else None
    for name in site_of(record, difference.site).reads:
        rows = [row for row in bindings_named(record)[name] if row.moment <= difference.first_seen]
        made = index.tensors[rows[-1].tensor] if rows else None
        if made is not None and made.shape == shape and made.tensor not in index.node_of and made.cls != "Parameter":
            return rows[-1].site
    return None


def _finding_renewed(record: Record, site: int, rows: list[Node]) -> Finding:
    first = rows[0]
    made = [row.tensor for row in record.tensor_nodes if row.node == first.node]
    return told(
        record,
        RULE,
        site,
        (
            "The old side of the ratio is computed again for each update on the same data, by the new policy.",
            f"So the ratio is 1 in every element, {len(rows)} times after a step: clipping it never acts.",
            "Compute the old log-probabilities once, when the data is made, before the first update on it.",
        ),
        binding=next((row.name for one in made for row in lookup(record).bindings_of[one]), "the ratio"),
        moments=[row.first_seen for row in rows],
        related=(("the ratio is computed here", first.site if first.site != site else None),),
        evidence={"evaluations": len(rows), "value": 1.0},
    )


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
