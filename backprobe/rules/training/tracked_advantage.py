"""BP811 tracked-advantage: a log-probability is weighted by a value that the same step trains as a regression.

What it finds:
    The result of `log_prob` is multiplied by an advantage through which gradients flow to the critic, and the
    critic has a regression loss of its own. The critic is then stepped on both.

Why it matters:
    The policy's loss pushes the critic: values are lowered where actions were likely, whatever the returns. The
    estimate that the advantage rests on is spoilt.

What PyTorch does:
    Both factors of a product are differentiated if both are tracked. Nothing is said. Seen in torch 2.13.

Example:
    import torch
    from torch import nn

    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)
    for state in torch.randn(3, 8, 4):
        reward = state.sum(1)
        policy = torch.distributions.Categorical(logits=actor(state))
        action = policy.sample()
        value = critic(state).squeeze(1)
        advantage = reward - value
        actor_loss = -(policy.log_prob(action) * advantage).mean()  # <- here
        loss = actor_loss + (reward - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Use instead:
    import torch
    from torch import nn

    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*actor.parameters(), *critic.parameters()], lr=0.1)
    for state in torch.randn(3, 8, 4):
        reward = state.sum(1)
        policy = torch.distributions.Categorical(logits=actor(state))
        action = policy.sample()
        value = critic(state).squeeze(1)
        advantage = (reward - value).detach()
        actor_loss = -(policy.log_prob(action) * advantage).mean()
        loss = actor_loss + (reward - value).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

Near miss: the critic's gradients are cleared before its own loss
    import torch
    from torch import nn

    actor, critic = nn.Linear(4, 2), nn.Linear(4, 1)
    first = torch.optim.SGD(actor.parameters(), lr=0.1)
    second = torch.optim.SGD(critic.parameters(), lr=0.1)
    for state in torch.randn(3, 8, 4):
        reward = state.sum(1)
        policy = torch.distributions.Categorical(logits=actor(state))
        advantage = reward - critic(state).squeeze(1)
        first.zero_grad()
        (-(policy.log_prob(policy.sample()) * advantage).mean()).backward(retain_graph=True)
        first.step()
        second.zero_grad()
        advantage.pow(2).mean().backward()
        second.step()

Near miss: a weight that no regression trains
    import torch
    from torch import nn

    actor, gate = nn.Linear(4, 2), nn.Linear(4, 1)
    optimizer = torch.optim.SGD([*actor.parameters(), *gate.parameters()], lr=0.1)
    for state in torch.randn(3, 8, 4):
        policy = torch.distributions.Categorical(logits=actor(state))
        weight = gate(state).sigmoid().squeeze(1)
        optimizer.zero_grad()
        (-(policy.log_prob(policy.sample()) * weight).mean()).backward()
        optimizer.step()

Blind spots:
    A log-probability that is not taken by `torch.distributions` is not recognised.

Source:
    R. Sutton and A. Barto, Reinforcement Learning (2018), section 13.5; V. Mnih et al., Asynchronous methods for
    deep reinforcement learning (2016); observed with torch 2.13.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from backprobe.rules.analysis.gradients.grad_spans import grad_spans
from backprobe.rules.analysis.graph.reach import reaches
from backprobe.rules.analysis.graph.walks import (
    RESHAPES,
    behind_shapes,
    below,
    node_of,
    op,
    operands,
    tensors_of,
    walked,
)
from backprobe.rules.analysis.losses.regressions import regressed
from backprobe.rules.analysis.rows.lookup import lookup
from backprobe.rules.analysis.source.expressions import replacement
from backprobe.rules.analysis.source.syntax import region_in, site_of, statement
from backprobe.rules.framework.finding import Fix, Region
from backprobe.rules.framework.finding_builder import told
from backprobe.rules.framework.rule import Rule

if TYPE_CHECKING:
    from backprobe.record import Node, Record
    from backprobe.rules.framework.finding import Finding

RULE = Rule(
    name="tracked-advantage",
    code="BP811",
    since="0.1",
    severity="warning",
    confidence="likely",
    fix="safe",
    needs=("node", "call", "grad-life"),
)

_LIKELIHOOD: Final = RESHAPES | {"Neg", "Sum", "Exp", "Sub", "Clamp", "Mean"}
"""What may stand between `log_prob` and the product: a sum over actions, a ratio."""

_ADVANTAGE: Final = RESHAPES | {"Sub", "Add", "Neg", "Mul", "Div", "Mean", "Std", "Clamp"}
"""What may stand between a value and the advantage: the return, a discount, a normalisation."""


def check(record: Record) -> Iterator[Finding]:
    """One finding per statement that multiplies the two."""
    logs = {
        made
        for call in record.watched_calls
        if call.function.endswith(".log_prob")
        for tensor in call.outputs
        if (made := behind_shapes(record, node_of(record, tensor))) is not None
    }
    logs |= set(_picked(record))
    by_site: dict[int, list[tuple[Node, int, int]]] = {}
    for node in record.nodes if logs else ():
        if op(node) != "Mul" or node.node not in walked(record) or node.site is None:
            continue
        value = _value(record, node, logs)
        if value is not None and _is_stepped_on(record, node.node, value[1]):
            by_site.setdefault(node.site, []).append((node, *value))
    for site, found in by_site.items():
        yield _finding(record, site, found)


def _picked(record: Record) -> Iterator[int]:
    """The nodes that pick log-probabilities out of a log-softmax: `log_softmax(...).gather(1, actions)`."""
    for node in record.nodes:
        if op(node) in ("Gather", "Index"):
            for source in operands(record, node.node):
                made = None if source is None else behind_shapes(record, source)
                if made is not None and op(lookup(record).nodes[made]) == "LogSoftmax":
                    yield node.node


def _value(record: Record, node: Node, logs: set[int]) -> tuple[int, int] | None:
    """The factor that is an advantage, and the regressed value in it, where the other one is a log-probability."""
    sides = operands(record, node.node)
    for likelihood, weight in (sides, sides[::-1]) if len(sides) == 2 else ():
        if likelihood is None or weight is None or not logs & set(_through(record, likelihood, _LIKELIHOOD)):
            continue
        inside = set(_through(record, weight, _ADVANTAGE))
        found = sorted(inside & regressed(record).keys())
        if found and not logs & inside:
            return weight, found[0]
    return None


def _through(record: Record, start: int, passed: frozenset[str]) -> Iterator[int]:
    """A node, and what is below it as far as these operations lead, with what they end at."""
    seen, waiting = {start}, [start]
    for node in waiting:
        yield node
        if op(lookup(record).nodes[node]) in passed:
            for one in operands(record, node):
                if one is not None and one not in seen:
                    seen.add(one)
                    waiting.append(one)


def _is_stepped_on(record: Record, product: int, value: int) -> bool:
    """A call that walked the product left a gradient in the value's parameters that an update then used."""
    leaves = {lookup(record).nodes[one].variable for one in below(record, value)}
    calls = {reach.call for reach in reaches(record).values() if product in reach.met}
    return any(
        row.call in calls and any(update.moment > row.moment for update in span.updates)
        for leaf in leaves
        if leaf is not None
        for span in grad_spans(record).get(leaf, ())
        for row in span.arrivals
    )


def _finding(record: Record, site: int, found: list[tuple[Node, int, int]]) -> Finding:
    _node, weight, value = found[0]
    index = lookup(record)
    made = tensors_of(record).get(weight, [])
    bound = [row.name for tensor in made for row in index.bindings_of[tensor]]
    name = f"`{bound[-1]}`" if bound else "its weight"
    return told(
        record,
        RULE,
        site,
        (
            f"A log-probability is multiplied by {name}, which is tracked and has a regression loss of its own.",
            "The policy's loss then moves the critic as well, away from the returns.",
            f"Detach it here: `{bound[-1] if bound else 'advantage'}.detach()`.",
        ),
        binding=bound[-1] if bound else "",
        region=_product(record, site, set(made)),
        moments=[one.first_seen for one, _weight, _value in found],
        related=(
            (f"{name} is computed here", index.nodes[weight].site if index.nodes[weight].site != site else None),
            ("the regression loss of the value", regressed(record)[value]),
        ),
        evidence={"products": len(found), "assumed": "the policy's loss is not meant to train the critic"},
        fixes=_fixes(record, site, bound[-1] if bound else None),
        tensors=made,
    )


def _product(record: Record, site: int, weights: set[int]) -> Region | None:
    """Where the product stands in a statement of several lines."""
    rows = [row for row in record.operations if row.statement == site and row.function == "*"]
    found = next((row for row in rows if weights.intersection(row.operands)), None)
    if found is None:
        return None
    return Region(start_line=found.line, start_col=found.col, end_line=found.end_line, end_col=found.end_col)


def _fixes(record: Record, number: int, name: str | None) -> Iterator[Fix]:
    site = site_of(record, number)
    node = statement(record, site)
    used = [part for part in ast.walk(node or ast.Pass()) if isinstance(part, ast.Name) and part.id == name]
    if len(used) == 1 and isinstance(used[0].ctx, ast.Load):
        edit = replacement(record, site, region_in(record, site.source, used[0]), f"{name}.detach()")
        yield Fix(title="Detach the advantage", safety="safe", edits=(edit,))
